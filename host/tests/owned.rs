//! The owned forms give the bits of the borrowed ones, and refuse what those refuse.

use std::path::Path;

use proptest::prelude::*;
use tercet_core::engine::{LinearEngine, QuantizeEngine};
use tercet_core::linear::{I8Sym, Layer, Layout, LinearError, Matrix, Table};
use tercet_core::quant::{Groups, QuantError, int8, quantize};
use tercet_core::scalar::{Scalar, Tensor};
use tercet_host::language::tokenizer::Encoding;
use tercet_host::language::{LanguageFile, RunOptions, Sampler, View, Windows, perplexity, run};
use tercet_host::linear::ProductError;
use tercet_host::parallel::{Threads, compare};
use tercet_host::points::{Points, Values};
use tercet_host::search::{Find, SearchOptions, search};
use tercet_host::weights::WeightsError;
use tercet_host::{Index, LanguageModel, Quantized, Quantizer, Weights};

const QUANTIZERS: [Quantizer; 5] = [
    Quantizer::int8(),
    Quantizer::int8_affine(),
    Quantizer::int4(),
    Quantizer::ternary(),
    Quantizer::bitnet(),
];

fn matrix() -> impl Strategy<Value = (usize, usize, Vec<f32>)> {
    (1usize..6, 1usize..70).prop_flat_map(|(rows, cols)| {
        let values = prop::collection::vec(-8.0f32..8.0, rows * cols);
        (Just(rows), Just(cols), values)
    })
}

/// Codes, scales and zero points of the core's own loop.
fn by_the_core(
    quantizer: Quantizer,
    values: &[f32],
    groups: Groups,
) -> (Vec<i8>, Vec<f32>, Vec<i8>) {
    let method = quantizer.quantize(values).unwrap().method();
    let mut codes = vec![0; values.len()];
    let (mut scales, mut zeros) = (vec![0.0; groups.count], vec![0; groups.count]);
    let mut bins = vec![Default::default(); method.scratch_len(groups.len)];
    let mut tensor = Tensor::new(values, groups, &mut codes, &mut scales, &mut zeros).unwrap();
    quantize(&mut tensor, method, &mut bins).unwrap();
    (codes, scales, zeros)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_quantizer_gives_the_cores_codes((rows, cols, values) in matrix()) {
        for quantizer in QUANTIZERS {
            for (quantizer, groups) in [
                (quantizer, Groups::tensor(rows * cols).unwrap()),
                (quantizer.per_row(cols), Groups::rows(rows, cols).unwrap()),
            ] {
                let quantized = quantizer.quantize(&values).unwrap();
                let (codes, scales, zeros) = by_the_core(quantizer, &values, groups);
                prop_assert_eq!(quantized.codes(), codes);
                prop_assert_eq!(quantized.scales(), scales);
                prop_assert_eq!(quantized.zero_points(), zeros);
                prop_assert_eq!(quantized.report().groups, groups.count as u64);
                let far = quantized.compare(&values).unwrap().max_error;
                let restored = quantized.restore();
                let pairs = values.iter().zip(&restored);
                let largest = pairs.map(|(x, y)| (f64::from(*x) - f64::from(*y)).abs());
                prop_assert_eq!(far, largest.fold(0.0, f64::max));
            }
        }
    }

    /// The product of the same codes as int8 rows, by the core's loop.
    #[test]
    fn a_product_is_the_cores((rows, cols, values) in matrix()) {
        let x = &values[..cols];
        for (weights, quantizer) in [
            (Weights::ternary(&values, rows, cols).unwrap(), Quantizer::ternary()),
            (Weights::int8(&values, rows, cols).unwrap(), Quantizer::int8()),
        ] {
            prop_assert_eq!((weights.rows(), weights.cols()), (rows, cols));
            prop_assert_eq!(weights.size(), weights.layout().bytes(rows, cols).unwrap() + 4 * rows);
            let quantized = quantizer.per_row(cols).quantize(&values).unwrap();
            let bytes: Vec<u8> = quantized.codes().iter().map(|&code| code as u8).collect();
            let scales: Vec<i32> = quantized.scales().iter().map(|s| s.to_bits() as i32).collect();
            let matrix = Matrix::new(Layout::Int8, rows, cols, &bytes).unwrap();
            let mut scratch = vec![0; matrix.scratch_len()];
            let matrix = matrix.with_row_scales(Table::Words(&scales)).unwrap();
            let (mut codes, mut scale) = (vec![0; cols], [0.0]);
            let groups = Groups::tensor(cols).unwrap();
            let mut tensor = Tensor::new(x, groups, &mut codes, &mut scale, &mut []).unwrap();
            int8::symmetric(&mut tensor).unwrap();
            let mut expected = vec![0.0; rows];
            let codes = I8Sym::new(&codes).unwrap();
            Scalar.matvec(&Layer::new(matrix), codes, scale[0], &mut expected, &mut scratch).unwrap();
            prop_assert_eq!(&weights.matvec(x).unwrap(), &expected);
            prop_assert_eq!(weights.matmat(&[x, x].concat()).unwrap(), [&expected[..], &expected].concat());
        }
    }

    #[test]
    fn an_index_finds_what_a_search_finds((rows, dims, values) in matrix(), k in 1usize..6) {
        prop_assume!(k <= rows && values.iter().any(|x| x.fract() != 0.0));
        let query = &values[..dims];
        let base = Points::new("base", rows, dims, Values::F32(values.clone())).unwrap();
        let asked = Points::new("query", 1, dims, Values::F32(query.to_vec())).unwrap();
        for (index, metric) in [
            (Index::cosine(&values, dims).unwrap(), tercet_core::search::MetricKind::Cosine),
            (Index::dot(&values, dims).unwrap(), tercet_core::search::MetricKind::Dot),
        ] {
            let options = SearchOptions { find: Find::Nearest(k), metric, ..SearchOptions::default() };
            let report = search(&mut Threads::default(), &base, &asked, &options, &()).unwrap();
            prop_assert_eq!(&report.hits[0], &index.nearest(query, k).unwrap());
        }
    }
}

