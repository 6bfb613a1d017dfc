//! A training step against its restatement in NumPy: cost, sums of gradients, updated weights and the codes they make
//! are the same bits.

use crate::support;
use std::fs;
use std::path::Path;

use tercet_core::block::{self, Format};
use tercet_core::f16;
use tercet_core::gguf::Reader;
use tercet_core::model::{
    Cache, CacheShape, CacheType, Codes, DecoderLayer, Memory as ModelMemory, Model, Pattern,
    Place, Sequence,
};
use tercet_core::number::Random;
use tercet_core::train::{
    self, Activations, AdamW, Batch, GAIN_UNIT, Memory, Needs, Parameter, Shapes, Tensor,
    Transposed, Update, WEIGHT_FLOOR, transpose,
};
use tercet_host::DType;
use tercet_host::language::{Architecture, Parameters, tiny};
use tercet_host::parallel::Threads;
use tercet_host::simd::Backend;

/// More than a group and a page.
const LENGTH: usize = 70;
const SEQUENCES: usize = 2;
const UPDATES: usize = 2;
const RATE: f32 = 1e-2;

/// A model's weights: as floats near what the file has, as codes by columns, and scales.
struct Weights {
    masters: Vec<f32>,
    transposed: Vec<u8>,
    scales: Vec<f32>,
    rows: Vec<f32>,
}

impl Weights {
    fn of(file: &Reader<'_>, shapes: &Shapes<'_>) -> Self {
        let mut random = Random::new(5);
        let mut own = Self {
            masters: Vec::new(),
            transposed: vec![0; shapes.values()],
            scales: vec![0.0; shapes.count()],
            rows: Vec::new(),
        };
        for ((number, tensor), info) in shapes.iter().enumerate().zip(file.tensors()) {
            let mut values = vec![0.0; tensor.len()];
            if tensor.part.is_gains() {
                let gains = info.data.chunks_exact(4);
                own.masters
                    .extend(gains.map(|gain| f32::from_le_bytes(gain.try_into().unwrap())));
                continue;
            }
            let format = match tensor.part {
                Parameter::Embedding => Format::Q8_0,
                _ => Format::Q2_0,
            };
            block::decode(format, info.data, &mut values).unwrap();
            let mut scale = values.iter().fold(0f32, |most, x| most.max(x.abs()));
            own.scales[number] = scale;
            let mut codes = Vec::new();
            for (row, values) in values.chunks(tensor.cols).enumerate() {
                if tensor.part == Parameter::Embedding {
                    let at = row * tensor.cols / 32 * 34;
                    scale = f16::from_le_bytes([info.data[at], info.data[at + 1]]).to_f32();
                    own.rows.push(scale);
                }
                codes.extend(values.iter().map(|value| (value / scale) as i8));
            }
            let noise = own.scales[number] * 0.3;
            let noisy = values.iter().map(|value| value + noise * random.normal());
            own.masters.extend(noisy);
            transpose(&codes, tensor.cols, tensor.of_mut(&mut own.transposed));
        }
        own
    }
}

