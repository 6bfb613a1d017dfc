//! Format choice against brute force.

use proptest::prelude::*;
use tercet_core::number::Random;
use tercet_core::quant::adaptive::{Adaptive, AdaptiveError, Allocation, Cost, budget_bytes};

fn choose(
    problem: &Adaptive<'_>,
    tensors: usize,
) -> Result<(Vec<usize>, Allocation), AdaptiveError> {
    let mut choice = vec![usize::MAX; tensors];
    let allocation = problem.choose(&mut choice)?;
    Ok((choice, allocation))
}

fn weight(problem: &Adaptive<'_>, tensor: usize) -> f64 {
    problem.weights.map_or(1.0, |weights| weights[tensor])
}

/// Bytes and error of a choice; `None` when it takes a format that is not there.
fn total(problem: &Adaptive<'_>, choice: &[usize]) -> Option<(u64, f64)> {
    let mut sum = (0, 0.0);
    for (tensor, &format) in choice.iter().enumerate() {
        let cost = problem.costs[tensor * problem.formats + format]?;
        sum = (
            sum.0 + cost.bytes,
            sum.1 + cost.error * weight(problem, tensor),
        );
    }
    Some(sum)
}

/// The least error of all choices within the budget, and the fewest bytes of any.
fn brute_force(problem: &Adaptive<'_>, tensors: usize) -> (Option<f64>, Option<u64>) {
    let (mut least, mut fewest): (Option<f64>, Option<u64>) = (None, None);
    for number in 0..problem.formats.pow(tensors as u32) {
        let choice: Vec<usize> = (0..tensors)
            .map(|t| number / problem.formats.pow(t as u32) % problem.formats)
            .collect();
        if let Some((bytes, error)) = total(problem, &choice) {
            fewest = Some(fewest.map_or(bytes, |fewest| fewest.min(bytes)));
            if bytes <= problem.budget {
                least = Some(least.map_or(error, |least| least.min(error)));
            }
        }
    }
    (least, fewest)
}

/// The largest error that any tensor's choice of format decides.
fn largest_span(problem: &Adaptive<'_>) -> f64 {
    let rows = problem.costs.chunks(problem.formats).enumerate();
    rows.map(|(tensor, row)| {
        let errors = || {
            row.iter()
                .flatten()
                .map(|cost| cost.error * weight(problem, tensor))
        };
        errors().fold(0.0, f64::max) - errors().fold(f64::INFINITY, f64::min)
    })
    .fold(0.0, f64::max)
}

