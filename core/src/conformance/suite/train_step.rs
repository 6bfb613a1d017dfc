//! A training step of the whole ternary model, and larger gradients of matrices.

use super::Digest;
use super::model::TERNARY;
use super::train::{Weights, apply};
use crate::block::{self, Format};
use crate::engine::TrainEngine;
use crate::gguf::{Reader, TensorInfo};
use crate::model::{
    self, Cache, CacheShape, CacheType, Codes, DecoderLayer, Model, ModelError, Pattern, Place,
    Sequence,
};
use crate::number::Random;
use crate::train::{
    self, Activations, AdamW, Batch, GAIN_UNIT, Loss, Memory, Parameter, Shapes, Transposed,
    Update, WEIGHT_FLOOR,
};

/// Number of values of all tensors.
const VALUES: usize = 59_136;
/// Number of values of the largest matrix except the embedding.
const MATRIX: usize = 4096;
const WIDTH: usize = 64;
const TENSORS: usize = 24;
const VOCABULARY: usize = 259;
const LENGTH: usize = 5;
const ROWS: usize = 2 * LENGTH;

/// Cases that need the memory of larger machines.
pub(super) fn run_long<E: TrainEngine>(engine: &mut E, report: &mut dyn FnMut(&'static str, u64)) {
    report("train/weights/130", weights(engine));
    report("train/step", step(engine));
}

/// Three groups, and more outputs and columns than tiles have.
#[inline(never)]
fn weights<E: TrainEngine>(engine: &mut E) -> u64 {
    let mut digest = Digest::new();
    for shape in [
        (130, 130, 37, 100),
        (130, 130, 64, 64),
        (20, 80, 33, 7),
        (64, 70, 33, 7),
    ] {
        let mut room = Weights {
            dy: &mut [0.0; 130 * 64],
            x: &mut [0; 130 * 100],
            scales: &mut [0.0; 130],
            codes: &mut [0; 130 * 64],
            exponents: &mut [0; 64 * 4],
            partial: &mut [0; 100],
            sums: &mut [0; 64 * 64],
        };
        room.gradient(engine, shape, &mut digest);
    }
    digest.value()
}

/// The codes for gradients of inputs, and scales.
struct Columns {
    codes: [u8; VALUES],
    scales: [f32; TENSORS],
    rows: [f32; VOCABULARY],
}

/// Sums of gradients of two short sequences, and the codes after an update.
#[inline(never)]
fn step<E: TrainEngine>(engine: &mut E) -> u64 {
    let mut digest = Digest::new();
    let (mut layers, mut steps) = ([DecoderLayer::EMPTY; 2], [0; 2]);
    let Some(file) = digest.outcome(Reader::new(&TERNARY)) else {
        return digest.value();
    };
    let model = Model::new(&file, &mut layers, &mut steps);
    let Some(model) = digest.outcome(model) else {
        return digest.value();
    };
    let mut columns = Columns {
        codes: [0; VALUES],
        scales: [0.0; TENSORS],
        rows: [0.0; VOCABULARY],
    };
    let mut sums = [0; VALUES];
    let shapes = Shapes::new(model.config());
    transpose(&file, &shapes, &mut columns);
    let cost = gradients(engine, &model, &columns, &mut sums);
    if let Some(cost) = digest.outcome(cost) {
        digest.u64(cost as u64);
        sums.iter().for_each(|&sum| digest.u64(sum as u64));
        update(&file, &shapes, &sums, &mut digest);
    }
    digest.value()
}

/// Decodes as many values of a tensor as there is space for, from one of its rows of 64 on. The bytes of a model that
/// was read are always valid.
fn decode(info: &TensorInfo<'_>, part: Parameter, first: usize, out: &mut [f32]) {
    let format = match part {
        Parameter::Embedding => Format::Q8_0,
        part if part.is_ternary() => Format::Q2_0,
        _ => {
            for (out, bytes) in out.iter_mut().zip(info.data.as_chunks().0) {
                *out = f32::from_le_bytes(*bytes);
            }
            return;
        }
    };
    let bytes = |values: usize| values / format.len() * format.bytes();
    let rest = info.data.get(bytes(first * WIDTH)..);
    let own = rest.and_then(|rest| rest.get(..bytes(out.len())));
    let _ = block::decode(format, own.unwrap_or_default(), out);
}

/// Writes the codes of all matrices by columns: each value divided by its matrix's largest or, in the embedding, by
/// 1/127 of its row's largest.
#[inline(never)]
fn transpose(file: &Reader<'_>, shapes: &Shapes<'_>, columns: &mut Columns) {
    let mut all = [0; VOCABULARY * WIDTH];
    for ((tensor, info), scale) in (shapes.iter().zip(file.tensors())).zip(&mut columns.scales) {
        if tensor.part.is_gains() {
            continue;
        }
        let (codes, _) = all.split_at_mut(tensor.len().min(VOCABULARY * WIDTH));
        let largest = |row: &[f32; WIDTH]| row.iter().fold(0f32, |most, x| most.max(x.abs()));
        let mut values = [0.0; WIDTH];
        for row in 0..tensor.rows {
            decode(&info, tensor.part, row, &mut values);
            *scale = scale.max(largest(&values));
        }
        let mut rows = columns.rows.iter_mut();
        for (row, codes) in codes.chunks_exact_mut(WIDTH).enumerate() {
            decode(&info, tensor.part, row, &mut values);
            let mut own = *scale;
            if tensor.part == Parameter::Embedding {
                own = largest(&values) / 127.0;
                if let Some(row) = rows.next() {
                    *row = own;
                }
            }
            for (code, value) in codes.iter_mut().zip(values) {
                *code = (value / own) as i8;
            }
        }
        train::transpose(codes, WIDTH, tensor.of_mut(&mut columns.codes));
    }
}

/// Adds the gradients of two sequences to the sums. A fault counts as an error here.
#[inline(never)]
fn gradients<E: TrainEngine>(
    engine: &mut E,
    model: &Model<'_, '_>,
    columns: &Columns,
    sums: &mut [i64],
) -> Result<Loss, E::Failure> {
    const CODES: usize = 2 * 2 * 64 * 4;
    let transposed = Transposed {
        codes: &columns.codes,
        scales: &columns.scales,
        rows: &columns.rows,
    };
    let (mut keys, mut values, mut scales) = ([0; CODES], [0; CODES], [0.0; CODES]);
    let (mut free, mut tables) = ([0; 2], [[0]; 2]);
    let (keys, values) = (Codes::Narrow(&mut keys), Codes::Narrow(&mut values));
    let shape = CacheShape::new(model.config(), CacheType::Int8);
    let mut cache = Cache::new(shape, keys, values, &mut scales, &mut free)?;
    let [first, second] = &mut tables;
    let new = |table| Sequence::new(Pattern::FULL, CacheType::Int8, 64, 64, table);
    let mut sequences = [new(first)?, new(second)?];
    let mut random = Random::new(98);
    let mut text = [[0; ROWS]; 2];
    for token in text.as_flattened_mut() {
        *token = random.below(VOCABULARY as u64) as u32;
    }
    let [tokens, targets] = &text;
    let batch = Batch {
        tokens,
        targets,
        soft: None,
        length: LENGTH,
        recompute: true,
        activations: Activations::F32,
    };
    let mut memory = Memory {
        model: model::Memory {
            places: &mut [Place::default(); LENGTH],
            floats: &mut [0.0; 1216],
            bytes: &mut [0; 320],
            halves: &mut [0; 320],
            longs: &mut [0; 64],
            words: &mut [0; 136],
        },
        floats: &mut [0.0; 6848],
        kept: &mut [],
        bytes: &mut [0; 5248],
        ints: &mut [0; 704],
        longs: &mut [0; 516],
    };
    let caches = (&mut cache, &mut sequences[..]);
    let model = (model, &transposed);
    let found = train::gradients(engine, model, &batch, caches, &mut memory, sums)?;
    // This model never causes a fault.
    found.map_err(|_| ModelError::TooLarge.into())
}

/// Digests the codes and scales after an update of weights near the file's.
#[inline(never)]
fn update(file: &Reader<'_>, shapes: &Shapes<'_>, sums: &[i64], digest: &mut Digest) {
    let adamw = AdamW::DEFAULT;
    let unit_of = |part: Parameter| match part.is_gains() {
        true => train::unit(GAIN_UNIT, ROWS as u64),
        false => train::unit(WEIGHT_FLOOR, ROWS as u64),
    };
    let squares = shapes.iter().fold(0.0, |sum, tensor| {
        sum + f64::from(train::squares(tensor.of(sums), unit_of(tensor.part)))
    });
    digest.f64(squares);
    let update = Update {
        rate: 0.02,
        clip: adamw.clip(squares),
        powers: [adamw.beta1.into(), adamw.beta2.into()],
    };
    let mut random = Random::new(99);
    let (mut weights, mut codes) = ([0.0; MATRIX], [0; MATRIX]);
    for (tensor, info) in shapes.iter().zip(file.tensors()) {
        // For the embedding, one row at a time.
        let len = match tensor.part {
            Parameter::Embedding => WIDTH,
            _ => tensor.len(),
        };
        for (piece, sums) in tensor.of(sums).chunks_exact(len).enumerate() {
            let weights = weights.get_mut(..len).unwrap_or_default();
            decode(&info, tensor.part, piece, weights);
            let pieces = weights.chunks_mut(WIDTH).zip(sums.chunks(WIDTH));
            for (weights, sums) in pieces {
                for weight in weights.iter_mut() {
                    *weight += (random.below(1024) as f32 - 512.0) * (1.0 / 8192.0);
                }
                let (mut first, mut second) = ([0.0; WIDTH], [0.0; WIDTH]);
                let moments = (&mut first[..], &mut second[..]);
                let own = (sums, unit_of(tensor.part));
                let decays = !tensor.part.is_gains();
                apply(&adamw, &update, (own, decays), weights, moments);
            }
            let codes = codes.get_mut(..len).unwrap_or_default();
            let scale = match tensor.part {
                Parameter::Embedding => train::row_codes(weights, codes),
                part if part.is_ternary() => train::ternary(weights, codes),
                _ => {
                    digest.f32s(weights);
                    continue;
                }
            };
            digest.u64(scale.map_or(u64::MAX, |scale| scale.to_bits().into()));
            digest.i8s(codes);
        }
    }
}
