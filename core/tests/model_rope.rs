//! Rotation: its steps against exact quotients, and rotated pairs against f64.

use proptest::prelude::*;
use tercet_core::model::{ModelError, Rope, rotate};
use tercet_core::number::{Random, rope_step};

/// `step` · 2^`down` / `by`, half to even.
fn quotient(step: u64, by: u32, down: u32) -> u64 {
    let numerator = u128::from(step) << down;
    let (whole, rest) = (numerator / u128::from(by), numerator % u128::from(by));
    let up = match (2 * rest).cmp(&u128::from(by)) {
        std::cmp::Ordering::Less => 0,
        std::cmp::Ordering::Equal => whole & 1,
        std::cmp::Ordering::Greater => 1,
    };
    (whole + up) as u64
}

proptest! {
    #[test]
    fn steps_are_divided_as_rationals(
        base in 1f32..1e6,
        (by, down) in (1u32..4096, 0u32..12),
        own in proptest::collection::vec(1u32..4096, 1..24),
    ) {
        let factor = by as f32 / (1u32 << down) as f32;
        let bytes: Vec<u8> = own.iter().flat_map(|&own| (own as f32 / 16.0).to_le_bytes()).collect();
        let mut steps = vec![7; own.len()];
        prop_assert_eq!(Rope::fill(base, factor, &bytes, &mut steps), Ok(()));
        for ((pair, &own), &step) in (0..).zip(&own).zip(&steps) {
            let whole = rope_step(base, pair, 2 * steps.len() as u32).unwrap();
            prop_assert_eq!(step, quotient(quotient(whole, by, down), own, 4));
        }
        // Without factors of pairs.
        prop_assert_eq!(Rope::fill(base, factor, &[], &mut steps), Ok(()));
        let whole = rope_step(base, 0, 2 * steps.len() as u32).unwrap();
        prop_assert_eq!(steps[0], quotient(whole, by, down));
    }

    #[test]
    fn a_pair_is_rotated_to_three_roundings(seed in any::<u64>(), pairs in 1usize..40, position in any::<u32>()) {
        let mut random = Random::new(seed);
        let head: Vec<f32> = (0..2 * pairs).map(|_| random.normal()).collect();
        let steps: Vec<u64> = (0..pairs).map(|_| random.next_u64()).collect();
        let rope = Rope { steps: &steps, neighbours: false };
        let mut angles = vec![9.0; 2 * pairs];
        rope.angles(position, &mut angles);
        let mut halves = vec![9.0; 2 * pairs];
        rotate(&head, false, &angles, &mut halves);
        for (pair, angle) in angles.chunks(2).enumerate() {
            let (a, b) = (f64::from(head[pair]), f64::from(head[pair + pairs]));
            let (cosine, sine) = (f64::from(angle[0]), f64::from(angle[1]));
            let bound = a.hypot(b) * 4.0 / f64::from(1 << 24);
            prop_assert!((f64::from(halves[pair]) - (a * cosine - b * sine)).abs() <= bound);
            prop_assert!((f64::from(halves[pair + pairs]) - (a * sine + b * cosine)).abs() <= bound);
        }
        // Neighbours are the same pairs in other places.
        let beside = |halves: &[f32]| -> Vec<f32> {
            let pairs = halves[..pairs].iter().zip(&halves[pairs..]);
            pairs.flat_map(|(&a, &b)| [a, b]).collect()
        };
        let mut neighbours = vec![9.0; 2 * pairs];
        rotate(&beside(&head), true, &angles, &mut neighbours);
        prop_assert_eq!(neighbours, beside(&halves));
    }
}

#[test]
fn what_does_not_divide_a_step_is_refused() {
    let mut steps = [0; 2];
    let key = |factor: f32, steps: &mut [u64]| Rope::fill(1e4, factor, &[], steps);
    for factor in [
        0.0,
        -1.0,
        f32::NAN,
        f32::INFINITY,
        2f32.powi(41),
        2f32.powi(-41),
    ] {
        let refused = key(factor, &mut steps);
        let named = matches!(
            refused,
            Err(ModelError::Key {
                key: "rope.scaling.factor",
                ..
            })
        );
        assert!(named, "{factor}: {refused:?}");
        let bytes = [1f32.to_le_bytes(), factor.to_le_bytes()].concat();
        let refused = Rope::fill(1e4, 1.0, &bytes, &mut steps);
        let named = matches!(
            refused,
            Err(ModelError::Tensor {
                tensor: "rope_freqs.weight",
                ..
            })
        );
        assert!(named, "{factor}: {refused:?}");
    }
    for factor in [2f32.powi(40), 2f32.powi(-40)] {
        assert_eq!(key(factor, &mut steps), Ok(()));
    }
    let short = Rope::fill(1e4, 1.0, &[0; 4], &mut steps);
    assert!(matches!(short, Err(ModelError::Tensor { .. })), "{short:?}");
}
