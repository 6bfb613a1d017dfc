//! A text drawn in pieces is the text drawn by whole steps.

use std::fmt::Debug;

use tercet_core::block::BlockError;
use tercet_core::engine::ModelEngine;
use tercet_core::gguf::Reader;
use tercet_core::linear::Layout;
use tercet_core::linear::network::LayerSize;
use tercet_core::model::{
    Architecture, Cache, CacheShape, CacheType, Codes, Config, DecoderLayer, Draws, End, Event,
    Gate, Generator, Memory, Model, ModelError, ModelParts, Needs, PAGE, Pattern, Place, Row,
    Sampler, Sequence, Values, decode,
};
use tercet_core::scalar::{Only, Scalar};

const TERNARY: &[u8] = include_bytes!("../src/conformance/models/ternary.gguf");
const CONTEXT: u32 = 128;
const PAGES: usize = (CONTEXT / PAGE) as usize;
const PROMPT: [u32; 4] = [256, 72, 105, 33];
const WARM: Sampler = Sampler {
    temperature: 0.9,
    top_k: 90,
    penalty: 1.5,
    seed: 5,
    ..Sampler::GREEDY
};

/// All memory of a run.
struct RunMemory {
    places: [Place; 4],
    floats: Vec<f32>,
    bytes: Vec<i8>,
    halves: Vec<i16>,
    longs: Vec<i64>,
    words: Vec<u32>,
    keys: Vec<i8>,
    values: Vec<i8>,
    scales: Vec<f32>,
    free: [u32; PAGES],
    table: [u32; PAGES],
    logits: Vec<f32>,
}

impl RunMemory {
    fn new(model: &Model<'_, '_>) -> Self {
        let needs = Needs::of(&Scalar, model, Pattern::FULL, CONTEXT, 4).unwrap();
        let shape = CacheShape::new(model.config(), CacheType::Int8);
        let vocabulary = model.config().vocabulary;
        Self {
            places: [Place::default(); 4],
            floats: vec![f32::NAN; needs.floats],
            bytes: vec![77; needs.bytes],
            halves: vec![77; needs.halves],
            longs: vec![77; needs.longs],
            words: vec![77; needs.words.max(vocabulary)],
            keys: vec![1; PAGES * shape.codes()],
            values: vec![1; PAGES * shape.codes()],
            scales: vec![1.0; 2 * PAGES * shape.scales()],
            free: [0; PAGES],
            table: [0; PAGES],
            logits: vec![f32::NAN; vocabulary],
        }
    }

    /// The cache and its one sequence, memory, and room for logits.
    fn parts<'m>(
        &'m mut self,
        model: &Model<'_, '_>,
    ) -> ((Cache<'m>, Sequence<'m>), Memory<'m>, &'m mut [f32]) {
        let (keys, values) = (
            Codes::Narrow(&mut self.keys),
            Codes::Narrow(&mut self.values),
        );
        let shape = CacheShape::new(model.config(), CacheType::Int8);
        let cache = Cache::new(shape, keys, values, &mut self.scales, &mut self.free).unwrap();
        let kind = CacheType::Int8;
        let sequence = Sequence::new(Pattern::FULL, kind, CONTEXT, 4, &mut self.table).unwrap();
        let memory = Memory {
            places: &mut self.places,
            floats: &mut self.floats,
            bytes: &mut self.bytes,
            halves: &mut self.halves,
            longs: &mut self.longs,
            words: &mut self.words,
        };
        ((cache, sequence), memory, &mut self.logits)
    }
}

fn with_model<T>(run: impl FnOnce(&Model<'_, '_>) -> T) -> T {
    let reader = Reader::new(TERNARY).unwrap();
    let (mut layers, mut steps) = ([DecoderLayer::EMPTY; 2], [0; 2]);
    run(&Model::new(&reader, &mut layers, &mut steps).unwrap())
}

/// Tokens by whole steps, and the bits of the logits that they are drawn from; `recent` tokens are looked back at.
fn by_steps(model: &Model<'_, '_>, tokens: usize, recent: usize) -> (Vec<u32>, Vec<u32>) {
    let mut room = RunMemory::new(model);
    let ((mut cache, sequence), mut memory, logits) = room.parts(model);
    let mut sequences = [sequence];
    let (mut text, mut bits) = (PROMPT.to_vec(), Vec::new());
    let mut scratch = vec![0; logits.len()];
    let mut next = PROMPT.to_vec();
    while text.len() < PROMPT.len() + tokens {
        let last = next.len() - 1;
        let rows: Vec<Row> = (next.iter().enumerate())
            .map(|(at, &token)| Row {
                token,
                sequence: 0,
                logits: at == last,
            })
            .collect();
        let caches = (&mut cache, &mut sequences[..]);
        let mut none = |error| panic!("{error}");
        decode(
            &mut Scalar,
            model,
            caches,
            &rows,
            &mut memory,
            logits,
            &mut none,
        )
        .unwrap();
        bits.extend(logits.iter().map(|logit| logit.to_bits()));
        let seen = &text[text.len() - recent.min(text.len())..];
        let position = text.len() as u64;
        let token = WARM.draw(logits, seen, position, &mut scratch).unwrap();
        text.push(token);
        next = vec![token];
    }
    (text.split_off(PROMPT.len()), bits)
}

