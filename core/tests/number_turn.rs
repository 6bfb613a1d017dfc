//! Angles in integers against f64.

use std::f64::consts::TAU;

use tercet_core::number::{Random, rope_step, sin_cos};

/// 2⁻²⁸, and the rounding to f32.
const BOUND: f64 = 1.0 / (1u64 << 28) as f64 + 1.0 / (1u64 << 25) as f64;

fn digest(digest: u64, word: u64) -> u64 {
    (digest ^ word).wrapping_mul(0x100_0000_01b3)
}

#[test]
fn sine_and_cosine_are_within_their_bound_all_around() {
    let mut random = Random::new(1);
    let even = (0..1u64 << 20).map(|step| step << 44);
    let any = (0..1 << 20).map(|_| random.next_u64());
    let edges = (0..8u64)
        .flat_map(|eighth| (-3i64..=3).map(move |by| (eighth << 61).wrapping_add_signed(by)));
    let mut all = 0;
    for phase in even.chain(any).chain(edges) {
        let (sine, cosine) = sin_cos(phase);
        // Of a turn to each side, which f64 holds to 53 bits.
        let angle = phase.cast_signed() as f64 / 2f64.powi(64) * TAU;
        let off = [
            f64::from(sine) - angle.sin(),
            f64::from(cosine) - angle.cos(),
        ];
        assert!(
            off.iter().all(|off| off.abs() <= BOUND),
            "{phase:#x}: {off:?}"
        );
        all = digest(digest(all, sine.to_bits().into()), cosine.to_bits().into());
    }
    assert_eq!(format!("{all:016x}"), "fd00337b11bb2a2a");
}

#[test]
fn quarters_are_exact() {
    let found = [0, 1, 2, 3].map(|quarter| sin_cos(quarter << 62));
    assert_eq!(found, [(0.0, 1.0), (1.0, 0.0), (0.0, -1.0), (-1.0, 0.0)]);
}

#[test]
fn steps_are_within_their_bound() {
    let mut all = 0;
    for base in [
        1.0,
        1.5,
        10_000.0,
        1e5,
        5e5,
        1e6,
        1e7,
        1.0f32.next_up(),
        f32::MAX,
    ] {
        for dims in [2, 4, 48, 64, 80, 96, 128, 256, u32::MAX - 1] {
            for pair in (0..dims / 2).step_by(1.max(dims as usize / 300)) {
                let found = rope_step(base, pair, dims).expect("a pair");
                let power = -f64::from(pair) * 2.0 / f64::from(dims);
                let exact = f64::from(base).powf(power) / TAU * 2f64.powi(64);
                let off = (found as f64 - exact).abs();
                assert!(
                    off <= exact / 2f64.powi(44) + 1.0,
                    "{base} {pair} {dims}: {off} of {exact}"
                );
                all = digest(all, found);
            }
        }
    }
    assert_eq!(format!("{all:016x}"), "85614746f3ab82c1");
}

#[test]
fn what_is_no_rotation_is_refused() {
    for base in [0.0, -1.0, 0.99, f32::NAN, f32::INFINITY] {
        assert_eq!(rope_step(base, 0, 64), None, "{base}");
    }
    for (pair, dims) in [(0, 0), (0, 1), (0, 63), (32, 64), (u32::MAX, 64)] {
        assert_eq!(rope_step(10_000.0, pair, dims), None, "{pair} {dims}");
    }
}
