//! Laws of language models, on the two of the conformance suite.

use proptest::prelude::*;
use tercet_core::conformance;
use tercet_core::gguf::Reader;
use tercet_core::model::gate::steps;
use tercet_core::model::{
    Cache, CacheShape, CacheType, Codes, DecoderLayer, Gate, Memory, Model, ModelError, NLL_UNIT,
    Needs, PAGE, PageCodes, Pattern, Place, Row, Sampler, Sequence, Stage, argmax, decode, nll,
};
use tercet_core::number::{counter, exp2_neg};
use tercet_core::scalar::Scalar;

const TERNARY: &[u8] = include_bytes!("../src/conformance/models/ternary.gguf");
const LLAMA: &[u8] = include_bytes!("../src/conformance/models/llama.gguf");

/// How a model is run.
#[derive(Clone, Copy)]
struct Run {
    kind: CacheType,
    pattern: Pattern,
    context: u32,
    chunk: u32,
    sequences: usize,
    /// Pages of the cache; as many as sequences may have where `None`.
    pages: Option<usize>,
}

impl Run {
    fn new(context: u32) -> Self {
        Self {
            kind: CacheType::Int16Int8,
            pattern: Pattern::FULL,
            context,
            chunk: 8,
            sequences: 1,
            pages: None,
        }
    }
}