/// Draws by pieces until it is over.
fn drain<E: ModelEngine<Failure: Debug>>(
    generator: &mut Generator<'_, E>,
) -> (Vec<u32>, Vec<u32>, usize, End) {
    let (mut tokens, mut bits, mut pieces) = (Vec::new(), Vec::new(), 0);
    loop {
        match generator.poll().unwrap() {
            Event::Working => pieces += 1,
            Event::Logits => bits.extend(generator.logits().iter().map(|logit| logit.to_bits())),
            Event::Token(token) => tokens.push(token),
            Event::Over(end) => return (tokens, bits, pieces, end),
        }
    }
}

#[test]
fn pieces_of_work_draw_what_whole_steps_do() {
    with_model(|model| {
        let expected = by_steps(model, 9, 5);
        let mut room = RunMemory::new(model);
        let (caches, memory, logits) = room.parts(model);
        let mut recent = [0; 5];
        let draws = Draws {
            logits,
            recent: &mut recent,
            sampler: WARM,
            ends: &[],
        };
        let mut generator = Generator::new(Scalar, model, caches, memory, draws);
        assert_eq!(generator.poll(), Ok(Event::Over(End::Length)));
        // And once more, as if there had been no text before.
        for _ in 0..2 {
            generator.begin(&PROMPT, 9);
            let (tokens, bits, pieces, end) = drain(&mut generator);
            assert_eq!((tokens, bits), expected);
            assert_eq!((end, generator.len()), (End::Length, 12));
            // An embedding, two layers and a head of each of 12 tokens, of which those of logits are told as such.
            assert_eq!(pieces, 12 * 4 - 9);
        }
        generator.begin(&PROMPT, 0);
        assert_eq!(generator.poll(), Ok(Event::Over(End::Length)));
        generator.begin(&[], 3);
        assert_eq!(generator.poll(), Ok(Event::Over(End::Length)));
    });
}

#[test]
fn a_text_ends_with_a_token_or_with_the_context() {
    with_model(|model| {
        let (expected, _) = by_steps(model, 9, 0);
        let place = (1..9).find(|&at| !expected[..at].contains(&expected[at]));
        let place = place.unwrap();
        let ends = [expected[place]];
        let mut room = RunMemory::new(model);
        let (caches, memory, logits) = room.parts(model);
        let draws = Draws {
            logits,
            recent: &mut [],
            sampler: WARM,
            ends: &ends,
        };
        let mut generator = Generator::new(Scalar, model, caches, memory, draws);
        generator.begin(&PROMPT, 9);
        let (tokens, _, _, end) = drain(&mut generator);
        assert_eq!((&tokens[..], end), (&expected[..=place], End::Token));
    });
    with_model(|model| {
        let mut room = RunMemory::new(model);
        let (caches, memory, logits) = room.parts(model);
        let sampler = Sampler::GREEDY;
        let draws = Draws {
            logits,
            recent: &mut [],
            sampler,
            ends: &[],
        };
        let mut generator = Generator::new(Scalar, model, caches, memory, draws);
        generator.begin(&PROMPT, u32::MAX);
        let (tokens, _, _, end) = drain(&mut generator);
        // The last one is drawn, and has no position.
        let all = CONTEXT as usize - PROMPT.len() + 1;
        assert_eq!((tokens.len(), end), (all, End::Context));
        assert_eq!(generator.len(), CONTEXT);
    });
}

/// The parts of a model of that architecture with that type of cache.
const fn parts(architecture: Architecture, cache: CacheType, floats: bool) -> u32 {
    let config = Config {
        architecture,
        gate: Gate::Silu,
        layers: 2,
        width: 256,
        hidden: 256,
        heads: 4,
        kv_heads: 2,
        head: 64,
        context: 128,
        vocabulary: 259,
        eps: 1e-5,
        rope_base: 10_000.0,
        rope_factor: 1.0,
        cache,
        pattern: Pattern::FULL,
    };
    ModelParts::of(&config, cache, floats).bits()
}

