//! The best entries for weighted integers on a line, against searches that leave nothing out.

use crate::support::cases;
use proptest::collection::{btree_set, vec};
use proptest::prelude::*;
use tercet_core::number::Random;
use tercet_core::palette::{Counts, MAX_WEIGHT, Optimum, PaletteError, optimal_1d, scratch_len};
use tercet_core::quant::Grid;

/// The codebook and what was found; scratch starts as garbage, since its content must not matter.
fn found(values: &[i8], weights: &[u64], entries: usize) -> (Vec<i8>, Optimum) {
    let mut codebook = vec![55; entries];
    let mut scratch = vec![0xDEAD_BEEF_0BAD_F00D; scratch_len(values.len(), entries)];
    let best = optimal_1d(values, weights, &mut codebook, &mut scratch).unwrap();
    (codebook, best)
}

/// Σ w·(x − its nearest entry)².
fn cost(values: &[i8], weights: &[u64], codebook: &[i8]) -> u64 {
    let costs = values.iter().zip(weights).map(|(&x, &w)| {
        let nearest = codebook
            .iter()
            .map(|&c| i64::from(x).abs_diff(i64::from(c)).pow(2))
            .min();
        w * nearest.unwrap()
    });
    costs.sum()
}

/// The least cost of any codebook of `entries` integers in `range`: every one is tried.
fn least_of_all(values: &[i8], weights: &[u64], entries: usize, range: &[i8]) -> u64 {
    fn search(chosen: &mut Vec<i8>, left: usize, range: &[i8], of: &dyn Fn(&[i8]) -> u64) -> u64 {
        if left == 0 {
            return of(chosen);
        }
        let mut least = u64::MAX;
        for (at, &entry) in range.iter().enumerate() {
            chosen.push(entry);
            least = least.min(search(chosen, left - 1, &range[at..], of));
            chosen.pop();
        }
        least
    }
    search(&mut Vec::new(), entries, range, &|codebook| {
        cost(values, weights, codebook)
    })
}

/// The least cost over all cuts into segments, in 128 bits, and the cut that the ties' rule takes: the plain
/// quadratic recurrence, each mean rounded from its fraction.
fn by_plain_recurrence(values: &[i8], weights: &[u64], entries: usize) -> (Vec<i8>, u64) {
    let segment = |from: usize, to: usize| {
        let part = || values[from..to].iter().zip(&weights[from..to]);
        let weight: i128 = part().map(|(_, &w)| i128::from(w)).sum();
        let moment: i128 = part().map(|(&x, &w)| i128::from(x) * i128::from(w)).sum();
        let entry = moment.signum() * ((2 * moment.abs() + weight) / (2 * weight));
        let cost: i128 = part()
            .map(|(&x, &w)| i128::from(w) * (i128::from(x) - entry).pow(2))
            .sum();
        (entry as i8, cost)
    };
    let n = values.len();
    let mut layers = vec![
        (0..=n)
            .map(|end| (0, if end == 0 { 0 } else { segment(0, end).1 }))
            .collect::<Vec<_>>(),
    ];
    for layer in 1..entries {
        let before = &layers[layer - 1];
        let row = (0..=n).map(|end| {
            let starts = (layer..end).map(|start| (start, before[start].1 + segment(start, end).1));
            // The first of the least.
            starts
                .min_by_key(|&(_, cost)| cost)
                .unwrap_or((0, i128::MAX / 4))
        });
        let row = row.collect();
        layers.push(row);
    }
    let mut codebook = vec![0; entries];
    let mut end = n;
    for layer in (0..entries).rev() {
        let start = layers[layer][end].0;
        codebook[layer] = segment(start, end).0;
        end = start;
    }
    (codebook, layers[entries - 1][n].1 as u64)
}

