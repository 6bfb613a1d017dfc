//! Language models: two with random weights, one ternary and one with many types, with all the ways of input that
//! must not matter.
//!
//! Their files in `models/` were written by tercet-host's writer from a seed.

use super::Digest;
use crate::engine::ModelEngine;
use crate::gguf::Reader;
use crate::model::{
    Cache, CacheShape, CacheType, Codes, DecoderLayer, Memory, Model, ModelError, PAGE, Pattern,
    Place, Row, Sampler, Sequence, decode, nll,
};
use crate::number::Random;

/// Width 64, 2 layers, 16 query heads with one key head, Q2_0 with one scale per tensor.
pub(super) static TERNARY: [u8; include_bytes!("../models/ternary.gguf").len()] =
    *include_bytes!("../models/ternary.gguf");
/// Width 32, 1 layer, 8 query heads with two key heads; Q8_0, Q4_1, Q5_0, Q5_1, BF16, F16, F32; biases and factors of
/// frequencies.
static LLAMA: [u8; include_bytes!("../models/llama.gguf").len()] =
    *include_bytes!("../models/llama.gguf");

const LAYERS: usize = 2;
const PAIRS: usize = 2;
const VOCABULARY: usize = 297;

const NO_ROW: Row = Row {
    token: 0,
    sequence: 0,
    logits: false,
};

/// The way in which a model gets its input.
#[derive(Clone, Copy)]
struct Feed {
    kind: CacheType,
    pattern: Pattern,
    /// Number of tokens of the first sequence.
    tokens: usize,
    /// True if there is a second sequence.
    beside: bool,
    /// Number of rows of the first sequence per step.
    chunk: usize,
    /// Distance between positions whose logits are digested; the last is always digested.
    every: usize,
}

impl Feed {
    const fn new(kind: CacheType, tokens: usize) -> Self {
        Self {
            kind,
            pattern: Pattern::FULL,
            tokens,
            beside: false,
            chunk: 1,
            every: 1,
        }
    }

    const fn chunks(self, chunk: usize) -> Self {
        Self { chunk, ..self }
    }

    const fn with(self, window: u32, sinks: u32, stride: u32) -> Self {
        let pattern = Pattern {
            window,
            sinks,
            stride,
        };
        Self { pattern, ..self }
    }

    const fn beside(self) -> Self {
        Self {
            beside: true,
            ..self
        }
    }

    const fn every(self, every: usize) -> Self {
        Self { every, ..self }
    }
}

/// Memory for a model's run.
struct CaseMemory<'r> {
    narrow: &'r mut [i8],
    wide: &'r mut [i16],
    scales: &'r mut [f32],
    free: &'r mut [u32],
    tables: &'r mut [u32],
    memory: Memory<'r>,
    rows: &'r mut [Row],
    logits: &'r mut [f32],
}

/// Functions that run a model in their own memory: number of pages, and a page's codes of both widths; number of
/// rows, and a row's floats, bytes, halves and sums.
macro_rules! rooms {
    ($($name:ident: $pages:literal pages of $narrow:literal and $wide:literal codes, $rows:literal rows of $floats:literal floats, $bytes:literal bytes, $halves:literal halves, $sums:literal sums;)+) => {
        $(#[inline(never)]
        fn $name<E: ModelEngine>(engine: &mut E, file: &[u8], feed: Feed) -> u64 {
            let mut room = CaseMemory {
                narrow: &mut [0; $pages * $narrow],
                wide: &mut [0; $pages * $wide],
                scales: &mut [0.0; $pages * 256],
                free: &mut [0; $pages],
                tables: &mut [0; 2 * $pages],
                memory: Memory {
                    places: &mut [Place::default(); $rows],
                    floats: &mut [0.0; $rows * $floats + 192],
                    bytes: &mut [0; $rows * $bytes],
                    halves: &mut [0; $rows * $halves],
                    longs: &mut [0; $rows * $sums],
                    words: &mut [],
                },
                rows: &mut [NO_ROW; $rows],
                logits: &mut [0.0; VOCABULARY],
            };
            fed(engine, file, feed, &mut room)
        })+
    };
}

rooms! {
    ternary_page: 1 pages of 1024 and 1024 codes, 1 rows of 224 floats, 64 bytes, 64 halves, 8 sums;
    ternary_pages: 2 pages of 1024 and 0 codes, 2 rows of 224 floats, 64 bytes, 64 halves, 8 sums;
    ternary_long: 10 pages of 1024 and 0 codes, 64 rows of 256 floats, 64 bytes, 128 halves, 8 sums;
    llama_page: 1 pages of 1024 and 1024 codes, 1 rows of 240 floats, 128 bytes, 64 halves, 16 sums;
    llama_pages: 2 pages of 512 and 512 codes, 1 rows of 301 floats, 128 bytes, 64 halves, 16 sums;
    llama_long: 10 pages of 512 and 512 codes, 64 rows of 256 floats, 128 bytes, 64 halves, 16 sums;
}