#[test]
fn what_is_refused_is_refused_by_name() {
    assert_eq!(
        Quantizer::int8().quantize::<f32>(&[]),
        Err(QuantError::Empty)
    );
    let nan = [1.0, 2.0, f32::NAN, 4.0];
    assert_eq!(
        Quantizer::int8().per_row(2).quantize(&nan),
        Err(QuantError::NotFinite { index: 2 })
    );
    for cols in [0, 3, 5] {
        assert!(
            Quantizer::ternary()
                .per_row(cols)
                .quantize(&[1.0f32; 4])
                .is_err()
        );
    }
    let length = |expected, found| LinearError::Length { expected, found };
    assert_eq!(
        Weights::ternary(&[1.0; 5], 2, 3),
        Err(WeightsError::Linear(length(6, 5)))
    );
    let affine = Quantizer::int8_affine().quantize(&[1.0f32, 2.0]).unwrap();
    assert_eq!(
        Weights::from_quantized(&affine),
        Err(WeightsError::ZeroPoints)
    );
    let weights = Weights::int8(&[1.0; 6], 2, 3).unwrap();
    assert_eq!(
        weights.matvec(&[1.0; 6]),
        Err(ProductError::Linear(length(3, 6)))
    );
    assert_eq!(
        weights.matmat(&[1.0; 5]),
        Err(ProductError::Linear(length(3, 5)))
    );
    assert_eq!(weights.matmat(&[]), Ok(vec![]));
    assert!(matches!(
        weights.matvec(&[1.0, f32::INFINITY, 0.0]),
        Err(ProductError::Quantize(QuantError::NotFinite { index: 1 }))
    ));
    for wrong in [
        Index::cosine(&[], 3),
        Index::dot(&[1.0; 4], 3),
        Index::dot(&[1.0; 4], 0),
    ] {
        assert!(wrong.is_err());
    }
    let index = Index::dot(&[1.0; 6], 3).unwrap();
    for (query, k) in [
        (&[1.0; 3][..], 0),
        (&[1.0; 3], 3),
        (&[1.0; 2], 1),
        (&[f32::NAN; 3], 1),
    ] {
        assert!(index.nearest(query, k).is_err(), "{query:?} {k}");
    }
    assert_eq!(index.nearest_all(&[], 1).unwrap(), Vec::<Vec<_>>::new());
}