/// Rising values with weights from 1 on.
fn points(most: usize) -> impl Strategy<Value = (Vec<i8>, Vec<u64>)> {
    let weight = prop_oneof![Just(1u64), 1u64..4, 1u64..1 << 20, 1u64..1 << 40];
    btree_set(any::<i8>(), 1..=most).prop_flat_map(move |values| {
        let weights = vec(weight.clone(), values.len());
        (Just(values.into_iter().collect()), weights)
    })
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn no_codebook_of_integers_costs_less(
        values in btree_set(-9i8..=9, 1..9),
        seed in any::<u64>(),
        entries in 1usize..4,
    ) {
        let values: Vec<i8> = values.into_iter().collect();
        let mut random = Random::new(seed);
        let weights: Vec<u64> = values.iter().map(|_| random.below(20)).collect();
        let (codebook, best) = found(&values, &weights, entries);
        let range: Vec<i8> = (-9..=9).collect();
        prop_assert_eq!(best.cost, least_of_all(&values, &weights, entries, &range));
        prop_assert_eq!(best.cost, cost(&values, &weights, &codebook));
    }

    #[test]
    fn cost_and_cuts_are_those_of_the_plain_recurrence((values, weights) in points(60), entries in 1usize..20) {
        prop_assume!(values.len() > entries);
        let (codebook, best) = found(&values, &weights, entries);
        let (expected, least) = by_plain_recurrence(&values, &weights, entries);
        prop_assert_eq!(best, Optimum { entries, cost: least });
        prop_assert_eq!(&codebook, &expected);
        prop_assert!(codebook.is_sorted_by(|a, b| a < b), "{codebook:?}");
        prop_assert_eq!(best.cost, cost(&values, &weights, &codebook));
    }

    #[test]
    fn weights_w_equal_w_copies((values, weights) in points(40), entries in 1usize..9) {
        let weights: Vec<u64> = weights.iter().map(|w| w % 7).collect();
        let mut counted = Counts::EMPTY;
        let grid = Grid { scale: 1.0, zero_point: 0, low: -127, high: 127 };
        for (&x, &w) in values.iter().zip(&weights) {
            counted.add(&vec![f32::from(x.max(-127)); w as usize], &[], &grid).unwrap();
        }
        let mut weighted = Counts::EMPTY;
        let floats: Vec<f32> = values.iter().map(|&x| f32::from(x.max(-127))).collect();
        let importances: Vec<u32> = weights.iter().map(|&w| w as u32).collect();
        weighted.add(&floats, &importances, &grid).unwrap();
        prop_assert_eq!(&counted, &weighted);
        let mut halves = Counts::EMPTY;
        let middle = values.len() / 2;
        for half in [middle..values.len(), 0..middle] {
            let mut part = Counts::EMPTY;
            part.add(&floats[half.clone()], &importances[half], &grid).unwrap();
            halves.merge(&part);
        }
        prop_assert_eq!(&halves, &weighted);
        let mut scratch = vec![0; scratch_len(256, entries)];
        let (mut a, mut b) = (vec![0; entries], vec![1; entries]);
        prop_assert_eq!(counted.choose(&mut a, &mut scratch), weighted.choose(&mut b, &mut scratch));
        prop_assert_eq!(a, b);
    }

    #[test]
    fn values_of_no_weight_are_absent((values, weights) in points(40), entries in 1usize..6) {
        let thinned: Vec<u64> = weights.iter().enumerate().map(|(i, w)| if i % 3 == 0 { 0 } else { *w }).collect();
        let kept = || values.iter().zip(&thinned).filter(|(_, w)| **w > 0);
        let (some, theirs): (Vec<i8>, Vec<u64>) = kept().unzip();
        prop_assert_eq!(found(&values, &thinned, entries), found(&some, &theirs, entries));
    }

    #[test]
    fn more_entries_never_cost_more((values, weights) in points(60)) {
        let costs: Vec<u64> = (1..=values.len()).map(|k| found(&values, &weights, k).1.cost).collect();
        prop_assert!(costs.is_sorted_by(|a, b| a >= b), "{costs:?}");
        prop_assert_eq!(costs.last(), Some(&0));
    }
}