/// Cases for small machines: in at most 15.5 KiB, without the file.
pub(super) fn run_engine<E: ModelEngine>(
    engine: &mut E,
    report: &mut dyn FnMut(&'static str, u64),
) {
    use CacheType::{Fp8, Int8, Int16, Int16Int8};
    let ones = Feed::new(Int8, 65).every(6);
    report("model/ternary/ones", ternary_pages(engine, &TERNARY, ones));
    report(
        "model/ternary/twos",
        ternary_pages(engine, &TERNARY, ones.chunks(2)),
    );
    report(
        "model/ternary/batch",
        ternary_pages(engine, &TERNARY, Feed::new(Int8, 14).beside()),
    );
    let stride = Feed::new(Int8, 70).with(8, 2, 5).every(7);
    report(
        "model/ternary/stride",
        ternary_pages(engine, &TERNARY, stride),
    );
    let window = Feed::new(Int8, 517).with(20, 0, 0).every(64);
    report(
        "model/ternary/window",
        ternary_pages(engine, &TERNARY, window),
    );
    for (name, kind) in [
        ("model/ternary/int16-8", Int16Int8),
        ("model/ternary/int16", Int16),
        ("model/ternary/fp8", Fp8),
    ] {
        report(name, ternary_page(engine, &TERNARY, Feed::new(kind, 9)));
    }
    let ones = Feed::new(Int16Int8, 65).every(6);
    report("model/llama/ones", llama_pages(engine, &LLAMA, ones));
    let stride = Feed::new(Int16Int8, 70).with(8, 2, 5).every(7);
    report("model/llama/stride", llama_pages(engine, &LLAMA, stride));
    let window = Feed::new(Int16Int8, 517).with(20, 0, 0).every(64);
    report("model/llama/window", llama_pages(engine, &LLAMA, window));
    for (name, kind) in [
        ("model/llama/int8", Int8),
        ("model/llama/int16", Int16),
        ("model/llama/fp8", Fp8),
    ] {
        report(name, llama_page(engine, &LLAMA, Feed::new(kind, 9)));
    }
}

/// Cases that need the memory of larger machines: steps of three rows, sinks, and attention to every position, at 517
/// positions and at one less than the context, in steps of 64.
pub(super) fn run_long<E: ModelEngine>(engine: &mut E, report: &mut dyn FnMut(&'static str, u64)) {
    let long = |kind, tokens| Feed::new(kind, tokens).chunks(64).every(64);
    let (narrow, wide) = (CacheType::Int8, CacheType::Int16Int8);
    let threes = |kind| Feed::new(kind, 65).every(6).chunks(3);
    report(
        "model/ternary/threes",
        ternary_long(engine, &TERNARY, threes(narrow)),
    );
    report(
        "model/llama/threes",
        llama_long(engine, &LLAMA, threes(wide)),
    );
    report(
        "model/llama/batch",
        llama_long(engine, &LLAMA, Feed::new(wide, 14).beside()),
    );
    let sinks = |kind| Feed::new(kind, 517).with(20, 3, 0).every(64);
    report(
        "model/ternary/sinks",
        ternary_long(engine, &TERNARY, sinks(narrow)),
    );
    report("model/llama/sinks", llama_long(engine, &LLAMA, sinks(wide)));
    report(
        "model/ternary/517",
        ternary_long(engine, &TERNARY, long(narrow, 517)),
    );
    report(
        "model/ternary/639",
        ternary_long(engine, &TERNARY, long(narrow, 639)),
    );
    report(
        "model/llama/517",
        llama_long(engine, &LLAMA, long(wide, 517)),
    );
    report(
        "model/llama/639",
        llama_long(engine, &LLAMA, long(wide, 639)),
    );
}

/// Runs the model of a file and digests logits.
fn fed<E: ModelEngine>(engine: &mut E, file: &[u8], feed: Feed, room: &mut CaseMemory<'_>) -> u64 {
    let mut digest = Digest::new();
    let (mut layers, mut steps) = ([DecoderLayer::EMPTY; LAYERS], [0; PAIRS]);
    let Some(file) = digest.outcome(Reader::new(file)) else {
        return digest.value();
    };
    let model = Model::new(&file, &mut layers, &mut steps);
    if let Some(model) = digest.outcome(model) {
        let done = feed_rows(engine, &model, feed, room, &mut digest);
        digest.outcome(done);
    }
    digest.value()
}

fn feed_rows<E: ModelEngine>(
    engine: &mut E,
    model: &Model<'_, '_>,
    feed: Feed,
    room: &mut CaseMemory<'_>,
    digest: &mut Digest,
) -> Result<(), E::Failure> {
    let kind = feed.kind;
    let (narrow_keys, narrow_values) = match (kind.wide_keys(), kind.wide_values()) {
        (false, _) => room.narrow.split_at_mut(room.narrow.len() / 2),
        _ => (&mut [][..], &mut *room.narrow),
    };
    let (wide_keys, wide_values) = match kind.wide_values() {
        true => room.wide.split_at_mut(room.wide.len() / 2),
        false => (&mut *room.wide, &mut [][..]),
    };
    let of = |wide: bool, narrow, codes| match wide {
        true => Codes::Wide(codes),
        false => Codes::Narrow(narrow),
    };
    let mut cache = Cache::new(
        CacheShape::new(model.config(), kind),
        of(kind.wide_keys(), narrow_keys, wide_keys),
        of(kind.wide_values(), narrow_values, wide_values),
        room.scales,
        room.free,
    )?;
    let pages = room.tables.len() / 2;
    let (first, second) = room.tables.split_at_mut(pages);
    // As many positions as the pages have.
    let context = pages as u32 * PAGE;
    let chunk = feed.chunk as u32;
    let mut sequences = [
        Sequence::new(feed.pattern, kind, context, chunk, first)?,
        Sequence::new(feed.pattern, kind, context, 2, second)?,
    ];
    let vocabulary = model.config().vocabulary;
    let mut random = Random::new(71);
    let mut fault = None;
    let (mut position, mut beside) = (0usize, 0usize);
    while position < feed.tokens {
        let count = feed.chunk.min(feed.tokens - position);
        let mut used = 0usize;
        for (row, at) in room.rows.iter_mut().zip(position..).take(count) {
            *row = Row {
                token: random.below(vocabulary as u64) as u32,
                sequence: 0,
                logits: at % feed.every == feed.every - 1 || at + 1 == feed.tokens,
            };
            used += 1;
        }
        // The second sequence has a token in every other step; one row per step asks for logits.
        if feed.beside {
            for row in room.rows.iter_mut().skip(used).take(position % 2) {
                *row = Row {
                    token: random.below(vocabulary as u64) as u32,
                    sequence: 1,
                    logits: false,
                };
                used += 1;
            }
            beside = used - 1;
            for (index, row) in room.rows.iter_mut().enumerate() {
                row.logits = index == position % used;
            }
        }
        let rows = room.rows.get(..used).unwrap_or_default();
        let asked = rows.iter().filter(|row| row.logits).count();
        let caches = (&mut cache, &mut sequences[..]);
        decode(
            engine,
            model,
            caches,
            rows,
            &mut room.memory,
            room.logits,
            &mut |error| {
                fault = Some(error);
            },
        )?;
        digest.f32s(room.logits.get(..asked * vocabulary).unwrap_or_default());
        position += count;
    }
    digest.u64(beside as u64);
    for sequence in &mut sequences {
        digest.u64(sequence.len().into());
        sequence.reset(&mut cache);
    }
    // All are returned.
    let (pages, free) = cache.pages();
    digest.u64((pages - free) as u64);
    match fault {
        Some(fault) => Err(ModelError::into(fault)),
        None => Ok(()),
    }
}

/// Draws and costs, which do not depend on an engine.
pub(super) fn run(report: &mut dyn FnMut(&'static str, u64)) {
    report("model/sample", sample());
}

#[inline(never)]
fn sample() -> u64 {
    const TOKENS: usize = 97;
    let mut digest = Digest::new();
    let mut random = Random::new(72);
    let mut scratch = [0; TOKENS];
    for position in 0..40u64 {
        let mut logits = [0.0; TOKENS];
        for logit in &mut logits {
            // Including ties.
            *logit = (random.below(2001) as f32 - 1000.0) / 64.0;
        }
        digest.u64(nll(&logits, position as usize).unwrap_or(-1) as u64);
        let sampler = Sampler {
            temperature: (position % 4) as f32 * 0.75,
            top_k: (position % 3) as usize * 7,
            top_p: if position.is_multiple_of(5) {
                0.75
            } else {
                1.0
            },
            min_p: if position.is_multiple_of(7) {
                0.03125
            } else {
                0.0
            },
            penalty: if position.is_multiple_of(2) {
                1.25
            } else {
                1.0
            },
            seed: 9,
            stream: position as u32 % 2,
        };
        let recent = [3, 90, 3, position as u32, 500];
        let token = sampler.draw(&mut logits, &recent, position, &mut scratch);
        digest.u64(token.map_or(u64::MAX, u64::from));
        digest.f32s(&logits);
    }
    digest.value()
}