/// What `cargo firmware BOARD story` prints on every board.
#[test]
fn a_model_writes_what_microcontrollers_write() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let board = std::fs::read_to_string(root.join("firmware/snapshots/story.txt")).unwrap();
    let model = LanguageModel::open(root.join("gpu/models/nano.gguf")).unwrap();
    let sampler = Sampler {
        temperature: 0.8,
        seed: 1,
        ..Sampler::GREEDY
    };
    let prompt = model.prompt("ROMEO:").tokens(110).sample(sampler);
    let written = prompt.generate().unwrap();
    assert_eq!(
        board,
        format!("ROMEO:{}\nlogits {:016x}\n", written.text, written.digest)
    );
    let mut pieces = String::new();
    let again = prompt.generate_on(&mut Threads::alone(), |piece| {
        pieces.push_str(piece);
        true
    });
    assert_eq!(again.unwrap(), written);
    assert_eq!(pieces, written.text);
    // Ended by who listens.
    let mut heard = 0;
    let cut = prompt.generate_on(&mut Scalar, |_| {
        heard += 1;
        heard < 3
    });
    assert_eq!(cut.unwrap().tokens, written.tokens[..3]);
    // The context ends a text.
    let all = model
        .prompt("ROMEO:")
        .tokens(usize::MAX)
        .generate()
        .unwrap();
    let taken = model
        .tokenizer()
        .encode(b"ROMEO:", Default::default())
        .unwrap()
        .len();
    assert_eq!(all.tokens.len() + taken, model.context() + 1);
    assert!(!all.ended);
    let long = "word ".repeat(500);
    let refused = model.prompt(&long).generate().unwrap_err().to_string();
    assert!(refused.contains("this model takes 1 to 128"), "{refused}");
    // The shortcuts set what a sampler sets.
    let sampler = Sampler {
        temperature: 0.8,
        seed: 3,
        ..Sampler::GREEDY
    };
    let prompt = model.prompt("ROMEO:").tokens(20);
    let drawn = prompt.temperature(0.8).seed(3).generate().unwrap();
    assert_eq!(drawn, prompt.sample(sampler).generate().unwrap());
    assert_ne!(drawn, prompt.generate().unwrap());
    assert_ne!(drawn, prompt.temperature(0.8).generate().unwrap());
    let bits = model.evaluate(&board).unwrap().bits_per_byte();
    assert!((0.5..3.0).contains(&bits), "{bits}");
    assert!(LanguageModel::open(root.join("README.md")).is_err());
}

/// What `tercet perplexity` does: the text without the token that begins one, which each window begins with.
#[test]
fn a_model_scores_a_text_as_the_command_does() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../gpu/models/nano.gguf");
    let model = LanguageModel::open(&path).unwrap();
    let file = LanguageFile::open(&path).unwrap();
    let mut view = View::of(&file).unwrap();
    let inner = view.model(&file).unwrap();
    let tokenizer = model.tokenizer();
    let windows = Windows {
        context: model.context(),
        begin: tokenizer.vocabulary().bos(),
        second_half: false,
    };
    assert!(windows.begin.is_some());
    let bytes = |token| tokenizer.bytes(token);
    let mercy = "The quality of mercy is not strain'd";
    let encoding = Encoding {
        ends: false,
        ..Encoding::default()
    };
    for text in [mercy, "e", &mercy.repeat(20)] {
        let tokens = tokenizer.encode(text.as_bytes(), encoding).unwrap();
        let (expected, _) = run(
            &mut Scalar,
            &file,
            &inner,
            &RunOptions::default(),
            |decoder| perplexity(decoder, &tokens, &windows, &bytes, &mut |_| ()),
        )
        .unwrap();
        let cost = model.evaluate(text).unwrap();
        assert_eq!(cost, expected);
        assert_eq!(cost.count, tokens.len() as u64);
        assert_eq!(cost.bytes, text.len() as u64);
    }
    // Printed by the command for a file of this text.
    let cost = model.evaluate(mercy).unwrap();
    assert_eq!((cost.count, cost.sum), (17, 200_187_049_060));
    let refused = model.evaluate("").unwrap_err().to_string();
    assert!(refused.contains("no token to predict"), "{refused}");
}

