//! Activations that are normalized and quantized have core's bits, for every instruction set and number of threads.

use tercet_core::engine::QuantizeEngine;
use tercet_core::number::Random;
use tercet_core::quant::QuantError;
use tercet_core::quant::activations::{Activations, Norm};
use tercet_core::scalar::Scalar;
use tercet_host::parallel::Threads;
use tercet_host::simd::Backend;

type Found = (Result<(), QuantError>, Vec<i8>, Vec<i16>, Vec<u32>);

fn run<E: QuantizeEngine<Error = QuantError>>(
    engine: &mut E,
    x: &[f32],
    norm: Option<Norm<'_>>,
    rows: usize,
) -> Found {
    let (mut a8, mut a16) = (vec![0; x.len()], vec![0; x.len()]);
    let mut scales = vec![0.0; rows];
    let narrow = engine.norm_quantize(x, norm, Activations::A8(&mut a8), &mut scales);
    let of_narrow: Vec<u32> = scales.iter().map(|scale| scale.to_bits()).collect();
    let wide = engine.norm_quantize(x, norm, Activations::A16(&mut a16), &mut scales);
    assert_eq!(narrow, wide);
    let bits = of_narrow
        .into_iter()
        .chain(scales.iter().map(|scale| scale.to_bits()));
    (narrow, a8, a16, bits.collect())
}

#[test]
fn every_backend_gives_cores_codes_and_scales() {
    let mut random = Random::new(50);
    for (cols, rows) in [
        (1, 3),
        (31, 5),
        (64, 2),
        (65, 4),
        (256, 9),
        (1000, 3),
        (4096, 33),
        // Beyond a run of the sum.
        (65_600, 2),
    ] {
        for kind in 0..4 {
            let value = |random: &mut Random| match kind {
                // Plain, of all exponents, with ties, and mostly zeros.
                0 => random.signed_f32(),
                1 => f32::from_bits(random.next_u64() as u32 & 0xBFFF_FFFF),
                2 => (random.below(64) as f32 - 32.0) / 4.0,
                _ => (random.below(9) == 0) as u8 as f32 * -3.0,
            };
            let mut x: Vec<f32> = (0..cols * rows).map(|_| value(&mut random)).collect();
            if kind == 2 {
                // The second row is spoiled.
                x[cols] = f32::NAN;
            }
            let gains: Vec<f32> = (0..cols).map(|_| 1.0 + random.signed_f32()).collect();
            for eps in [None, Some(1e-5), Some(0.0)] {
                let norm = eps.map(|eps| Norm { gains: &gains, eps });
                let expected = run(&mut Scalar, &x, norm, rows);
                for backend in Backend::all() {
                    let mut threads = Threads::default().with_backend(backend);
                    let found = run(&mut threads, &x, norm, rows);
                    assert!(found == expected, "{cols} × {rows}, kind {kind}, {backend}");
                }
                let alone = run(&mut Threads::alone(), &x, norm, rows);
                assert!(alone == expected, "{cols} × {rows}, alone");
            }
        }
    }
}
