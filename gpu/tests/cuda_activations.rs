//! Activations that are normalized and quantized on a device have core's bits.

use crate::support::emulator::device;
use tercet_core::engine::QuantizeEngine;
use tercet_core::number::Random;
use tercet_core::quant::QuantError;
use tercet_core::quant::activations::{self, Activations, Norm};
use tercet_gpu::engine::{Cuda, CudaError, CudaOptions};

type Found<E> = (Result<(), E>, Vec<i8>, Vec<i16>, Vec<u32>);

/// Both widths by a function.
fn both<E: PartialEq + std::fmt::Debug>(
    x: &[f32],
    rows: usize,
    mut run: impl FnMut(Activations<'_>, &mut [f32]) -> Result<(), E>,
) -> Found<E> {
    let (mut a8, mut a16) = (vec![9; x.len()], vec![9; x.len()]);
    let (mut narrow, mut wide) = (vec![0.0; rows], vec![0.0; rows]);
    let done = run(Activations::A8(&mut a8), &mut narrow);
    assert_eq!(run(Activations::A16(&mut a16), &mut wide), done);
    // NaN has many patterns.
    let bits = |scale: f32| {
        if scale.is_nan() {
            u32::MAX
        } else {
            scale.to_bits()
        }
    };
    let scales = narrow.into_iter().chain(wide).map(bits).collect();
    (done, a8, a16, scales)
}

fn check(cuda: &mut Cuda, x: &[f32], norm: Option<Norm<'_>>, rows: usize) {
    let expected = both(x, rows, |out, scales| {
        activations::quantize(x, norm, out, scales).map_err(CudaError::from)
    });
    let found = both(x, rows, |out, scales| {
        cuda.norm_quantize(x, norm, out, scales)
    });
    assert!(found == expected, "{} values in {rows} rows", x.len());
}

fn rows_of(cols: usize, rows: usize, seed: u64) -> (Vec<f32>, Vec<f32>) {
    let mut random = Random::new(seed);
    let any = |random: &mut Random| match seed % 3 {
        0 => random.signed_f32(),
        1 => f32::from_bits(random.next_u64() as u32 & 0xBFFF_FFFF),
        _ => (random.below(64) as f32 - 32.0) / 4.0 * (random.below(2) as f32),
    };
    let x = (0..cols * rows).map(|_| any(&mut random)).collect();
    (x, (0..cols).map(|_| 1.0 + random.signed_f32()).collect())
}

#[test]
fn codes_and_scales_are_cores() {
    let Some(device) = device() else { return };
    let mut cuda = Cuda::first().unwrap();
    // The last has rows beyond a run of the sum.
    let shapes = [
        (1, 3),
        (31, 5),
        (64, 2),
        (65, 4),
        (256, 9),
        (1000, 3),
        (65_600, 1),
    ];
    for (seed, (cols, rows)) in (0..9).flat_map(|seed| shapes.map(|shape| (seed, shape))) {
        if cols > 1000 && seed > 2 {
            continue;
        }
        device.set(&format!("seed={seed}"));
        let (mut x, gains) = rows_of(cols, rows, seed);
        if seed > 5 {
            x[cols * rows / 2] = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY][seed as usize - 6];
        }
        check(&mut cuda, &x, None, rows);
        for eps in [1e-5, 0.0] {
            let norm = Norm { gains: &gains, eps };
            check(&mut cuda, &x, Some(norm), rows);
        }
    }
    check(&mut cuda, &[], None, 0);
    let refused = cuda.norm_quantize(&[1.0; 4], None, Activations::A8(&mut [0; 4]), &mut [0.0; 3]);
    let (len, group_len) = (4, 1);
    assert_eq!(
        refused,
        Err(QuantError::GroupLength { len, group_len }.into())
    );
}

#[test]
fn rows_that_do_not_fit_pass_through() {
    let Some(_device) = device() else { return };
    let options = CudaOptions {
        memory: Some(1 << 20),
        ..CudaOptions::default()
    };
    let mut cuda = Cuda::new(&options).unwrap();
    let (x, gains) = rows_of(1000, 400, 3);
    let norm = Norm {
        gains: &gains,
        eps: 1e-5,
    };
    check(&mut cuda, &x, Some(norm), 400);
}