/// The cost and the sums of gradients, by a set of instructions.
fn gradients(
    backend: Backend,
    model: &Model<'_, '_>,
    weights: &Weights,
    (tokens, targets): (&[u32], &[u32]),
) -> (i64, Vec<i64>) {
    let mut engine = Threads::alone().with_backend(backend);
    let transposed = Transposed {
        codes: &weights.transposed,
        scales: &weights.scales,
        rows: &weights.rows,
    };
    let batch = Batch {
        tokens,
        targets,
        soft: None,
        length: LENGTH,
        recompute: false,
        activations: Activations::F32,
    };
    let needs = Needs::of(
        &engine,
        model,
        &transposed,
        (LENGTH, tokens.len()),
        (false, Activations::F32),
    )
    .unwrap();
    let mut memory = Memory {
        model: ModelMemory {
            places: &mut vec![Place::default(); needs.model.places],
            floats: &mut vec![f32::NAN; needs.model.floats],
            bytes: &mut vec![1; needs.model.bytes],
            halves: &mut vec![1; needs.model.halves],
            longs: &mut vec![1; needs.model.longs],
            words: &mut vec![1; needs.model.words],
        },
        floats: &mut vec![f32::NAN; needs.floats],
        kept: &mut [],
        bytes: &mut vec![1; needs.bytes],
        ints: &mut vec![1; needs.ints],
        longs: &mut vec![1; needs.longs],
    };
    let shape = CacheShape::new(model.config(), CacheType::Int8);
    let context = LENGTH as u32;
    let own = Sequence::pages(Pattern::FULL, context, context);
    let pages = own * SEQUENCES;
    let (mut keys, mut values) = (
        vec![1; shape.codes() * pages],
        vec![1; shape.codes() * pages],
    );
    let (mut scales, mut free) = (vec![1.0; 2 * shape.scales() * pages], vec![0; pages]);
    let (keys, values) = (Codes::Narrow(&mut keys), Codes::Narrow(&mut values));
    let mut cache = Cache::new(shape, keys, values, &mut scales, &mut free).unwrap();
    let mut tables = vec![0; pages];
    let mut sequences: Vec<Sequence<'_>> = (tables.chunks_mut(own))
        .map(|table| Sequence::new(Pattern::FULL, CacheType::Int8, context, context, table))
        .collect::<Result<_, _>>()
        .unwrap();
    let mut sums = vec![0; Shapes::new(model.config()).values()];
    let cost = train::gradients(
        &mut engine,
        (model, &transposed),
        &batch,
        (&mut cache, &mut sequences),
        &mut memory,
        &mut sums[..],
    );
    (cost.unwrap().unwrap(), sums)
}

/// Weights after some updates.
fn updated(shapes: &Shapes<'_>, adamw: &AdamW, weights: &[f32], sums: &[i64]) -> Vec<f32> {
    let unit_of = |tensor: &Tensor| {
        let unit = match tensor.part.is_gains() {
            true => GAIN_UNIT,
            false => WEIGHT_FLOOR,
        };
        train::unit(unit, (LENGTH * SEQUENCES) as u64)
    };
    let squares = shapes
        .iter()
        .map(|tensor| f64::from(train::squares(tensor.of(sums), unit_of(&tensor))));
    let clip = adamw.clip(squares.fold(0.0, |sum, own| sum + own));
    let mut weights = weights.to_vec();
    let (mut first, mut second) = (vec![0.0; weights.len()], vec![0.0; weights.len()]);
    let mut powers = [1.0; 2];
    for _ in 0..UPDATES {
        powers[0] *= f64::from(adamw.beta1);
        powers[1] *= f64::from(adamw.beta2);
        let update = Update {
            rate: RATE,
            clip,
            powers,
        };
        for tensor in shapes.iter() {
            let moments = (tensor.of_mut(&mut first), tensor.of_mut(&mut second));
            let own = (tensor.of(sums), unit_of(&tensor));
            let decays = !tensor.part.is_gains();
            let weights = tensor.of_mut(&mut weights);
            adamw.update(f32::sqrt, &update, own, decays, weights, moments);
        }
    }
    weights
}

/// Codes of all values, 0 for gains; a scale for each matrix and each row of the embedding.
fn encoded(shapes: &Shapes<'_>, weights: &[f32]) -> (Vec<i8>, Vec<f32>) {
    let (mut codes, mut scales) = (vec![0; weights.len()], Vec::new());
    for tensor in shapes.iter().filter(|tensor| !tensor.part.is_gains()) {
        let (own, codes) = (tensor.of(weights), tensor.of_mut(&mut codes));
        if tensor.part == Parameter::Embedding {
            let rows = own.chunks(tensor.cols).zip(codes.chunks_mut(tensor.cols));
            scales.extend(rows.map(|(row, codes)| train::row_codes(row, codes).unwrap().to_f32()));
        } else {
            scales.push(train::ternary(own, codes).unwrap().to_f32());
        }
    }
    (codes, scales)
}