#[test]
fn an_engine_of_some_parts_runs_models_of_those_and_no_others() {
    fn text<E: ModelEngine<Failure: Debug>>(engine: E) -> Result<(Vec<u32>, Vec<u32>), E::Failure> {
        with_model(|model| {
            let mut room = RunMemory::new(model);
            let (caches, memory, logits) = room.parts(model);
            let draws = Draws {
                logits,
                recent: &mut [],
                sampler: WARM,
                ends: &[],
            };
            let mut generator = Generator::new(engine, model, caches, memory, draws);
            generator.begin(&PROMPT, 9);
            let first = generator.poll();
            if let Err(error) = first {
                assert_eq!(generator.poll().unwrap(), Event::Over(End::Failed));
                return Err(error);
            }
            let (tokens, bits, ..) = drain(&mut generator);
            Ok((tokens, bits))
        })
    }
    use Architecture::{BitNet, Llama};
    use CacheType::{Fp8, Int8};
    const ALL: u32 = u32::MAX;
    const OWN: u32 = parts(BitNet, Int8, false);
    let expected = text(Scalar);
    assert!(expected.is_ok());
    assert_eq!(text(Only::<ALL>), expected);
    assert_eq!(text(Only::<ALL, OWN>), expected);
    // More than the model asks for.
    assert_eq!(
        text(Only::<ALL, { OWN | parts(Llama, Fp8, true) }>),
        expected
    );
    // Other activations, another cache.
    assert_eq!(
        text(Only::<ALL, { parts(Llama, Int8, false) }>),
        Err(ModelError::LeftOut)
    );
    assert_eq!(
        text(Only::<ALL, { parts(BitNet, Fp8, false) }>),
        Err(ModelError::LeftOut)
    );
    // The embedding has another layout.
    const BYTES: u32 = Layout::set(&[Layout::Int8]);
    let error = BlockError::LeftOut;
    assert_eq!(text(Only::<BYTES, OWN>), Err(ModelError::Block { error }));
}

#[test]
fn a_model_with_matrices_of_floats_asks_for_them() {
    let llama = include_bytes!("../src/conformance/models/llama.gguf");
    let reader = Reader::new(llama).unwrap();
    let (mut layers, mut steps) = ([DecoderLayer::EMPTY; 2], vec![0; 512]);
    let model = Model::new(&reader, &mut layers, &mut steps).unwrap();
    let floats = model
        .layers()
        .iter()
        .flat_map(DecoderLayer::weights)
        .any(|weights| matches!(weights.values, Values::Floats(_)));
    assert!(floats);
    const WITHOUT: u32 = parts(Architecture::Llama, CacheType::Int8, false);
    let mut room = RunMemory::new(&model);
    let (caches, memory, logits) = room.parts(&model);
    let draws = Draws {
        logits,
        recent: &mut [],
        sampler: WARM,
        ends: &[],
    };
    let mut generator =
        Generator::new(Only::<{ u32::MAX }, WITHOUT>, &model, caches, memory, draws);
    generator.begin(&PROMPT, 1);
    assert_eq!(generator.poll(), Err(ModelError::LeftOut));
}

#[test]
fn what_fails_is_told_once_and_ends_the_text() {
    with_model(|model| {
        let short = |cut: &dyn Fn(&mut RunMemory), sampler: Sampler, prompt: &'static [u32]| {
            let mut room = RunMemory::new(model);
            cut(&mut room);
            let (caches, memory, logits) = room.parts(model);
            let draws = Draws {
                logits,
                recent: &mut [],
                sampler,
                ends: &[],
            };
            let mut generator = Generator::new(Scalar, model, caches, memory, draws);
            generator.begin(prompt, 2);
            let error = loop {
                match generator.poll() {
                    Ok(Event::Working | Event::Logits) => {}
                    Ok(event) => panic!("{event:?}"),
                    Err(error) => break error,
                }
            };
            assert_eq!(generator.poll(), Ok(Event::Over(End::Failed)));
            error
        };
        let floats = short(&|room| room.floats.truncate(100), WARM, &PROMPT);
        assert!(
            matches!(
                floats,
                ModelError::Room {
                    memory: "floats",
                    found: 100,
                    ..
                }
            ),
            "{floats}"
        );
        let logits = short(&|room| room.logits.truncate(9), WARM, &PROMPT);
        assert!(
            matches!(
                logits,
                ModelError::Room {
                    memory: "logits",
                    found: 9,
                    ..
                }
            ),
            "{logits}"
        );
        let words = short(&|room| room.words.truncate(9), WARM, &PROMPT);
        assert_eq!(words, ModelError::Logits);
        let cold = Sampler {
            temperature: f32::NAN,
            ..WARM
        };
        assert_eq!(short(&|_| {}, cold, &PROMPT), ModelError::Logits);
        let token = short(&|_| {}, WARM, &[256, 9999]);
        assert_eq!(
            token,
            ModelError::Token {
                row: 0,
                token: 9999
            }
        );
    });
}

#[test]
fn sizes_alone_tell_what_a_model_needs() {
    with_model(|model| {
        let mut matrices = Vec::new();
        let all = model.layers().iter().flat_map(DecoderLayer::weights);
        for weights in all.chain([model.head()]) {
            let Values::Blocks(layer) = &weights.values else {
                panic!("a matrix of floats")
            };
            let weights = layer.weights();
            matrices.push(LayerSize::new(
                weights.layout(),
                weights.rows(),
                weights.cols(),
            ));
        }
        let sinks = Pattern {
            window: 20,
            sinks: 3,
            stride: 0,
        };
        for (pattern, rows) in [(Pattern::FULL, 1), (Pattern::FULL, 5), (sinks, 3)] {
            let needs = Needs::of(&Scalar, model, pattern, CONTEXT, rows).unwrap();
            let words = LayerSize::fast_scratch_len(&matrices);
            let expected = Needs { words, ..needs };
            let found = Needs::of_sizes(model.config(), &matrices, pattern, CONTEXT, rows);
            assert_eq!(found, expected);
        }
    });
}