#[test]
fn the_whole_range_at_the_largest_weight_stays_exact() {
    let values: Vec<i8> = (-128..=127).collect();
    // As much as there may be at both ends: the largest moments and costs.
    let mut weights = vec![0; 256];
    let half = MAX_WEIGHT / 2;
    (weights[0], weights[255]) = (half + 1, half);
    // (127·h − 128·(h + 1)) / (2h + 1) is just below −½.
    let cost = (half + 1) * 127 * 127 + half * 128 * 128;
    assert_eq!(
        found(&values, &weights, 1),
        (vec![-1], Optimum { entries: 1, cost })
    );
    let even = vec![MAX_WEIGHT / 256; 256];
    for entries in [1, 2, 3, 16, 127, 128, 255] {
        let (codebook, best) = found(&values, &even, entries);
        let (expected, least) = by_plain_recurrence(&values, &even, entries);
        assert_eq!((codebook, best.cost), (expected, least), "{entries}");
    }
    weights.fill(MAX_WEIGHT / 256 + 1);
    let refused = optimal_1d(&values, &weights, &mut [0; 4], &mut []);
    assert_eq!(refused, Err(PaletteError::Weight { max: MAX_WEIGHT }));
    weights[3] = u64::MAX;
    let refused = optimal_1d(&values, &weights, &mut [0; 4], &mut []);
    assert_eq!(refused, Err(PaletteError::Weight { max: MAX_WEIGHT }));
}

#[test]
fn few_values_are_entries_and_the_largest_fills_the_rest() {
    assert_eq!(
        found(&[-4, 9], &[3, 1], 4),
        (
            vec![-4, 9, 9, 9],
            Optimum {
                entries: 2,
                cost: 0
            }
        )
    );
    assert_eq!(
        found(&[-4, 9], &[0, 1], 2),
        (
            vec![9, 9],
            Optimum {
                entries: 1,
                cost: 0
            }
        )
    );
    assert_eq!(
        found(&[], &[], 3),
        (
            vec![0; 3],
            Optimum {
                entries: 0,
                cost: 0
            }
        )
    );
}

#[test]
fn ties_go_to_the_lowest_index_and_halves_away_from_zero() {
    // {0, 1}, {2} and {0}, {1, 2} cost the same; the last segment begins first. Its mean 1.5 becomes 2.
    assert_eq!(found(&[0, 1, 2], &[1; 3], 2).0, [0, 2]);
    assert_eq!(found(&[-2, -1, 0], &[1; 3], 2).0, [-2, -1]);
    assert_eq!(found(&[-2, -1], &[1; 2], 1).0, [-2]);
    assert_eq!(found(&[1, 2], &[1; 2], 1).0, [2]);
}

#[test]
fn wrong_inputs_are_refused() {
    let mut scratch = [0; 100];
    let mut book = [0; 2];
    let length = PaletteError::Length {
        expected: 3,
        found: 2,
    };
    assert_eq!(
        optimal_1d(&[1, 2, 3], &[1, 1], &mut book, &mut scratch),
        Err(length)
    );
    assert_eq!(
        optimal_1d(&[1, 2, 3], &[1; 3], &mut [], &mut scratch),
        Err(PaletteError::Empty)
    );
    for (values, index) in [([1, 1, 3], 1), ([1, 5, 3], 2)] {
        let refused = optimal_1d(&values, &[1; 3], &mut book, &mut scratch);
        assert_eq!(refused, Err(PaletteError::NotRising { index }));
    }
    let needed = scratch_len(3, 2);
    let refused = optimal_1d(&[1, 2, 3], &[1; 3], &mut book, &mut scratch[..needed - 1]);
    assert_eq!(refused, Err(PaletteError::Scratch { needed }));
    assert!(optimal_1d(&[1, 2, 3], &[1; 3], &mut book, &mut scratch[..needed]).is_ok());
}

#[test]
fn scratch_is_what_the_doc_says() {
    let kib = |entries| scratch_len(256, entries) as f64 * 8.0 / 1024.0;
    let most = (1..=256).map(kib).fold(0.0, f64::max);
    assert!(
        (kib(16) * 10.0).ceil() == 114.0 && (most * 10.0).ceil() == 221.0,
        "{} {most}",
        kib(16)
    );
    assert_eq!(
        (scratch_len(16, 16), scratch_len(1 << 20, 2)),
        (0, scratch_len(256, 2))
    );
}
