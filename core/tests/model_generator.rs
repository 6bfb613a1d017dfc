//! A text drawn in pieces is the text drawn by whole steps.

use tercet_core::gguf::Reader;
use tercet_core::linear::network::LayerSize;
use tercet_core::model::{
    Cache, CacheShape, CacheType, Codes, DecoderLayer, Draws, End, Event, Generator, Memory, Model,
    ModelError, Needs, PAGE, Pattern, Place, Row, Sampler, Sequence, Values, decode,
};
use tercet_core::scalar::Scalar;

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
fn drain(generator: &mut Generator<'_, Scalar>) -> (Vec<u32>, Vec<u32>, usize, End) {
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
