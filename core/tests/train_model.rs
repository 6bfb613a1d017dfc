//! Laws of a whole training step, on the ternary model of the conformance suite.

use tercet_core::block::{self, Format};
use tercet_core::f16;
use tercet_core::gguf::Reader;
use tercet_core::model::{
    self, Cache, CacheShape, CacheType, Codes, DecoderLayer, Model, ModelError, Pattern, Place,
    Sequence, Stage, nll,
};
use tercet_core::number::Random;
use tercet_core::scalar::Scalar;
use tercet_core::train::{
    Activations, Batch, Fault, Memory, Needs, Parameter, Shapes, SoftTargets, Tensor, Transposed,
    gradients, soften, transpose,
};

const TERNARY: &[u8] = include_bytes!("../src/conformance/models/ternary.gguf");
const LLAMA: &[u8] = include_bytes!("../src/conformance/models/llama.gguf");

/// A tensor's name in a file.
fn name(tensor: &Tensor) -> String {
    match tensor.part {
        Parameter::Embedding | Parameter::OutputNorm => tensor.part.name().to_owned(),
        part => format!("blk.{}.{}", tensor.layer, part.name()),
    }
}

/// A model's codes by columns, their scales, and those of the embedding's rows.
fn transposed(file: &Reader<'_>, shapes: &Shapes<'_>) -> (Vec<u8>, Vec<f32>, Vec<f32>) {
    let (mut codes, mut scales) = (vec![99; shapes.values()], vec![f32::NAN; shapes.count()]);
    let mut rows = Vec::new();
    for (number, tensor) in shapes.iter().enumerate() {
        if tensor.part.is_gains() {
            continue;
        }
        let info = file.tensor(&name(&tensor)).unwrap();
        let bytes = info.byte_len().unwrap() as usize;
        let bytes = &file.data()[info.offset as usize..][..bytes];
        let own: Vec<i8> = if tensor.part == Parameter::Embedding {
            // Q8_0: a scale of f16 and 32 codes a block; all blocks of a row have one scale.
            let row = tensor.cols / 32 * 34;
            let scale = |row: &[u8]| f16::from_le_bytes([row[0], row[1]]).to_f32();
            rows = bytes.chunks(row).map(scale).collect();
            let blocks = bytes.chunks(34).flat_map(|block| &block[2..]);
            blocks.map(|&code| code as i8).collect()
        } else {
            let mut values = vec![0.0; tensor.len()];
            block::decode(Format::Q2_0, bytes, &mut values).unwrap();
            let scale = values.iter().fold(0f32, |most, x| most.max(x.abs()));
            scales[number] = scale;
            values.iter().map(|value| (value / scale) as i8).collect()
        };
        transpose(&own, tensor.cols, tensor.of_mut(&mut codes));
    }
    (codes, scales, rows)
}

/// How a step is taken; what differs from [`Setting::DEFAULT`] is wrong about it.
#[derive(Clone, Copy)]
struct Setting {
    kind: CacheType,
    pattern: Pattern,
    sequences: usize,
    context: u32,
    /// Elements that sums, memory and scales have too few.
    short: [usize; 8],
}

impl Setting {
    const DEFAULT: Self = Self {
        kind: CacheType::Int8,
        pattern: Pattern::FULL,
        sequences: 3,
        context: 70,
        short: [0; 8],
    };
}

type Found = Result<Result<(i64, Vec<i64>), Fault>, ModelError>;

