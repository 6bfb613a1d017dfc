//! Data larger than the device's memory, with the bits of the reference. The device here has 4 MiB.
#![cfg(all(feature = "cuda", target_os = "linux"))]

mod support;

use support::cluster::NOTHING;
use support::draw::Draw;
use support::emulator::{Device, device};
use support::quantize::{bins, quantized, values};
use tercet_core::block::Format;
use tercet_core::cluster::{Points, Update};
use tercet_core::engine::{
    BlockEngine, ClusterEngine, LinearEngine, PaletteEngine, SearchBase, SearchEngine,
};
use tercet_core::linear::{I8Sym, Layer, Layout, Matrix};
use tercet_core::palette::{self, Output, Palette, Width};
use tercet_core::quant::{self, Codes, Groups, Method, QuantError, Rule, ScaleRule};
use tercet_core::scalar::{self, Scalar};
use tercet_core::search::{Hit, Int8Rows, SquaredL2};
use tercet_gpu::engine::{Cuda, CudaError, CudaOptions};

const MEMORY: usize = 4 << 20;
/// Values of f32 in 6 MiB.
const VALUES: usize = 3 << 19;

fn small() -> Option<(Device, Cuda)> {
    let device = device()?;
    // Before the driver starts; a real device keeps to the option.
    device.set("memory=4M");
    let options = CudaOptions {
        memory: Some(MEMORY),
        slot: 64 << 10,
        ..CudaOptions::default()
    };
    let cuda = Cuda::new(&options).unwrap();
    Some((device, cuda))
}

/// What is larger than the memory must have come in parts.
fn assert_full(cuda: &Cuda) {
    let stats = cuda.memory().unwrap().bytes;
    assert!(stats.failures > 0, "{stats:?}");
    assert!(stats.high_water <= MEMORY && stats.in_use == 0, "{stats:?}");
}

fn codes(len: usize, seed: u64) -> Vec<i8> {
    let mut draw = Draw(seed);
    (0..len).map(|_| draw.next() as i8).collect()
}

#[test]
fn tensors_quantize() {
    let Some((device, mut cuda)) = small() else {
        return;
    };
    let values = values(1, 0, VALUES);
    let optimal = Method::Ternary {
        rule: Rule::Optimal,
        scale_rule: ScaleRule::Rule,
    };
    let mean = Method::Ternary {
        rule: Rule::AbsMean,
        scale_rule: ScaleRule::LeastSquares,
    };
    for (seed, count, method) in [
        (1, VALUES / 1024, Method::Affine),
        (2, 3, mean),
        (3, 1, optimal),
        (4, 1, Method::Affine),
    ] {
        device.set(&format!("seed={seed}"));
        let groups = Groups {
            count,
            len: VALUES / count,
        };
        let expected = quantized(&mut Scalar, &values, groups, true, |tensor| {
            quant::quantize(tensor, method, &mut bins())
        })
        .map_err(CudaError::from);
        let found = quantized(&mut cuda, &values, groups, true, |tensor| {
            quant::quantize(tensor, method, &mut bins())
        });
        assert!(found == expected, "{groups:?}, {method:?}");
    }
    assert_full(&cuda);
}

#[test]
fn the_first_bad_value_is_found_in_any_part() {
    let Some((_device, mut cuda)) = small() else {
        return;
    };
    let groups = Groups::tensor(VALUES).unwrap();
    for index in [5, VALUES / 2 + 77, VALUES - 1] {
        let mut values = values(2, 0, VALUES);
        values[index] = f32::NAN;
        values[VALUES - 1] = f32::NAN;
        let found = quantized(&mut cuda, &values, groups, true, |tensor| {
            quant::quantize(tensor, Method::Affine, &mut bins())
        });
        let index = index as u64;
        assert!(
            found == Err(QuantError::NotFinite { index }.into()),
            "{index}"
        );
    }
}

#[test]
fn codes_are_restored() {
    let Some((_device, mut cuda)) = small() else {
        return;
    };
    let codes = codes(VALUES, 3);
    for (count, points) in [
        (VALUES / 32, true),
        (VALUES / 48, false),
        (3, true),
        (1, false),
    ] {
        let groups = Groups {
            count,
            len: VALUES / count,
        };
        let scales: Vec<f32> = (0..count).map(|group| 0.25 + group as f32).collect();
        let zero_points: Vec<i8> = (0..count).map(|group| group as i8).collect();
        let there = Codes {
            groups,
            codes: &codes,
            scales: &scales,
            zero_points: if points { &zero_points } else { &[] },
        };
        let (mut expected, mut found) = (vec![0.0; VALUES], vec![1.0; VALUES]);
        quant::int8::dequantize(there, &mut expected).unwrap();
        cuda.dequantize_slices(there, &mut found).unwrap();
        assert!(found == expected, "{groups:?}");
    }
    let short = Codes {
        groups: Groups { count: 1, len: 8 },
        codes: &codes[..8],
        scales: &[],
        zero_points: &[],
    };
    let (expected, found) = (1, 0);
    assert_eq!(
        cuda.dequantize_slices(short, &mut [0.0_f32; 8]),
        Err(QuantError::Length { expected, found }.into())
    );
    assert_full(&cuda);
}