/// Calls `work` with what takes a step, and with what resets a sequence between.
fn with<T>(file: &[u8], run: Run, work: impl FnOnce(&mut dyn FnMut(Ask<'_>) -> Answer) -> T) -> T {
    let file = Reader::new(file).unwrap();
    let (layers, steps) = Model::lengths(&file).unwrap();
    let (mut layers, mut steps) = (vec![DecoderLayer::EMPTY; layers], vec![0; steps]);
    let model = Model::new(&file, &mut layers, &mut steps).unwrap();
    let shape = CacheShape::new(model.config(), run.kind);
    let own = Sequence::pages(run.pattern, run.context, run.chunk);
    let pages = run.pages.unwrap_or(own * run.sequences);
    let codes = shape.codes() * pages;
    let (mut k8, mut k16) = (vec![77i8; codes], vec![77i16; codes]);
    let (mut v8, mut v16) = (vec![77i8; codes], vec![77i16; codes]);
    let mut scales = vec![f32::NAN; shape.scales() * pages * 2];
    let mut free = vec![9; pages];
    let keys = match run.kind.wide_keys() {
        true => Codes::Wide(&mut k16),
        false => Codes::Narrow(&mut k8),
    };
    let values = match run.kind.wide_values() {
        true => Codes::Wide(&mut v16),
        false => Codes::Narrow(&mut v8),
    };
    let mut cache = Cache::new(shape, keys, values, &mut scales, &mut free).unwrap();
    let mut tables = vec![5; own * run.sequences];
    let mut sequences: Vec<_> = tables
        .chunks_mut(own)
        .map(|table| Sequence::new(run.pattern, run.kind, run.context, run.chunk, table).unwrap())
        .collect();
    let vocabulary = model.config().vocabulary;
    let mut ask = |ask: Ask<'_>| match ask {
        Ask::Reset(sequence) => {
            sequences[sequence].reset(&mut cache);
            Answer::Done
        }
        Ask::Truncate(sequence, len) => Answer::Cut(sequences[sequence].truncate(len, &mut cache)),
        Ask::Copy { from, to } => {
            let len = sequences[from].len();
            sequences[to].restore(len, &mut cache).unwrap();
            for page in sequences[from].kept().collect::<Vec<_>>() {
                let first = page * PAGE;
                let [there, here] = [from, to].map(|it| sequences[it].page(first).unwrap());
                let count = (len - first).min(PAGE) as usize;
                for layer in 0..shape.layers {
                    for head in 0..shape.heads {
                        let keys = copied(cache.keys(there, layer, head), count, shape.head);
                        let values = copied(cache.values(there, layer, head), count, shape.head);
                        cache
                            .load((here, layer, head), keys.view(), values.view())
                            .unwrap();
                    }
                }
            }
            Answer::Done
        }
        Ask::Stage(rows) => {
            let needs = Needs::of(&Scalar, &model, run.pattern, run.context, rows.len()).unwrap();
            let mut memory = Memory {
                places: &mut vec![Place::default(); needs.places],
                floats: &mut vec![f32::NAN; needs.floats],
                bytes: &mut vec![-128; needs.bytes],
                halves: &mut vec![-1; needs.halves],
                longs: &mut vec![-1; needs.longs],
                words: &mut vec![u32::MAX; needs.words],
            };
            let asked = rows.iter().filter(|row| row.logits).count();
            let mut logits = vec![f32::NAN; asked * vocabulary];
            let mut faults = Vec::new();
            let caches = (&mut cache, &mut sequences[..]);
            let done = decode(
                &mut Scalar,
                &model,
                caches,
                rows,
                &mut memory,
                &mut logits,
                &mut |error| {
                    faults.push(error);
                },
            );
            Answer::Stage(done.map(|()| (logits, faults)))
        }
    };
    work(&mut ask)
}

enum Ask<'r> {
    Stage(&'r [Row]),
    Reset(usize),
    Truncate(usize, u32),
    /// Keeps what a sequence has, and gives it to another.
    Copy {
        from: usize,
        to: usize,
    },
}

/// Codes and scales of the first positions of a page, apart from the cache.
enum Copied {
    Narrow(Vec<i8>, Vec<f32>),
    Wide(Vec<i16>, Vec<f32>),
}

fn copied((codes, scales): (PageCodes<'_>, &[f32]), count: usize, head: usize) -> Copied {
    let scales = scales[..count].to_vec();
    match codes {
        PageCodes::Narrow(codes) => Copied::Narrow(codes[..count * head].to_vec(), scales),
        PageCodes::Wide(codes) => Copied::Wide(codes[..count * head].to_vec(), scales),
    }
}

impl Copied {
    fn view(&self) -> (PageCodes<'_>, &[f32]) {
        match self {
            Self::Narrow(codes, scales) => (PageCodes::Narrow(codes), scales),
            Self::Wide(codes, scales) => (PageCodes::Wide(codes), scales),
        }
    }
}

enum Answer {
    Stage(Result<(Vec<f32>, Vec<ModelError>), ModelError>),
    Cut(Result<(), ModelError>),
    Done,
}

/// Cuts sequence 0 back.
fn cut(ask: &mut dyn FnMut(Ask<'_>) -> Answer, len: usize) -> Result<(), ModelError> {
    match ask(Ask::Truncate(0, len as u32)) {
        Answer::Cut(done) => done,
        _ => unreachable!("a cut was asked for"),
    }
}

fn row(token: u32, sequence: usize) -> Row {
    Row {
        token,
        sequence,
        logits: true,
    }
}

/// What a step gives.
fn step(
    ask: &mut dyn FnMut(Ask<'_>) -> Answer,
    rows: &[Row],
) -> Result<(Vec<f32>, Vec<ModelError>), ModelError> {
    match ask(Ask::Stage(rows)) {
        Answer::Stage(done) => done,
        _ => unreachable!("a step was asked for"),
    }
}

fn bits(logits: &[f32]) -> Vec<u32> {
    logits.iter().map(|logit| logit.to_bits()).collect()
}

/// The logits of tokens, one at a time.
fn ones(file: &[u8], run: Run, tokens: &[u32]) -> Vec<u32> {
    with(file, run, |ask| {
        let all = tokens
            .iter()
            .flat_map(|&token| step(ask, &[row(token, 0)]).unwrap().0);
        bits(&all.collect::<Vec<_>>())
    })
}

/// All; a ring; a ring with sinks; a grid.
const PATTERNS: [Pattern; 4] = [Pattern::FULL, near(9, 0, 0), near(9, 3, 0), near(5, 0, 4)];

const fn near(window: u32, sinks: u32, stride: u32) -> Pattern {
    Pattern {
        window,
        sinks,
        stride,
    }
}

fn tokens(count: usize) -> impl Strategy<Value = Vec<u32>> {
    proptest::collection::vec(0u32..259, count)
}

#[test]
fn a_prompt_in_chunks_is_one_token_by_token() {
    assert_eq!(
        conformance::expected("model/ternary/ones"),
        conformance::expected("model/ternary/twos")
    );
    for model in ["ternary", "llama"] {
        let of = |how: &str| conformance::expected(&format!("model/{model}/{how}")).unwrap();
        assert_eq!(of("ones"), of("threes"));
    }
}

/// What [`Sampler::draw`] says, word for word: all tokens in order, and then from the first on.
fn sorted_draw(sampler: &Sampler, logits: &[f32], position: u64) -> Option<u32> {
    let mut tokens: Vec<usize> = (0..logits.len())
        .filter(|&token| !logits[token].is_nan())
        .collect();
    tokens.sort_by(|&a, &b| logits[b].partial_cmp(&logits[a]).unwrap().then(a.cmp(&b)));
    let largest = logits[*tokens.first()?];
    let weight = |&token: &usize| {
        u64::from(exp2_neg(steps(
            (largest - logits[token]) / sampler.temperature,
        )))
    };
    if sampler.top_k > 0 {
        tokens.truncate(sampler.top_k);
    }
    let share = |share: f32, total: u64| {
        let parts = u128::from((f64::from(share) * 2f64.powi(32)) as u64);
        (parts * u128::from(total)).div_ceil(1 << 32) as u64
    };
    let enough = share(sampler.top_p, tokens.iter().map(weight).sum());
    let least = share(sampler.min_p, weight(&tokens[0]));
    let mut sum = 0;
    let mut count = 0;
    while count < tokens.len() && (count == 0 || (sum < enough && weight(&tokens[count]) >= least))
    {
        sum += weight(&tokens[count]);
        count += 1;
    }
    let [low, high, ..] = counter(sampler.seed, sampler.stream, position);
    let draw = u128::from(u64::from(high) << 32 | u64::from(low)) * u128::from(sum);
    let mut place = (draw >> 64) as u64;
    tokens[..count]
        .iter()
        .find(|token| {
            let own = weight(token);
            let here = place < own;
            place = place.wrapping_sub(own);
            here
        })
        .map(|&token| token as u32)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    #[test]
    fn a_sequence_cut_back_goes_on_as_one_that_never_went_further(
        tokens in tokens(150), other in tokens(8), at in 1usize..150, pattern in 0usize..4, kind in 0usize..4, ternary in any::<bool>()
    ) {
        let file = if ternary { TERNARY } else { LLAMA };
        let run = Run { pattern: PATTERNS[pattern], kind: CacheType::ALL[kind], ..Run::new(192) };
        let expected = ones(file, run, &[&tokens[..at], &other].concat());
        let rows = |tokens: &[u32]| tokens.iter().map(|&token| row(token, 0)).collect::<Vec<_>>();
        let done = with(file, run, |ask| {
            let mut first = Vec::new();
            for tokens in tokens.chunks(8) {
                first.extend(step(ask, &rows(tokens)).unwrap().0);
            }
            let done = cut(ask, at);
            let furthest = tokens.len();
            if done.is_err() {
                // A ring alone, and not within the rows of a step; what it has is as it was.
                assert!(run.pattern.is_ring() && at + 8 < furthest, "{done:?}");
                assert_eq!(done, Err(ModelError::Overwritten { position: at as u32 }));
                return None;
            }
            let vocabulary = first.len() / furthest;
            first.truncate(at * vocabulary);
            first.extend(step(ask, &rows(&other)).unwrap().0);
            // Twice to the same place.
            cut(ask, at).unwrap();
            first.truncate(at * vocabulary);
            for &token in &other {
                first.extend(step(ask, &[row(token, 0)]).unwrap().0);
            }
            Some(bits(&first))
        });
        if let Some(done) = done {
            prop_assert_eq!(done, expected);
        }
    }

    #[test]
    fn pages_that_share_memory_do_not_show(
        tokens in tokens(200), window in prop_oneof![1u32..12, 60u32..70, 126u32..131], sinks in 0u32..4, kind in 0usize..4
    ) {
        let pattern = near(window, sinks, 0);
        let run = Run { pattern, kind: CacheType::ALL[kind], ..Run::new(256) };
        // As few pages as hold a window, and more than anything attends to.
        let few = Run { chunk: 1, ..run };
        let many = Run { chunk: 128, ..run };
        let pages = |run: Run| Sequence::pages(pattern, run.context, run.chunk);
        prop_assert!(pages(many) >= Sequence::attended_pages(pattern, run.context));
        prop_assert!(pages(few) < pages(many));
        prop_assert_eq!(ones(TERNARY, few, &tokens), ones(TERNARY, many, &tokens));
    }

    #[test]
    fn what_is_kept_of_a_sequence_is_all_that_it_goes_on_with(
        tokens in tokens(140), at in 0usize..140, pattern in 0usize..4, kind in 0usize..4, ternary in any::<bool>()
    ) {
        let file = if ternary { TERNARY } else { LLAMA };
        let run = Run { pattern: PATTERNS[pattern], kind: CacheType::ALL[kind], sequences: 2, ..Run::new(192) };
        let found = with(file, run, |ask| {
            for &token in &tokens[..at] {
                step(ask, &[row(token, 0)]).unwrap();
            }
            // What it held before does not matter.
            step(ask, &[row(9, 1)]).unwrap();
            ask(Ask::Copy { from: 0, to: 1 });
            ask(Ask::Reset(0));
            let rest = tokens[at..].iter().flat_map(|&token| step(ask, &[row(token, 1)]).unwrap().0);
            bits(&rest.collect::<Vec<_>>())
        });
        let expected = ones(file, run, &tokens);
        let rest = expected.len() / tokens.len() * (tokens.len() - at);
        prop_assert_eq!(&found[..], &expected[expected.len() - rest..]);
    }

    #[test]
    fn chunks_do_not_show(tokens in tokens(20), chunk in 1usize..8, ternary in any::<bool>()) {
        let file = if ternary { TERNARY } else { LLAMA };
        let chunked = with(file, Run::new(64), |ask| {
            let mut all = Vec::new();
            for tokens in tokens.chunks(chunk) {
                let rows: Vec<Row> = tokens.iter().map(|&token| row(token, 0)).collect();
                all.extend(step(ask, &rows).unwrap().0);
            }
            bits(&all)
        });
        prop_assert_eq!(chunked, ones(file, Run::new(64), &tokens));
    }

    #[test]
    fn what_else_is_in_a_batch_does_not_show(first in tokens(9), second in tokens(9), ternary in any::<bool>()) {
        let file = if ternary { TERNARY } else { LLAMA };
        let run = Run { sequences: 2, ..Run::new(64) };
        let together = with(file, run, |ask| {
            let mut all = (Vec::new(), Vec::new());
            for (&a, &b) in first.iter().zip(&second) {
                let (logits, _) = step(ask, &[row(b, 1), row(a, 0)]).unwrap();
                let (of_b, of_a) = logits.split_at(logits.len() / 2);
                all.0.extend(bits(of_a));
                all.1.extend(bits(of_b));
            }
            all
        });
        prop_assert_eq!(together, (ones(file, run, &first), ones(file, run, &second)));
    }

    #[test]
    fn a_window_as_long_as_the_text_changes_nothing(tokens in tokens(24), sinks in 0u32..3, kind in 0usize..4) {
        let kind = CacheType::ALL[kind];
        let full = Run { kind, ..Run::new(64) };
        let pattern = Pattern { window: 24, sinks, stride: 0 };
        let window = Run { pattern, ..full };
        prop_assert_eq!(ones(LLAMA, window, &tokens), ones(LLAMA, full, &tokens));
        // And every position by a stride of 1.
        let pattern = Pattern { window: 2, sinks: 0, stride: 1 };
        prop_assert_eq!(ones(TERNARY, Run { pattern, ..full }, &tokens), ones(TERNARY, full, &tokens));
    }

    #[test]
    fn no_schedule_shows(
        texts in [tokens(40), tokens(23), tokens(9)],
        turns in proptest::collection::vec((0usize..3, 0usize..3, 1usize..7), 1..20),
        kind in 0usize..4,
        pattern in 0usize..4,
        ternary in any::<bool>(),
    ) {
        let file = if ternary { TERNARY } else { LLAMA };
        let pattern = PATTERNS[pattern];
        let run = Run { kind: CacheType::ALL[kind], pattern, sequences: 3, ..Run::new(64) };
        let apart = [0, 1, 2].map(|own: usize| ones(file, run, &texts[own]));
        let mixed = with(file, run, |ask| {
            let mut done = [0; 3];
            let mut logits = [const { Vec::new() }; 3];
            // Parts of two texts, or of one, a step; what is left comes in the end, all at once.
            let last = [(0, 1, 7); 20].into_iter().chain([(1, 2, 7); 20]);
            for (first, second, count) in turns.into_iter().chain(last) {
                let mut rows = Vec::new();
                for (own, count) in [(first, count), (second, 8 - count)] {
                    for &token in texts[own].iter().skip(done[own]).take(count.min(8)) {
                        rows.push(row(token, own));
                        done[own] += 1;
                    }
                }
                if rows.is_empty() {
                    continue;
                }
                let (found, _) = step(ask, &rows).unwrap();
                for (row, found) in rows.iter().zip(found.chunks(found.len() / rows.len())) {
                    logits[row.sequence].extend(bits(found));
                }
            }
            logits
        });
        prop_assert_eq!(mixed, apart);
    }

    #[test]
    fn pages_that_were_another_s_do_not_show(first in tokens(70), second in tokens(30), pattern in 0usize..4) {
        // Two sequences share the pages of one and a half.
        let run = Run { pattern: PATTERNS[pattern], sequences: 2, ..Run::new(128) };
        let own = Sequence::pages(run.pattern, run.context, run.chunk);
        let run = Run { pages: Some(own.max(2)), ..run };
        let fresh = ones(LLAMA, run, &second);
        let again = with(LLAMA, run, |ask| {
            for &token in &first {
                step(ask, &[row(token, 0)]).unwrap();
            }
            ask(Ask::Reset(0));
            let all = second.iter().flat_map(|&token| step(ask, &[row(token, 1)]).unwrap().0);
            bits(&all.collect::<Vec<_>>())
        });
        prop_assert_eq!(again, fresh);
    }

    #[test]
    fn draws_are_softmax_s(logits in proptest::collection::vec(-4.0f32..4.0, 6), seed in any::<u64>()) {
        let sampler = Sampler { temperature: 1.0, seed, ..Sampler::GREEDY };
        let mut counts = [0u32; 6];
        let mut scratch = [0; 6];
        const DRAWS: u32 = 8192;
        for position in 0..u64::from(DRAWS) {
            let token = sampler.draw(&mut logits.clone(), &[], position, &mut scratch).unwrap();
            counts[token as usize] += 1;
        }
        let total: f64 = logits.iter().map(|&logit| f64::from(logit).exp()).sum();
        for (count, logit) in counts.iter().zip(&logits) {
            let share = f64::from(*logit).exp() / total;
            // Six standard deviations.
            let bound = 6.0 * (share * (1.0 - share) / f64::from(DRAWS)).sqrt() + 1e-3;
            prop_assert!((f64::from(*count) / f64::from(DRAWS) - share).abs() < bound);
        }
    }

    #[test]
    fn draws_are_those_of_a_sorted_list(
        logits in proptest::collection::vec(prop_oneof![-9.0f32..9.0, (-3i8..3).prop_map(f32::from), Just(-0.0), Just(f32::NAN), Just(f32::NEG_INFINITY)], 1..300),
        temperature in prop_oneof![0.01f32..4.0, Just(1e-30)],
        top_k in prop_oneof![Just(0usize), 1usize..320],
        top_p in prop_oneof![Just(1.0f32), 0.0f32..1.0],
        min_p in prop_oneof![Just(0.0f32), 0.0f32..1.0],
        seed in any::<u64>(),
    ) {
        let sampler = Sampler { temperature, top_k, top_p, min_p, seed, ..Sampler::GREEDY };
        let mut scratch = vec![0; logits.len()];
        for position in 0..8 {
            let found = sampler.draw(&mut logits.clone(), &[], position, &mut scratch);
            prop_assert_eq!(found, sorted_draw(&sampler, &logits, position));
        }
    }

    #[test]
    fn one_candidate_is_the_largest(mut logits in proptest::collection::vec(-9.0f32..9.0, 1..40), position in any::<u64>()) {
        let mut scratch = vec![0; logits.len()];
        let best = argmax(&logits);
        for sampler in [
            Sampler { temperature: 2.0, top_k: 1, ..Sampler::GREEDY },
            Sampler { temperature: 2.0, top_p: 0.0, ..Sampler::GREEDY },
            Sampler { temperature: 2.0, min_p: 1.0, top_k: 1, ..Sampler::GREEDY },
            Sampler::GREEDY,
        ] {
            prop_assert_eq!(sampler.draw(&mut logits, &[], position, &mut scratch), best);
        }
    }

    #[test]
    fn costs_are_those_of_softmax(logits in proptest::collection::vec(-30.0f32..30.0, 1..300), token in 0usize..300) {
        let token = token % logits.len();
        let largest = logits.iter().fold(f64::MIN, |most, &logit| most.max(logit.into()));
        let total: f64 = logits.iter().map(|&logit| (f64::from(logit) - largest).exp()).sum();
        let exact = largest - f64::from(logits[token]) + total.ln();
        let found = nll(&logits, token).unwrap() as f64 / NLL_UNIT as f64;
        prop_assert!((found - exact).abs() < 1e-6, "{} {}", found, exact);
    }

    #[test]
    fn silu_is_close(x in -40.0f32..40.0) {
        let wide = f64::from(x);
        let exact = wide / (1.0 + (-wide).exp());
        let found = f64::from(Gate::Silu.of(x));
        prop_assert!((found - exact).abs() <= 3e-6 * exact.abs() + 2e-7, "{} {} {}", x, found, exact);
    }
}

#[test]
fn a_reset_sequence_forgets() {
    let tokens: Vec<u32> = (0..10).map(|at| at * 17 % 259).collect();
    let fresh = ones(LLAMA, Run::new(64), &tokens);
    let again = with(LLAMA, Run::new(64), |ask| {
        for token in 100..140 {
            step(ask, &[row(token, 0)]).unwrap();
        }
        ask(Ask::Reset(0));
        let all = tokens
            .iter()
            .flat_map(|&token| step(ask, &[row(token, 0)]).unwrap().0);
        bits(&all.collect::<Vec<_>>())
    });
    assert_eq!(again, fresh);
}

#[test]
fn a_window_has_no_end_and_takes_no_more_pages() {
    let pattern = Pattern {
        window: 16,
        sinks: 2,
        stride: 0,
    };
    let run = Run {
        pattern,
        chunk: 1,
        ..Run::new(64)
    };
    assert_eq!(Sequence::pages(pattern, 64, 1), 2);
    with(TERNARY, run, |ask| {
        for position in 0..700 {
            step(ask, &[row(position % 259, 0)]).unwrap();
        }
    });
}

/// The `llama` with an embedding of token 5 that is not finite.
fn spoiled() -> Vec<u8> {
    let mut file = LLAMA.to_vec();
    let reader = Reader::new(LLAMA).unwrap();
    let embedding = reader.tensor("token_embd.weight").unwrap();
    let at = file.len() - reader.data().len() + embedding.offset as usize;
    // f16's infinity, in the sixth row of 32.
    file[at + 5 * 64..][..2].copy_from_slice(&[0x00, 0x7C]);
    file
}

#[test]
fn what_is_not_finite_ends_its_sequence_alone() {
    let run = Run {
        sequences: 2,
        ..Run::new(64)
    };
    let clean = ones(LLAMA, run, &[8, 9, 10]);
    let expected = ModelError::NotFinite {
        sequence: 1,
        layer: 0,
        step: Stage::AttentionNorm,
        position: 1,
    };
    with(&spoiled(), run, |ask| {
        let mut all = step(ask, &[row(8, 0)]).unwrap().0;
        let rows = [row(9, 0), row(7, 1), row(5, 1), row(7, 1)];
        let (logits, faults) = step(ask, &rows).unwrap();
        assert_eq!(faults, [expected]);
        all.extend(&logits[..logits.len() / 4]);
        // It takes nothing more, until it is reset.
        assert_eq!(
            step(ask, &[row(7, 1)]),
            Err(ModelError::Ended { sequence: 1 })
        );
        all.extend(step(ask, &[row(10, 0)]).unwrap().0);
        assert_eq!(bits(&all), clean);
        ask(Ask::Reset(1));
        assert_eq!(step(ask, &[row(7, 1)]).unwrap().1, []);
    });
}

#[test]
fn a_value_whose_weight_is_not_finite_ends_its_sequence() {
    let mut file = LLAMA.to_vec();
    let reader = Reader::new(LLAMA).unwrap();
    let bias = reader.tensor("blk.0.attn_v.bias").unwrap();
    let at = file.len() - reader.data().len() + bias.offset as usize;
    let run = Run::new(64);
    // The first is attended to, and its square is not finite.
    for (value, expected) in [(1e32f32, Stage::FeedForwardNorm), (1e35, Stage::Attention)] {
        file[at..][..4].copy_from_slice(&value.to_le_bytes());
        let (_, faults) = with(&file, run, |ask| step(ask, &[row(8, 0)]).unwrap());
        let found = faults.first().map(|error| match *error {
            ModelError::NotFinite { layer: 0, step, .. } => step,
            other => panic!("{other}"),
        });
        assert_eq!(found, Some(expected), "{value}");
    }
}

#[test]
fn steps_that_cannot_be_taken_are_refused_and_change_nothing() {
    let run = Run {
        sequences: 2,
        pages: Some(1),
        chunk: 3,
        ..Run::new(20)
    };
    let expected = ones(TERNARY, Run::new(20), &[1, 2]);
    with(TERNARY, run, |ask| {
        let mut all = step(ask, &[row(1, 0)]).unwrap().0;
        let token = ModelError::Token { row: 1, token: 259 };
        assert_eq!(step(ask, &[row(1, 0), row(259, 0)]), Err(token));
        assert_eq!(
            step(ask, &[row(1, 2)]),
            Err(ModelError::NoSequence { row: 0 })
        );
        assert_eq!(
            step(ask, &[row(1, 1)]),
            Err(ModelError::CacheFull { sequence: 1 })
        );
        let chunk = ModelError::Chunk {
            sequence: 0,
            rows: 3,
        };
        assert_eq!(step(ask, &[row(1, 0); 4]), Err(chunk));
        all.extend(step(ask, &[row(2, 0)]).unwrap().0);
        assert_eq!(bits(&all), expected);
        for _ in 0..18 {
            step(ask, &[row(3, 0)]).unwrap();
        }
        let end = ModelError::Context {
            sequence: 0,
            positions: 20,
        };
        assert_eq!(step(ask, &[row(3, 0)]), Err(end));
    });
}

#[test]
fn too_little_memory_is_named() {
    let file = Reader::new(TERNARY).unwrap();
    let (mut layers, mut steps) = ([DecoderLayer::EMPTY; 2], [0; 2]);
    let few = Model::new(&file, &mut layers[..1], &mut steps).map(drop);
    assert_eq!(few, Err(ModelError::Layers { found: 2, max: 1 }));
    let room = |memory, needed, found| ModelError::Room {
        memory,
        needed,
        found,
    };
    let few = Model::new(&file, &mut layers, &mut steps[..1]).map(drop);
    assert_eq!(few, Err(room("a rotation's steps", 2, 1)));
    let few = Sequence::new(Pattern::FULL, CacheType::Int8, 65, 1, &mut [0]).map(drop);
    assert_eq!(few, Err(room("a sequence's table of pages", 2, 1)));
    let long = Sequence::new(Pattern::FULL, CacheType::Int16, 1 << 18, 1, &mut []).map(drop);
    let positions = CacheType::Int16.max_positions();
    assert_eq!(long, Err(ModelError::CacheRange { positions }));
    assert!((100_000..200_000).contains(&positions));
}

#[test]
fn a_cut_gives_pages_back_and_a_stopped_sequence_is_not_cut() {
    let run = Run {
        pages: Some(2),
        chunk: 64,
        ..Run::new(192)
    };
    with(LLAMA, run, |ask| {
        let rows: Vec<Row> = (0..64).map(|token| row(token, 0)).collect();
        for _ in 0..2 {
            step(ask, &rows).unwrap();
        }
        let more = step(ask, &rows[..1]).unwrap_err();
        assert_eq!(more, ModelError::CacheFull { sequence: 0 });
        cut(ask, 200).unwrap();
        cut(ask, 64).unwrap();
        step(ask, &rows).unwrap();
        cut(ask, 0).unwrap();
        step(ask, &rows).unwrap();
    });
    with(&spoiled(), Run::new(64), |ask| {
        let (_, faults) = step(ask, &[row(7, 0), row(5, 0)]).unwrap();
        assert_eq!(faults.len(), 1);
        assert_eq!(cut(ask, 1), Err(ModelError::Stopped));
        assert_eq!(cut(ask, 0), Ok(()));
    });
}

#[test]
fn what_no_cache_keeps_is_not_loaded() {
    for (kind, codes, scale, expected) in [
        (
            CacheType::Int8,
            [-128, 0],
            1.0,
            "codes within the range of the cache's type",
        ),
        (
            CacheType::Fp8,
            [0x7F, 0],
            1.0,
            "codes within the range of the cache's type",
        ),
        (
            CacheType::Fp8,
            [-1, 0],
            1.0,
            "codes within the range of the cache's type",
        ),
        (
            CacheType::Int8,
            [1, 0],
            f32::NAN,
            "scales that are finite and not below 0",
        ),
        (
            CacheType::Int8,
            [1, 0],
            -1.0,
            "scales that are finite and not below 0",
        ),
        (
            CacheType::Int8,
            [1, 0],
            f32::INFINITY,
            "scales that are finite and not below 0",
        ),
        (
            CacheType::Int16,
            [1, 0],
            1.0,
            "as many codes of the cache's width as scales ask for",
        ),
        (
            CacheType::Int16Int8,
            [1, 0],
            1.0,
            "as many codes of the cache's width as scales ask for",
        ),
    ] {
        let shape = CacheShape {
            kind,
            layers: 1,
            heads: 1,
            head: 2,
        };
        let (mut k8, mut k16) = (vec![3i8; 128], vec![3i16; 128]);
        let (mut v8, mut v16) = (k8.clone(), k16.clone());
        let (mut scales, mut free) = (vec![0.5; 128], [0]);
        let keys = match kind.wide_keys() {
            true => Codes::Wide(&mut k16),
            false => Codes::Narrow(&mut k8),
        };
        let values = match kind.wide_values() {
            true => Codes::Wide(&mut v16),
            false => Codes::Narrow(&mut v8),
        };
        let mut cache = Cache::new(shape, keys, values, &mut scales, &mut free).unwrap();
        let codes = (PageCodes::Narrow(&codes), &[scale][..]);
        let refused = Err(ModelError::Stored { expected });
        assert_eq!(cache.load((0, 0, 0), codes, codes), refused, "{kind:?}");
        assert_eq!(cache.keys(0, 0, 0).1, [0.5; 64]);
        let there = Err(ModelError::Stored {
            expected: "of one page of this cache",
        });
        assert_eq!(cache.load((1, 0, 0), codes, codes), there);
        assert_eq!(cache.load((0, 1, 0), codes, codes), there);
    }
    let wide = [32_513i16, 0];
    let shape = CacheShape {
        kind: CacheType::Int16,
        layers: 1,
        heads: 1,
        head: 2,
    };
    let (mut keys, mut values) = (vec![0; 128], vec![0; 128]);
    let (mut scales, mut free) = (vec![0.5; 128], [0]);
    let (keys, values) = (Codes::Wide(&mut keys), Codes::Wide(&mut values));
    let mut cache = Cache::new(shape, keys, values, &mut scales, &mut free).unwrap();
    let codes = (PageCodes::Wide(&wide), &[1.0][..]);
    assert!(cache.load((0, 0, 0), codes, codes).is_err());
}