/// The sums of gradients of a batch.
fn step(file: &[u8], batch: &Batch<'_>, setting: Setting) -> Found {
    let file = Reader::new(file).unwrap();
    let (layers, steps) = Model::lengths(&file).unwrap();
    let (mut layers, mut steps) = (vec![DecoderLayer::EMPTY; layers], vec![0; steps]);
    let model = Model::new(&file, &mut layers, &mut steps).unwrap();
    let shapes = Shapes::new(model.config());
    let (codes, scales, rows) = match file.tensor("blk.0.attn_sub_norm.weight") {
        Some(_) => transposed(&file, &shapes),
        None => Default::default(),
    };
    let [sums, floats, kept, bytes, ints, longs, of_tensors, of_rows] = setting.short;
    let transposed = Transposed {
        codes: &codes,
        scales: &scales[of_tensors..],
        rows: &rows[of_rows..],
    };
    let size = (batch.length, batch.tokens.len());
    let activations = (batch.recompute, batch.activations);
    let needs = Needs::of(&Scalar, &model, &transposed, size, activations);
    let needs = needs.unwrap_or(Needs {
        model: model::Needs::default(),
        floats: 0,
        kept: 0,
        bytes: 0,
        ints: 0,
        longs: 0,
    });
    // What memory holds does not show.
    let mut memory = Memory {
        model: model::Memory {
            places: &mut vec![Place::default(); needs.model.places],
            floats: &mut vec![f32::NAN; needs.model.floats],
            bytes: &mut vec![-128; needs.model.bytes],
            halves: &mut vec![-1; needs.model.halves],
            longs: &mut vec![-1; needs.model.longs],
            words: &mut vec![u32::MAX; needs.model.words],
        },
        floats: &mut vec![f32::NAN; needs.floats - floats],
        kept: &mut vec![255; needs.kept - kept],
        bytes: &mut vec![-128; needs.bytes - bytes],
        ints: &mut vec![-1; needs.ints - ints],
        longs: &mut vec![-1; needs.longs - longs],
    };
    let shape = CacheShape::new(model.config(), setting.kind);
    let own = Sequence::pages(setting.pattern, setting.context, setting.context);
    let pages = own * setting.sequences;
    let (mut keys, mut values) = (
        vec![77; shape.codes() * pages],
        vec![77; shape.codes() * pages],
    );
    let mut wide = vec![77; shape.codes() * pages];
    let mut scales = vec![f32::NAN; 2 * shape.scales() * pages];
    let mut free = vec![9; pages];
    let keys = match setting.kind.wide_keys() {
        true => Codes::Wide(&mut wide),
        false => Codes::Narrow(&mut keys),
    };
    let values = Codes::Narrow(&mut values);
    let mut cache = Cache::new(shape, keys, values, &mut scales, &mut free).unwrap();
    let mut tables = vec![5; pages];
    let mut sequences: Vec<_> = (tables.chunks_mut(own.max(1)))
        .map(|table| {
            let (context, chunk) = (setting.context, setting.context);
            Sequence::new(setting.pattern, setting.kind, context, chunk, table).unwrap()
        })
        .collect();
    let mut found = vec![0; shapes.values() - sums];
    let cost = gradients(
        &mut Scalar,
        (&model, &transposed),
        batch,
        (&mut cache, &mut sequences),
        &mut memory,
        &mut found[..],
    )?;
    Ok(cost.map(|cost| (cost, found)))
}

/// Tokens, and what follows each.
fn text(count: usize) -> (Vec<u32>, Vec<u32>) {
    let token = |at: usize| (at * at * 31 + at * 7) as u32 % 259;
    (
        (0..count).map(token).collect(),
        (1..=count).map(token).collect(),
    )
}

fn batch<'b>((tokens, targets): &'b (Vec<u32>, Vec<u32>), length: usize) -> Batch<'b> {
    Batch {
        tokens,
        targets,
        soft: None,
        length,
        recompute: false,
        activations: Activations::F32,
    }
}

fn of(file: &[u8], batch: &Batch<'_>) -> Result<(i64, Vec<i64>), Fault> {
    step(file, batch, Setting::DEFAULT).unwrap()
}

/// The file with the first value of a tensor of floats changed.
fn spoiled(tensor: &str, value: f32) -> Vec<u8> {
    let mut file = TERNARY.to_vec();
    let reader = Reader::new(TERNARY).unwrap();
    let first = file.len() - reader.data().len() + reader.tensor(tensor).unwrap().offset as usize;
    file[first..][..4].copy_from_slice(&value.to_le_bytes());
    file
}