#[test]
fn blocks_pass_through() {
    let Some((_device, mut cuda)) = small() else {
        return;
    };
    let values = values(4, 0, VALUES);
    let format = Format::Q8_0;
    let (rule, scale) = (Rule::AbsMax, ScaleRule::Rule);
    let len = format.encoded_len(VALUES).unwrap();
    let (mut expected, mut found) = (vec![0; len], vec![1; len]);
    BlockEngine::encode_blocks(&mut Scalar, format, rule, scale, &values, &mut expected).unwrap();
    BlockEngine::encode_blocks(&mut cuda, format, rule, scale, &values, &mut found).unwrap();
    assert!(found == expected);
    let (mut wide, mut back) = (vec![0.0; VALUES], vec![1.0; VALUES]);
    BlockEngine::decode_blocks(&mut Scalar, format, &expected, &mut wide).unwrap();
    BlockEngine::decode_blocks(&mut cuda, format, &expected, &mut back).unwrap();
    assert!(back == wide);
    // Twice the bytes, so that weights and activations exceed the memory.
    let (expected, x) = (expected.repeat(2), codes(2 * VALUES, 5));
    let product = BlockEngine::dot_blocks(&mut Scalar, format, &expected, &x, 0.5).unwrap();
    assert_eq!(
        BlockEngine::dot_blocks(&mut cuda, format, &expected, &x, 0.5),
        Ok(product)
    );
    assert_full(&cuda);
}

/// Rows that fit alone and not beside what a scan needs, and rows that do not fit at all.
#[test]
fn rows_are_searched_in_parts() {
    let Some((_device, mut cuda)) = small() else {
        return;
    };
    for bytes in [MEMORY - (96 << 10), 3 * MEMORY / 2] {
        let (values, queries) = (codes(bytes / 512 * 512, 6), codes(2 * 512, 7));
        let rows = Int8Rows::new(&values, 512).unwrap();
        let (mut expected, mut found) = ([Hit::default(); 10], [Hit::default(); 10]);
        scalar::Base::new(rows)
            .top_k_all::<SquaredL2>(&queries, 5, &mut expected)
            .unwrap();
        let mut base = cuda.base(rows).unwrap();
        let len = base.top_k_all::<SquaredL2>(&queries, 5, &mut found);
        assert_eq!(len, Ok(5));
        assert_eq!(found, expected, "{bytes}");
        assert!(!base.is_resident());
    }
    assert_full(&cuda);
}

#[test]
fn layers_and_palettes_go_part_by_part() {
    let Some((_device, mut cuda)) = small() else {
        return;
    };
    let (rows, cols) = (1536, 4096);
    let bytes: Vec<u8> = codes(rows * cols, 8).iter().map(|&x| x as u8).collect();
    let layer = Layer::new(Matrix::new(Layout::Int8, rows, cols, &bytes).unwrap());
    let x: Vec<i8> = codes(cols, 9).iter().map(|&x| x.max(-127)).collect();
    let x = I8Sym::new(&x).unwrap();
    let mut scratch = vec![0; Layout::Int8.scratch_len(rows, cols)];
    let (mut expected, mut found) = (vec![0; rows], vec![1; rows]);
    Scalar.sums(&layer, x, &mut expected, &mut scratch).unwrap();
    cuda.sums(&layer, x, &mut found, &mut scratch).unwrap();
    assert!(found == expected);

    let layout = palette::IndexMatrix::new(Width::new(2).unwrap(), 1536, 1024, 48).unwrap();
    let values = values(5, 0, layout.values());
    let mut scratch = vec![0; layout.scratch_len()];
    let mut made = [0; 2].map(|_: i32| {
        let indices = vec![0; layout.index_bytes()];
        (
            indices,
            vec![0; layout.codebook_len()],
            vec![0.0; layout.groups()],
        )
    });
    let [expected, found] = &mut made;
    for (scalar, (indices, codebooks, scales)) in [(true, expected), (false, found)] {
        let out = Output {
            indices,
            codebooks,
            scales,
        };
        if scalar {
            PaletteEngine::encode_palette(&mut Scalar, &layout, &values, &[], out, &mut scratch)
                .unwrap();
        } else {
            PaletteEngine::encode_palette(&mut cuda, &layout, &values, &[], out, &mut scratch)
                .unwrap();
        }
    }
    assert!(made[0] == made[1]);
    let (indices, codebooks, scales) = &made[0];
    let palette = Palette {
        layout,
        indices,
        codebooks,
        scales,
    };
    let (mut wide, mut back) = (vec![0.0; layout.values()], vec![1.0; layout.values()]);
    PaletteEngine::decode_palette(&mut Scalar, &palette, &mut wide).unwrap();
    PaletteEngine::decode_palette(&mut cuda, &palette, &mut back).unwrap();
    assert!(back == wide);
    assert_full(&cuda);
}

#[test]
fn points_that_do_not_fit_are_refused() {
    let Some((_device, mut cuda)) = small() else {
        return;
    };
    let values = codes(5 << 20, 1);
    let points = Points::new(&values, 64).unwrap();
    let refused = cuda.clusters(points, 3, Update::Mean, NOTHING());
    assert!(refused.is_err_and(|error| error.is_out_of_memory()));
    let points = Points::new(&values[..64 << 10], 64).unwrap();
    assert!(cuda.clusters(points, 3, Update::Mean, NOTHING()).is_ok());
}