/// The bytes of numbers, little-endian.
macro_rules! bytes {
    ($values:expr) => {
        $values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect::<Vec<u8>>()
    };
}

fn equals_numpy(python: &Path, parameters: Parameters, seed: u64) {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    // Of the same weights; Python's gguf 0.19 has no Q2_0.
    for (name, dtype) in [
        ("model", DType::Block(Format::Q2_0)),
        ("floats", DType::F32),
    ] {
        tiny::bitnet(&path(name), parameters, seed, dtype, false).unwrap();
    }
    let file = fs::read(path("model")).unwrap();
    let reader = Reader::new(&file).unwrap();
    let (layers, steps) = Model::lengths(&reader).unwrap();
    let (mut layers, mut steps) = (vec![DecoderLayer::EMPTY; layers], vec![0; steps]);
    let model = Model::new(&reader, &mut layers, &mut steps).unwrap();
    let shapes = Shapes::new(model.config());
    let weights = Weights::of(&reader, &shapes);

    let mut random = Random::new(seed);
    let mut draw = || -> Vec<u32> {
        let vocabulary = u64::from(parameters.vocab_size);
        (0..LENGTH * SEQUENCES)
            .map(|_| random.below(vocabulary) as u32)
            .collect()
    };
    let (tokens, targets) = (draw(), draw());
    let adamw = AdamW::DEFAULT;
    let options = [
        RATE,
        adamw.beta1,
        adamw.beta2,
        adamw.eps,
        adamw.decay,
        adamw.clip,
    ];
    fs::write(path("tokens"), bytes!(tokens)).unwrap();
    fs::write(path("targets"), bytes!(targets)).unwrap();
    fs::write(path("weights"), bytes!(weights.masters)).unwrap();
    fs::write(path("options"), bytes!(options)).unwrap();
    let arguments = [
        path("floats").into_os_string(),
        LENGTH.to_string().into(),
        UPDATES.to_string().into(),
        folder.path().into(),
    ];
    let said = support::run(python, "training.py", arguments);

    let theirs = fs::read(path("sums")).unwrap();
    let mut sums = Vec::new();
    for backend in Backend::all() {
        let (cost, found) = gradients(backend, &model, &weights, (&tokens, &targets));
        assert_eq!(said.trim_end(), cost.to_string(), "{backend}");
        for tensor in shapes.iter() {
            let ours = bytes!(tensor.of(&found));
            let theirs = theirs[tensor.first * 8..].chunks(8);
            let wrong = ours.chunks(8).zip(theirs).filter(|(a, b)| a != b);
            let (wrong, all) = (wrong.count(), tensor.len());
            let (layer, name) = (tensor.layer, tensor.part.name());
            assert_eq!(
                wrong, 0,
                "of {all} sums of {name}, layer {layer}, {backend}"
            );
        }
        sums = found;
    }
    let weights = updated(&shapes, &adamw, &weights.masters, &sums);
    assert!(
        bytes!(weights) == fs::read(path("updated")).unwrap(),
        "updated weights"
    );
    let (codes, scales) = encoded(&shapes, &weights);
    assert!(bytes!(codes) == fs::read(path("codes")).unwrap(), "codes");
    assert!(
        bytes!(scales) == fs::read(path("scales")).unwrap(),
        "scales"
    );
    println!("{} sums, weights and codes compared, 0 differ", sums.len());
}

#[test]
fn a_training_step_equals_numpys() {
    let Some(python) = support::python_with(&["numpy", "gguf"]) else {
        return;
    };
    equals_numpy(&python, tiny::BITNET, 1);
    let relu = Parameters {
        architecture: Architecture::BitnetSquaredRelu,
        ..tiny::BITNET_64
    };
    equals_numpy(&python, relu, 2);
}
