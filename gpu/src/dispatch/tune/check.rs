//! Regret: how much longer the chosen engine takes than the best would have.

use std::time::Duration;

use serde::Serialize;

use super::case::{Case, Shape};
use super::measure::lower_quartile;
use crate::dispatch::engine::Device;
use crate::dispatch::{DispatchError, Dispatcher, Engine, Operation};

/// A choice that takes up to so much longer than the best is as good.
const REGRET: f64 = 0.15;

/// Choices held against what engines took.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Check {
    /// A point for each operation and size.
    pub points: Vec<Regret>,
    /// Those where the choice was within 15 % of the best.
    pub good: usize,
    /// The same as a part of all.
    pub share: f64,
}

/// A point of the grid.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Regret {
    /// The operation.
    pub operation: Operation,
    /// Its elements.
    pub elements: u64,
    /// Its work.
    pub work: u64,
    /// What was chosen.
    pub chosen: Engine,
    /// What was the fastest.
    pub best: Engine,
    /// Seconds that the chosen engine took.
    pub seconds: f64,
    /// Seconds that the best took.
    pub best_seconds: f64,
    /// How much longer the chosen engine took, in parts of the best time; 0 where it is the best.
    pub regret: f64,
    /// Seconds that were predicted of the chosen engine.
    pub predicted: f64,
}

/// Elements of the grid, between those that costs are measured at.
const SIZES: [usize; 7] = [96, 700, 5000, 24_000, 100_000, 400_000, 1_500_000];

/// The shapes that an operation is checked at: that of tuning, and others where shapes matter.
fn shapes(operation: Operation, elements: usize) -> Vec<Shape> {
    let shape = Shape::streaming(operation, elements);
    let mut shapes = vec![shape];
    let others: &[(usize, usize)] = match operation {
        Operation::Kmeans => &[(24, 20)],
        Operation::Assign => &[(48, 32)],
        Operation::Search => &[(128, 12)],
        Operation::Matvec => &[(512, 1)],
        Operation::Matmul => &[(512, 16)],
        _ => &[],
    };
    shapes.extend(others.iter().map(|&(width, many)| Shape {
        elements,
        width,
        many,
    }));
    shapes
}

/// Has every engine that is a candidate do every operation over a grid of sizes, and holds the choices against their times.
///
/// `share` is the time for one engine at one point; there are some 84 points. Hears each operation as it begins.
///
/// # Errors
/// [`DispatchError`] of an engine that failed.
pub fn check<D: Device>(
    dispatcher: &Dispatcher<D>,
    share: Duration,
    progress: &mut dyn FnMut(Operation),
) -> Result<Check, DispatchError> {
    let mut points = Vec::new();
    for operation in Operation::ALL {
        progress(operation);
        for shape in SIZES.into_iter().flat_map(|size| shapes(operation, size)) {
            let mut case = Case::new(operation, shape).map_err(|error| DispatchError::Engine {
                engine: Engine::Scalar,
                source: error.to_string().into(),
            })?;
            let explained = dispatcher.explain(&case.job);
            let Some(chosen) = explained.chosen else {
                continue;
            };
            let candidates = explained.candidates.iter();
            let able = candidates.filter(|it| it.seconds.is_some());
            let able: Vec<(Engine, f64)> = able
                // One that should take thirty times as long need not be waited for.
                .filter_map(|it| Some((it.engine, it.seconds?)))
                .filter(|it| it.1 <= 30.0 * explained.candidates[0].seconds.unwrap_or(f64::MAX))
                .filter(|it| it.0 != Engine::Cuda || dispatcher.open().is_ok())
                .collect();
            let mut taken = Vec::new();
            for &(engine, predicted) in &able {
                let on = dispatcher.on(engine);
                taken.push((engine, lower_quartile(share, || case.call(&on))?, predicted));
            }
            let best = taken.iter().min_by(|a, b| a.1.total_cmp(&b.1));
            let (Some(&best), Some(&of_chosen)) = (best, taken.iter().find(|it| it.0 == chosen))
            else {
                continue;
            };
            points.push(Regret {
                operation,
                elements: case.job.elements,
                work: case.job.work,
                chosen,
                best: best.0,
                seconds: of_chosen.1,
                best_seconds: best.1,
                regret: (of_chosen.1 / best.1 - 1.0).max(0.0),
                predicted: of_chosen.2,
            });
        }
    }
    let good = points.iter().filter(|point| point.regret <= REGRET).count();
    Ok(Check {
        good,
        share: good as f64 / points.len().max(1) as f64,
        points,
    })
}