fn costs() -> impl Strategy<Value = (usize, usize, Vec<Option<Cost>>)> {
    (1usize..=5, 1usize..=4).prop_flat_map(|(tensors, formats)| {
        // Small ranges, so that ties and equal slopes happen.
        let cost = (1u64..40, 0u32..60).prop_map(|(bytes, error)| Cost {
            bytes,
            error: f64::from(error) / 4.0,
        });
        let row = prop::collection::vec(prop::option::weighted(0.9, cost), tensors * formats);
        (Just(tensors), Just(formats), row)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_claims_hold_against_brute_force(
        (tensors, formats, costs) in costs(),
        budget in 0u64..160,
        weights in prop::option::of(prop::collection::vec(0.0f64..3.0, 5)),
    ) {
        let weights = weights.as_ref().map(|weights| &weights[..tensors]);
        let problem = Adaptive { formats, costs: &costs, weights, budget };
        let (least, fewest) = brute_force(&problem, tensors);
        match choose(&problem, tensors) {
            Ok((choice, found)) => {
                let least = least.expect("a choice within the budget exists");
                let (bytes, error) = total(&problem, &choice).expect("only formats that are there");
                prop_assert_eq!((bytes, error), (found.bytes, found.error));
                prop_assert!(bytes <= budget);
                prop_assert!(found.error >= least * (1.0 - 1e-12));
                prop_assert!(found.bound <= least, "{} {}", found.bound, least);
                prop_assert!(found.error - least <= found.gap());
                prop_assert!(found.gap() <= largest_span(&problem) + 1e-9, "{:?}", found);
            }
            Err(AdaptiveError::Infeasible { budget: named, minimal }) => {
                prop_assert_eq!((named, Some(minimal)), (budget, fewest));
                prop_assert!(minimal > budget && least.is_none());
            }
            Err(AdaptiveError::NoFormat { tensor }) => {
                prop_assert!(fewest.is_none());
                prop_assert!(costs[tensor * formats..][..formats].iter().all(Option::is_none));
            }
            Err(other) => prop_assert!(false, "{other}"),
        }
    }
}

/// TQ1_0, TQ2_0, Q2_0, Q4_0, Q8_0 and f16: millibits a value, and relative squared errors of the kind that
/// weights have.
const FORMATS: [(u64, f64); 6] = [
    (1688, 0.26),
    (2063, 0.19),
    (2250, 0.12),
    (4500, 0.008),
    (8500, 3e-5),
    (16_000, 3e-8),
];

fn model(tensors: usize, seed: u64) -> (u64, Vec<Option<Cost>>) {
    let mut random = Random::new(seed);
    let mut values = 0;
    let mut costs = Vec::new();
    for _ in 0..tensors {
        let len = 256 * (1 + random.below(4096));
        let energy = len as f64 * (1 + random.below(1000)) as f64 / 1000.0;
        values += len;
        costs.extend(FORMATS.iter().map(|&(millibits, error)| {
            let noise = 1.0 + random.below(1000) as f64 / 2500.0;
            Some(Cost {
                bytes: len * millibits / 8000,
                error: energy * error * noise,
            })
        }));
    }
    (values, costs)
}

#[test]
fn models_are_allocated_within_a_hundredth_of_the_bound() {
    // 500 tensors of 6 formats are too many for every pair to be looked at.
    for tensors in [300, 500] {
        let (values, costs) = model(tensors, 1);
        let mut last = f64::INFINITY;
        for millibits in [1700, 2060, 2500, 3000, 4000, 6000, 9000, 15_000, 16_000] {
            let budget = budget_bytes(values, millibits);
            let problem = Adaptive {
                formats: 6,
                costs: &costs,
                weights: None,
                budget,
            };
            let (_, found) = choose(&problem, tensors).unwrap();
            println!(
                "{tensors} at {millibits}: gap {:.2e}",
                found.gap() / found.error
            );
            assert!(found.bytes <= budget);
            assert!(found.gap() <= found.error * 1e-2, "{millibits} {found:?}");
            assert!(found.error <= last);
            last = found.error;
        }
    }
}

#[test]
fn most_small_models_get_their_optimum() {
    let mut hits = 0;
    for seed in 0..200 {
        let (values, costs) = model(5, seed);
        let problem = Adaptive {
            formats: 6,
            costs: &costs,
            weights: None,
            budget: budget_bytes(values, 3000),
        };
        let (_, found) = choose(&problem, 5).unwrap();
        let (least, _) = brute_force(&problem, 5);
        hits += u32::from(found.error <= least.unwrap() * (1.0 + 1e-12));
    }
    println!("{hits} of 200");
    assert!(hits >= 130, "{hits} of 200");
}

#[test]
fn a_weight_draws_bytes_to_its_tensor() {
    let (values, costs) = model(2, 3);
    let same: Vec<Option<Cost>> = costs[..6].iter().chain(&costs[..6]).copied().collect();
    let budget = same[0].unwrap().bytes + same[3].unwrap().bytes;
    assert!(values > 0);
    for (weights, expected) in [([1.0, 50.0], [0, 3]), ([50.0, 1.0], [3, 0])] {
        let problem = Adaptive {
            formats: 6,
            costs: &same,
            weights: Some(&weights),
            budget,
        };
        assert_eq!(choose(&problem, 2).unwrap().0, expected);
    }
}

#[test]
fn ties_go_to_the_lowest_tensor_and_format() {
    let cost = |bytes, error| Some(Cost { bytes, error });
    let costs = [cost(1, 4.0), cost(1, 4.0), cost(3, 2.0), cost(3, 2.0)].repeat(3);
    let problem = Adaptive {
        formats: 4,
        costs: &costs,
        weights: None,
        budget: 5,
    };
    assert_eq!(choose(&problem, 3).unwrap().0, [2, 0, 0]);
}

#[test]
fn budgets_in_bits_round_down() {
    assert_eq!(budget_bytes(256, 2063), 66);
    assert_eq!(budget_bytes(3, 1000), 0);
    assert_eq!(budget_bytes(u64::MAX, u32::MAX), u64::MAX);
}

#[test]
fn bad_problems_are_refused() {
    let costs = [Some(Cost {
        bytes: 1,
        error: 1.0,
    }); 4];
    let base = Adaptive {
        formats: 2,
        costs: &costs,
        weights: None,
        budget: 10,
    };
    assert_eq!(
        choose(&base, 3).err(),
        Some(AdaptiveError::Length {
            expected: 6,
            found: 4
        })
    );
    let short = Adaptive {
        weights: Some(&[1.0]),
        ..base
    };
    assert_eq!(
        choose(&short, 2).err(),
        Some(AdaptiveError::Length {
            expected: 2,
            found: 1
        })
    );
    for bad in [-1.0, f64::NAN, f64::INFINITY] {
        let weights = Adaptive {
            weights: Some(&[1.0, bad]),
            ..base
        };
        assert_eq!(
            choose(&weights, 2).err(),
            Some(AdaptiveError::NotFinite { tensor: 1 })
        );
        let mut costs = costs;
        costs[1] = Some(Cost {
            bytes: 1,
            error: bad,
        });
        let errors = Adaptive {
            costs: &costs,
            ..base
        };
        assert_eq!(
            choose(&errors, 2).err(),
            Some(AdaptiveError::NotFinite { tensor: 0 })
        );
    }
    let huge = [Some(Cost {
        bytes: 1,
        error: f64::MAX,
    }); 4];
    let sum = Adaptive {
        costs: &huge,
        ..base
    };
    assert_eq!(
        choose(&sum, 2).err(),
        Some(AdaptiveError::NotFinite { tensor: 1 })
    );
    let long = [Some(Cost {
        bytes: u64::MAX,
        error: 0.0,
    }); 4];
    let sum = Adaptive {
        costs: &long,
        ..base
    };
    assert_eq!(choose(&sum, 2).err(), Some(AdaptiveError::Overflow));
    let none = Adaptive {
        costs: &[costs[0], costs[1], None, None],
        ..base
    };
    assert_eq!(
        choose(&none, 2).err(),
        Some(AdaptiveError::NoFormat { tensor: 1 })
    );
    let poor = Adaptive { budget: 1, ..base };
    assert_eq!(
        choose(&poor, 2).err(),
        Some(AdaptiveError::Infeasible {
            budget: 1,
            minimal: 2
        })
    );
    let nothing = Adaptive { costs: &[], ..base };
    let found = choose(&nothing, 0).unwrap().1;
    assert_eq!((found.bytes, found.error, found.gap()), (0, 0.0, 0.0));
}