/// The engine's own form, as a check that the threads of a quantizer are the core's.
#[test]
fn halves_are_quantized_as_their_values() {
    let halves: Vec<half::f16> = (0..96)
        .map(|i| half::f16::from_f32(i as f32 / 7.0 - 5.0))
        .collect();
    let floats: Vec<f32> = halves.iter().map(|x| x.to_f32()).collect();
    for quantizer in QUANTIZERS {
        let quantizer = quantizer.per_row(32);
        assert_eq!(quantizer.quantize(&halves), quantizer.quantize(&floats));
    }
    let mut threads = Threads::default();
    let quantized = Quantizer::int8().quantize(&floats).unwrap();
    let mut restored = vec![0.0; floats.len()];
    let codes = tercet_core::quant::Codes {
        groups: quantized.groups(),
        codes: quantized.codes(),
        scales: quantized.scales(),
        zero_points: &[],
    };
    threads
        .dequantize(codes, -127..=127, &mut restored)
        .unwrap();
    assert_eq!(quantized.restore(), restored);
}

#[test]
fn parts_make_the_same_tensor_and_wrong_ones_are_refused() {
    let values = [0.9, -0.1, 0.4, -1.1, 0.2, 0.0, -0.3, 0.25];
    for quantizer in QUANTIZERS {
        let quantized = quantizer.per_row(4).quantize(&values).unwrap();
        let parts = |scales: &[f32], zeros: &[i8]| {
            Quantized::from_parts(
                quantized.method(),
                quantized.groups(),
                quantized.codes().to_vec(),
                scales.to_vec(),
                zeros.to_vec(),
            )
        };
        let (scales, zeros) = (quantized.scales(), quantized.zero_points());
        let again = parts(scales, zeros).unwrap();
        assert_eq!(again.restore(), quantized.restore());
        assert_eq!(again.compare(&values), quantized.compare(&values));
        assert_eq!(again.report().coded, quantized.report().coded);
        let length = |found| QuantError::Length { expected: 2, found };
        assert_eq!(parts(&scales[1..], zeros), Err(length(1)));
        assert_eq!(parts(scales, &[]), Err(length(0)));
        for bad in [f32::NAN, f32::INFINITY, -1.0] {
            assert_eq!(parts(&[1.0, bad], zeros), Err(QuantError::Range));
        }
    }
}

#[test]
fn a_comparison_in_chunks_is_that_of_the_whole() {
    let mut random = tercet_core::number::Random::new(5);
    let mut draw = || random.below(20_001) as f32 / 7.0 - 1400.0;
    // A chunk ends within a row, within the only one, and after several.
    for (rows, cols) in [(3, 100_001), (1, 600_000), (300, 1_001)] {
        let values: Vec<f32> = std::iter::repeat_with(&mut draw)
            .take(rows * cols)
            .collect();
        for quantizer in [Quantizer::int8_affine().per_row(cols), Quantizer::bitnet()] {
            let quantized = quantizer.quantize(&values).unwrap();
            let whole = compare(&values, &quantized.restore()).unwrap();
            assert_eq!(quantized.compare(&values).ok(), whole.finish());
            let mut bad = values.clone();
            bad[rows * cols - 2] = f32::NAN;
            let index = bad.len() as u64 - 2;
            assert_eq!(
                quantized.compare(&bad),
                Err(QuantError::NotFinite { index })
            );
        }
    }
}
