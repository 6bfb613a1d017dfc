//! The threads' engine gives the bits of the reference engine.

use proptest::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use tercet_core::block::{BlockError, Format};
use tercet_core::conformance;
use tercet_core::engine::{BlockEngine, MagnitudeBin, QuantizeEngine};
use tercet_core::number::Random;
use tercet_core::quant::{
    Codes, Comparison, Grid, Groups, Method, QuantError, Report, Rule, ScaleRule, int4, int8,
    quantize, ternary,
};
use tercet_core::{f16, scalar};
use tercet_host::parallel::{self, Threads};
use tercet_host::simd::Backend;

#[derive(Debug, PartialEq)]
struct Outputs {
    result: Result<Report, QuantError>,
    codes: Vec<i8>,
    scales: Vec<u32>,
    zero_points: Vec<i8>,
}

type Slices<'a> = (&'a mut [i8], &'a mut [f32], &'a mut [i8]);

fn outputs(groups: Groups, run: impl FnOnce(Slices<'_>) -> Result<Report, QuantError>) -> Outputs {
    let mut codes = vec![99; groups.count * groups.len];
    let mut scales = vec![f32::NAN; groups.count];
    let mut zero_points = vec![99; groups.count];
    let result = run((&mut codes, &mut scales, &mut zero_points));
    Outputs {
        result,
        codes,
        scales: scales.iter().map(|scale| scale.to_bits()).collect(),
        zero_points,
    }
}

fn by_scalar(values: &[f32], groups: Groups, method: Method) -> Outputs {
    let mut bins = vec![MagnitudeBin::EMPTY; 256];
    outputs(groups, |(codes, scales, zero_points)| {
        let mut tensor = scalar::Tensor::new(values, groups, codes, scales, zero_points)?;
        quantize(&mut tensor, method, &mut bins)
    })
}

fn by_threads(pool: &ThreadPool, values: &[f32], groups: Groups, method: Method) -> Outputs {
    outputs(groups, |(codes, scales, zero_points)| {
        let tensor = parallel::Tensor::new(values, groups, codes, scales, zero_points)?;
        pool.install(|| tensor.with_tile(TILE).quantize(method))
    })
}

fn pools() -> Vec<ThreadPool> {
    let pool = |threads| ThreadPoolBuilder::new().num_threads(threads).build();
    [1, 2, 3].map(|threads| pool(threads).unwrap()).into()
}

fn methods() -> Vec<Method> {
    let rules = [Rule::AbsMax, Rule::AbsMean, Rule::Twn, Rule::Optimal];
    let ternary = rules.into_iter().flat_map(|rule| {
        [ScaleRule::Rule, ScaleRule::LeastSquares]
            .map(|scale_rule| Method::Ternary { rule, scale_rule })
    });
    let grid = Grid {
        scale: 0.01,
        zero_point: 3,
        low: -128,
        high: 127,
    };
    let grids = [
        Method::Symmetric { limit: 127 },
        Method::Symmetric { limit: 7 },
        Method::Affine,
        Method::Fixed(grid),
    ];
    ternary.chain(grids).collect()
}

/// So that a test of moderate size has many.
const TILE: usize = 10_000;

/// Sums of four uniform draws: a rough bell, with a few large values.
fn bell(len: usize, seed: u64) -> Vec<f32> {
    let mut random = Random::new(seed);
    let mut uniform = || random.below(1 << 24) as f32 / (1 << 24) as f32 - 0.5;
    let mut bell = || uniform() + uniform() + uniform() + uniform();
    (0..len)
        .map(|i| if i % 1009 == 0 { 8.0 * bell() } else { bell() })
        .collect()
}

#[test]
fn bits_do_not_depend_on_thread_count() {
    let values = bell(300_000, 1);
    let pools = pools();
    // One group of several tiles, with a short last one; rows over and under a tile; blocks.
    let shapes = [
        (1, 300_000),
        (2, 150_000),
        (3, 100_000),
        (75, 4000),
        (1200, 250),
        (9375, 32),
    ];
    for (count, len) in shapes {
        let groups = Groups { count, len };
        for method in methods() {
            let expected = by_scalar(&values, groups, method);
            assert!(expected.result.is_ok());
            for pool in &pools {
                let found = by_threads(pool, &values, groups, method);
                assert!(
                    found == expected,
                    "{method:?} over {groups:?}, {} threads",
                    pool.current_num_threads()
                );
            }
        }
    }
}

#[test]
fn the_lowest_bad_index_is_named_whatever_finds_it_first() {
    let mut values = bell(300_000, 2);
    for index in [299_999, 200_001, 131_075, 131_073] {
        values[index] = f32::NAN;
        for (count, len) in [(1, 300_000), (2, 150_000), (75, 4000), (9375, 32)] {
            for pool in pools() {
                let found = by_threads(&pool, &values, Groups { count, len }, Method::Affine);
                assert_eq!(
                    found.result,
                    Err(QuantError::NotFinite {
                        index: index as u64
                    })
                );
            }
        }
    }
}

#[test]
fn zero_points_that_nobody_keeps_are_refused() {
    let values = [1.0f32, 2.0];
    let (mut codes, mut scales) = ([0; 2], [0.0; 1]);
    let groups = Groups::tensor(2).unwrap();
    let tensor = parallel::Tensor::new(&values, groups, &mut codes, &mut scales, &mut []).unwrap();
    let refused = QuantError::Length {
        expected: 1,
        found: 0,
    };
    assert_eq!(tensor.quantize(Method::Affine), Err(refused));
}

#[test]
fn dequantize_equals_core_and_names_the_lowest_bad_code() {
    let mut random = Random::new(3);
    for (count, len) in [(1, 300_000), (2, 150_000), (75, 4000), (9375, 32)] {
        let groups = Groups { count, len };
        let mut codes: Vec<i8> = (0..count * len)
            .map(|_| random.below(3) as i8 - 1)
            .collect();
        let scales: Vec<f32> = (0..count).map(|i| 0.1 + i as f32).collect();
        let zero_points: Vec<i8> = (0..count).map(|i| i as i8).collect();
        for zero_points in [&zero_points[..], &[]] {
            let tensor = Codes {
                groups,
                codes: &codes,
                scales: &scales,
                zero_points,
            };
            let (mut expected, mut found) = (vec![0.0; codes.len()], vec![0.0; codes.len()]);
            for backend in Backend::all() {
                let mut engine = Threads::default().with_backend(backend);
                for range in [int8::RANGE, int4::RANGE, ternary::RANGE] {
                    int8::dequantize(tensor, &mut expected).unwrap();
                    engine.dequantize(tensor, range, &mut found).unwrap();
                    assert!(expected == found, "{backend}");
                }
            }
        }
        codes[299_000] = 2;
        codes[137_777] = -2;
        let tensor = Codes {
            groups,
            codes: &codes,
            scales: &scales,
            zero_points: &[],
        };
        let mut out = vec![0.0; codes.len()];
        let refused = Err(QuantError::CodeRange { index: 137_777 });
        assert_eq!(
            Threads::default().dequantize(tensor, ternary::RANGE, &mut out),
            refused
        );
    }
}

/// `Comparison::push` in chunks that end nowhere near a run.
fn by_chunks(original: &[f32], restored: &[f32], chunk: usize) -> Comparison {
    let mut comparison = Comparison::new();
    for (a, b) in original.chunks(chunk).zip(restored.chunks(chunk)) {
        comparison.push(a, b).unwrap();
    }
    comparison
}

/// A tensor of four runs and a part, whose largest error appears twice, in different runs.
fn compared(len: usize) -> (Vec<f32>, Vec<f32>) {
    let (mut original, noise) = (bell(len, 5), bell(len, 6));
    let mut restored: Vec<f32> = (original.iter().zip(&noise))
        .map(|(x, e)| x + e / 64.0)
        .collect();
    for index in [70_000, 200_000] {
        if index < len {
            (original[index], restored[index]) = (1.0, 17.0);
        }
    }
    (original, restored)
}

/// All of the state, bits included: `Debug` prints floats so that they read back to the same bits, −0 as such.
fn state(comparison: &Comparison) -> String {
    format!("{comparison:?}")
}

#[test]
fn comparisons_do_not_depend_on_thread_count() {
    for len in [0, 1, 1000, 65_535, 65_536, 65_537, 131_072, 300_000] {
        let (original, restored) = compared(len);
        let expected = by_chunks(&original, &restored, 7777);
        for pool in pools() {
            let found = pool.install(|| parallel::compare(&original, &restored));
            assert_eq!(found.map(|found| state(&found)), Ok(state(&expected)));
        }
    }
    let (original, restored) = compared(300_000);
    let measures = by_chunks(&original, &restored, 7777).finish().unwrap();
    assert_eq!((measures.max_error, measures.max_index), (16.0, 70_000));
}

#[test]
fn comparisons_go_on_from_any_chunk() {
    let (original, restored) = compared(300_000);
    let expected = state(&by_chunks(&original, &restored, 999));
    for chunk in [1 << 16, 100_001, 200_000] {
        let mut comparison = Comparison::new();
        for (a, b) in original.chunks(chunk).zip(restored.chunks(chunk)) {
            Threads::default().compare(&mut comparison, a, b).unwrap();
        }
        assert_eq!(state(&comparison), expected);
    }
}

#[test]
fn comparisons_name_the_lowest_bad_index_and_add_nothing() {
    let (mut original, mut restored) = compared(300_000);
    let start = 10_000;
    let mut comparison = by_chunks(&original[..start], &restored[..start], 99);
    let before = state(&comparison);
    for (index, of_restored) in [
        (299_999, true),
        (140_000, false),
        (65_536, true),
        (0, false),
    ] {
        let tensor = if of_restored {
            &mut restored
        } else {
            &mut original
        };
        tensor[index] = f32::INFINITY;
        for pool in pools() {
            let refused = |index| QuantError::NotFinite { index };
            let found = pool.install(|| parallel::compare(&original, &restored));
            assert_eq!(found, Err(refused(index as u64)));
            let found =
                pool.install(|| Threads::default().compare(&mut comparison, &original, &restored));
            assert_eq!(found, Err(refused((start + index) as u64)));
            assert_eq!(state(&comparison), before);
        }
    }
    let refused = QuantError::Length {
        expected: 2,
        found: 1,
    };
    assert_eq!(parallel::compare(&[1.0f32; 2], &[1.0f32]), Err(refused));
}

#[test]
fn conformance_holds_for_any_tile_thread_count_and_backend() {
    // Under the sanitizer, which is after accesses and not after sums, two of them.
    let tiles: &[usize] = if cfg!(sanitized) {
        &[7, 1 << 16]
    } else {
        &[1, 7, 64, 100, 1 << 16]
    };
    for (tile, backend) in tiles
        .iter()
        .flat_map(|&tile| Backend::all().map(move |backend| (tile, backend)))
    {
        for pool in pools() {
            let mut engine = Threads::with_tile(tile).with_backend(backend);
            let agreed = pool.install(|| conformance::check_engine(&mut engine));
            assert!(
                agreed.is_ok_and(|agreed| agreed > 20),
                "{tile}, {backend}: {agreed:?}"
            );
        }
    }
}

#[test]
fn language_models_have_the_table_s_bits_on_any_backend() {
    for backend in Backend::all() {
        let engines = [Threads::with_tile(64), Threads::alone()];
        // Of the sanitizer's minutes this would take most.
        let engines = engines.into_iter().take(1 + usize::from(!cfg!(sanitized)));
        for threads in engines {
            let (mut threads, mut operations) = (threads.with_backend(backend), 0);
            let mut agrees = |name, found| {
                let expected = conformance::expected(name);
                assert_eq!(expected, Some(found), "{name}, {backend}");
                operations += 1;
            };
            conformance::run_models(&mut threads, &mut agrees);
            conformance::run_training(&mut threads, &mut agrees);
            assert!(operations > 30, "{backend}");
        }
    }
}

#[test]
fn conformance_holds_on_the_calling_thread_alone() {
    for backend in Backend::all() {
        let mut engine = Threads::alone().with_backend(backend);
        let agreed = conformance::check_engine(&mut engine);
        assert!(agreed.is_ok_and(|agreed| agreed > 20), "{agreed:?}");
        tercet_host::conformance::run(&engine, &mut |operation, agrees| {
            assert!(agrees, "{operation}, {backend}");
        });
    }
}

#[test]
fn blocks_do_not_depend_on_tiles() {
    let mut values = bell(256 * 40, 4);
    values[..256].fill(1e-42);
    for format in [
        Format::Tq1_0,
        Format::Tq2_0,
        Format::Q2_0,
        Format::Q8_0,
        Format::Q4_0,
    ] {
        let run = |values: &[f32], tile| {
            let mut bytes = vec![0; format.encoded_len(values.len()).unwrap()];
            let mut engine = Threads::with_tile(tile);
            let encoded =
                engine.encode_blocks(format, Rule::AbsMax, ScaleRule::Rule, values, &mut bytes);
            let mut back = vec![0.0; values.len()];
            let decoded = engine.decode_blocks(format, &bytes, &mut back);
            (encoded, bytes, decoded, back)
        };
        let whole = run(&values, usize::MAX);
        assert!(whole.0.is_ok_and(|encoded| encoded.flushed > 0));
        assert!(run(&values, 1000) == whole, "{format:?}");
        let mut spoiled = values.clone();
        spoiled[9001] = 1e30;
        spoiled[9500] = f32::NAN;
        assert_eq!(run(&spoiled, 1000).0, run(&spoiled, usize::MAX).0);
        spoiled[5003] = f32::NAN;
        let refused = Err(BlockError::NotFinite { index: 5003 });
        assert_eq!(run(&spoiled, 1000).0, refused);
        let mut bytes = whole.1;
        let spoiled = values.len() / format.len() / 2;
        bytes[spoiled * format.bytes()..].fill(0xFF);
        let mut back = vec![0.0; values.len()];
        let decoded = Threads::with_tile(1000).decode_blocks(format, &bytes, &mut back);
        assert_eq!(decoded, Err(BlockError::ScaleNotFinite { block: spoiled }));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// Any bits, any small shape, halves too.
    #[test]
    fn small_tensors_agree(
        bits in prop::collection::vec(any::<u16>(), 1..2000), rows in 1usize..6, tile in 0usize..500, optimal in any::<bool>(),
    ) {
        let values: Vec<f16> = bits.iter().map(|&b| f16::from_bits(b)).filter(|x| x.is_finite()).collect();
        let cols = values.len() / rows;
        prop_assume!(cols > 0);
        let groups = Groups::rows(rows, cols).unwrap();
        let values = &values[..rows * cols];
        let rule = if optimal { Rule::Optimal } else { Rule::Twn };
        let method = Method::Ternary { rule, scale_rule: ScaleRule::Rule };
        let wide: Vec<f32> = values.iter().map(|x| x.to_f32()).collect();
        let expected = by_scalar(&wide, groups, method);
        let found = outputs(groups, |(codes, scales, zero_points)| {
            let tensor = parallel::Tensor::new(values, groups, codes, scales, zero_points)?;
            tensor.with_tile(tile).quantize(method)
        });
        prop_assert_eq!(found, expected);
    }
}