#[test]
fn sums_of_two_batches_are_those_of_both_together() {
    const LENGTH: usize = 66;
    let (tokens, targets) = text(3 * LENGTH);
    let whole = of(TERNARY, &batch(&(tokens.clone(), targets.clone()), LENGTH)).unwrap();
    let part = |sequences: core::ops::Range<usize>| {
        let rows = sequences.start * LENGTH..sequences.end * LENGTH;
        let own = (tokens[rows.clone()].to_vec(), targets[rows].to_vec());
        of(TERNARY, &batch(&own, LENGTH)).unwrap()
    };
    let (first, second) = (part(0..1), part(1..3));
    let sums = first.1.iter().zip(&second.1).map(|(a, b)| a + b);
    assert_eq!(whole.0, first.0 + second.0);
    assert!(whole.1.into_iter().eq(sums));
    assert!(first.1.iter().filter(|&&sum| sum != 0).count() > first.1.len() / 2);
}

#[test]
fn a_teacher_s_rows_are_those_of_the_batch() {
    const LENGTH: usize = 66;
    const VOCABULARY: usize = 259;
    let text = text(2 * LENGTH);
    let plain = batch(&text, LENGTH);
    let mut random = Random::new(9);
    let mut teacher: Vec<f32> = (0..2 * LENGTH * VOCABULARY)
        .map(|_| random.normal())
        .collect();
    for row in teacher.chunks_mut(VOCABULARY) {
        assert!(soften(row, 2.0));
    }
    let with = |rows, share| SoftTargets::new(rows, 2.0, share);
    let none = Batch {
        soft: with(&teacher, 0.0),
        ..plain
    };
    assert_eq!(of(TERNARY, &plain), of(TERNARY, &none));
    let half = Batch {
        soft: with(&teacher, 0.5),
        ..plain
    };
    let whole = of(TERNARY, &half).unwrap();
    // The cost is the targets', and learning goes elsewhere.
    assert_eq!(whole.0, of(TERNARY, &plain).unwrap().0);
    assert_ne!(whole.1, of(TERNARY, &plain).unwrap().1);
    let part = |sequence: usize| {
        let rows = sequence * LENGTH..(sequence + 1) * LENGTH;
        let own = (text.0[rows.clone()].to_vec(), text.1[rows].to_vec());
        let mut batch = batch(&own, LENGTH);
        batch.soft = with(
            &teacher[sequence * LENGTH * VOCABULARY..][..LENGTH * VOCABULARY],
            0.5,
        );
        of(TERNARY, &batch).unwrap().1
    };
    let (first, second) = (part(0), part(1));
    assert!(
        whole
            .1
            .into_iter()
            .eq(first.iter().zip(&second).map(|(a, b)| a + b))
    );
}

#[test]
fn layers_computed_twice_give_the_same() {
    let text = text(132);
    let once = batch(&text, 66);
    let twice = Batch {
        recompute: true,
        ..once
    };
    assert_eq!(of(TERNARY, &once), of(TERNARY, &twice));
}

#[test]
fn layers_computed_twice_have_the_same_faults() {
    let text = text(9);
    let once = batch(&text, 3);
    let twice = Batch {
        recompute: true,
        ..once
    };
    let mut in_layers = std::collections::BTreeSet::new();
    for layer in 0..2 {
        for norm in ["attn_norm", "attn_sub_norm", "ffn_norm", "ffn_sub_norm"] {
            for value in (6..26).map(|power| 4f32.powi(power)).chain([f32::NAN]) {
                let file = spoiled(&format!("blk.{layer}.{norm}.weight"), value);
                let found = of(&file, &once);
                assert_eq!(found, of(&file, &twice), "{layer} {norm} {value}");
                if let Err(Fault::Diverged { layer, tensor }) = found {
                    in_layers.insert((layer, tensor));
                }
            }
        }
    }
    assert!(in_layers.len() > 3, "{in_layers:?}");
}

#[test]
fn layers_computed_twice_keep_one_sequence_and_the_inputs_of_all() {
    let of = |sequences: usize| {
        let file = Reader::new(TERNARY).unwrap();
        let (mut layers, mut steps) = ([DecoderLayer::EMPTY; 2], [0; 2]);
        let model = Model::new(&file, &mut layers, &mut steps).unwrap();
        let (codes, scales, rows) = transposed(&file, &Shapes::new(model.config()));
        let transposed = Transposed {
            codes: &codes,
            scales: &scales,
            rows: &rows,
        };
        let size = (66, 66 * sequences);
        Needs::of(
            &Scalar,
            &model,
            &transposed,
            size,
            (true, Activations::Int8),
        )
        .unwrap()
    };
    let mut expected = of(1);
    // Inputs of two layers and of the head, and a gradient of the residual.
    expected.floats += 2 * 66 * 64 * 4;
    assert_eq!(of(3), expected);
}

/// The cosine between gradients of all tensors.
fn cosine(a: &[i64], b: &[i64]) -> f64 {
    let dot =
        |a: &[i64], b: &[i64]| -> f64 { a.iter().zip(b).map(|(&a, &b)| a as f64 * b as f64).sum() };
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

#[test]
fn values_in_fewer_bits_change_only_the_gradients_and_only_a_little() {
    const LENGTH: usize = 66;
    let text = text(2 * LENGTH);
    let exact = batch(&text, LENGTH);
    let (cost, sums) = of(TERNARY, &exact).unwrap();
    let mut before = 1.0;
    for (activations, least) in [(Activations::Bf16, 0.999), (Activations::Int8, 0.99)] {
        let kept = Batch {
            activations,
            ..exact
        };
        let (of_kept, found) = of(TERNARY, &kept).unwrap();
        assert_eq!(of_kept, cost);
        let alike = cosine(&sums, &found);
        assert!(alike > least && alike < before, "{activations:?}: {alike}");
        before = alike;
        let twice = Batch {
            recompute: true,
            ..kept
        };
        assert_eq!(of(TERNARY, &twice).unwrap(), (cost, found.clone()));
        // Rows are rounded alone, so no division of a batch shows.
        let part = |first: usize| {
            let own = first..first + LENGTH;
            let own = (text.0[own.clone()].to_vec(), text.1[own].to_vec());
            let part = Batch {
                activations,
                ..batch(&own, LENGTH)
            };
            of(TERNARY, &part).unwrap().1
        };
        let (first, second) = (part(0), part(LENGTH));
        let both = first.iter().zip(&second).map(|(a, b)| a + b);
        assert!(found.into_iter().eq(both));
    }
}

#[test]
fn the_cost_is_that_of_the_model_s_logits() {
    let text = text(9);
    let file = Reader::new(TERNARY).unwrap();
    let (mut layers, mut steps) = ([DecoderLayer::EMPTY; 2], [0; 2]);
    let model = Model::new(&file, &mut layers, &mut steps).unwrap();
    let shape = CacheShape::new(model.config(), CacheType::Int8);
    let (mut keys, mut values) = (vec![0; shape.codes()], vec![0; shape.codes()]);
    let (mut scales, mut free, mut table) = (vec![0.0; 2 * shape.scales()], [0], [0]);
    let (keys, values) = (Codes::Narrow(&mut keys), Codes::Narrow(&mut values));
    let mut cache = Cache::new(shape, keys, values, &mut scales, &mut free).unwrap();
    let mut sequences = [Sequence::new(Pattern::FULL, CacheType::Int8, 9, 9, &mut table).unwrap()];
    let needs = model::Needs::of(&Scalar, &model, Pattern::FULL, 9, 9).unwrap();
    let mut memory = model::Memory {
        places: &mut vec![Place::default(); needs.places],
        floats: &mut vec![0.0; needs.floats],
        bytes: &mut vec![0; needs.bytes],
        halves: &mut vec![0; needs.halves],
        longs: &mut vec![0; needs.longs],
        words: &mut vec![0; needs.words],
    };
    let rows: Vec<model::Row> = (text.0.iter())
        .map(|&token| model::Row {
            token,
            sequence: 0,
            logits: true,
        })
        .collect();
    let mut logits = vec![0.0; 9 * 259];
    let caches = (&mut cache, &mut sequences[..]);
    model::decode(
        &mut Scalar,
        &model,
        caches,
        &rows,
        &mut memory,
        &mut logits,
        &mut |error| panic!("{error}"),
    )
    .unwrap();
    let costs = logits.chunks(259).zip(&text.1);
    let cost: i64 = costs
        .map(|(logits, &target)| nll(logits, target as usize).unwrap())
        .sum();
    assert_eq!(of(TERNARY, &batch(&text, 9)).unwrap().0, cost);
}

#[test]
fn what_is_not_finite_is_named() {
    let text = text(6);
    let fault = |tensor| of(&spoiled(tensor, f32::NAN), &batch(&text, 3)).unwrap_err();
    let not_finite = |layer, step, position| Fault::NotFinite {
        layer,
        step,
        position,
    };
    let expected = not_finite(1, Stage::FeedForwardNorm, 0);
    assert_eq!(fault("blk.1.ffn_norm.weight"), expected);
    assert_eq!(
        fault("blk.0.ffn_sub_norm.weight"),
        not_finite(0, Stage::Gate, 0)
    );
    let expected = not_finite(0, Stage::Attention, 0);
    assert_eq!(fault("blk.0.attn_sub_norm.weight"), expected);
    let expected = not_finite(1, Stage::AttentionNorm, 0);
    assert_eq!(fault("blk.1.attn_norm.weight"), expected);
    assert_eq!(fault("output_norm.weight"), Fault::Logits { row: 0 });
}

#[test]
fn gradients_above_a_ceiling_name_their_tensor() {
    let text = text(6);
    let found = of(&spoiled("output_norm.weight", 3e4), &batch(&text, 6));
    let expected = Fault::Diverged {
        layer: 2,
        tensor: "token_embd.weight",
    };
    assert_eq!(found, Err(expected));
}

#[test]
fn what_is_no_batch_of_the_model_is_refused() {
    let text = text(6);
    let own = batch(&text, 3);
    let refused = |file: &[u8], batch: &Batch<'_>, setting| step(file, batch, setting).unwrap_err();
    let default = Setting::DEFAULT;
    assert_eq!(refused(LLAMA, &own, default), ModelError::Architecture);
    let wide = Setting {
        kind: CacheType::Int16Int8,
        ..default
    };
    let expected = ModelError::OwnKey {
        key: "tercet.cache",
        expected: "int8",
    };
    assert_eq!(refused(TERNARY, &own, wide), expected);
    let mut foreign = text.clone();
    foreign.1[4] = 259;
    let expected = ModelError::Token { row: 4, token: 259 };
    assert_eq!(refused(TERNARY, &batch(&foreign, 3), default), expected);
    let few = Setting {
        sequences: 1,
        ..default
    };
    let expected = ModelError::NoSequence { row: 3 };
    assert_eq!(refused(TERNARY, &own, few), expected);
    let near = Setting {
        context: 2,
        ..default
    };
    let expected = ModelError::Context {
        sequence: 0,
        positions: 2,
    };
    assert_eq!(refused(TERNARY, &own, near), expected);
    let room = |memory, needed, found| ModelError::Room {
        memory,
        needed,
        found,
    };
    let expected = room("tokens of whole sequences", 8, 6);
    assert_eq!(refused(TERNARY, &batch(&text, 4), default), expected);
    let unanswered = Batch {
        targets: &text.1[..5],
        ..own
    };
    let expected = room("targets", 6, 5);
    assert_eq!(refused(TERNARY, &unanswered, default), expected);
    let probabilities = [1.0 / 259.0; 5 * 259];
    let unknown = Batch {
        soft: SoftTargets::new(&probabilities, 1.0, 0.5),
        ..own
    };
    let expected = room("probabilities of a teacher", 6 * 259, 5 * 259);
    assert_eq!(refused(TERNARY, &unknown, default), expected);
    let expected = room("tokens of a sequence", 1, 0);
    assert_eq!(refused(TERNARY, &batch(&text, 0), default), expected);
    let window = Setting {
        pattern: Pattern {
            window: 8,
            sinks: 0,
            stride: 0,
        },
        ..default
    };
    let expected = ModelError::Windowed { sequence: 0 };
    assert_eq!(refused(TERNARY, &own, window), expected);
    // Sixteen heads share keys, so sums of theirs have room for 64 groups of rows.
    let long = Setting {
        sequences: 1,
        context: 257,
        ..default
    };
    let (tokens, targets) = self::text(257);
    let expected = ModelError::Context {
        sequence: 0,
        positions: 256,
    };
    assert_eq!(
        refused(TERNARY, &batch(&(tokens, targets), 257), long),
        expected
    );
}

#[test]
fn no_tokens_are_no_gradients() {
    let text = text(0);
    for recompute in [false, true] {
        let batch = Batch {
            recompute,
            ..batch(&text, 3)
        };
        let (cost, sums) = of(TERNARY, &batch).unwrap();
        assert_eq!(cost, 0);
        assert!(sums.iter().all(|&sum| sum == 0));
    }
}

#[test]
fn too_little_memory_is_named_with_what_it_lacks() {
    let text = text(6);
    let own = Batch {
        activations: Activations::Int8,
        ..batch(&text, 3)
    };
    for (part, memory) in [
        "sums of gradients",
        "a training step's floats",
        "a training step's kept bytes",
        "a training step's bytes",
        "a training step's ints",
        "a training step's longs",
        "scales of tensors",
        "scales of the embedding's rows",
    ]
    .into_iter()
    .enumerate()
    {
        let mut short = [0; 8];
        short[part] = 1;
        let setting = Setting {
            short,
            ..Setting::DEFAULT
        };
        match step(TERNARY, &own, setting) {
            Err(ModelError::Room {
                memory: named,
                needed,
                found,
            }) => assert_eq!((named, found), (memory, needed - 1)),
            other => panic!("{memory}: {other:?}"),
        }
    }
}

#[test]
fn tensors_lie_one_after_another_in_the_file_s_order() {
    let file = Reader::new(TERNARY).unwrap();
    let (mut layers, mut steps) = ([DecoderLayer::EMPTY; 2], [0; 2]);
    let model = Model::new(&file, &mut layers, &mut steps).unwrap();
    let shapes = Shapes::new(model.config());
    let tensors: Vec<Tensor> = shapes.iter().collect();
    assert_eq!(tensors.len(), shapes.count());
    let mut next = 0;
    for (number, tensor) in tensors.iter().enumerate() {
        assert_eq!(tensor.first, next);
        next += tensor.len();
        assert_eq!(shapes.number(tensor.layer, tensor.part), number);
        assert_eq!(shapes.tensor(tensor.layer, tensor.part), *tensor);
    }
    assert_eq!(next, shapes.values());
    let in_file: Vec<String> = file
        .tensors()
        .map(|tensor| tensor.name.to_owned())
        .collect();
    assert!(tensors.iter().map(name).eq(in_file));
    let sizes = file
        .tensors()
        .map(|tensor| tensor.shape.elements() as usize);
    assert!(tensors.iter().map(Tensor::len).eq(sizes));
}
