//! Regret: the extra time of the chosen engine compared with the best.

use std::time::Duration;

use serde::Serialize;

use super::call::with_call;
use super::case::Shape;
use super::turns::{ROUNDS, Rounds, WARM, take_turns};
use crate::dispatch::engine::Device;
use crate::dispatch::{DispatchError, Dispatcher, Engine, Job, Operation};

/// A choice whose regret is at most this counts as good.
const REGRET: f64 = 0.15;
/// An engine is not timed if its predicted time is this many times that of the chosen one.
const HOPELESS: f64 = 30.0;

/// Choices compared with the times of the engines.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Check {
    /// A point for each operation, shape and size.
    pub points: Vec<Regret>,
    /// Points where the choice was within 15 % of the best.
    pub good: usize,
    /// The same as a part of all points.
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
    /// Its items.
    pub items: u64,
    /// The chosen engine.
    pub chosen: Engine,
    /// The fastest engine.
    pub best: Engine,
    /// Seconds of the chosen engine.
    pub seconds: f64,
    /// Seconds of the fastest engine.
    pub best_seconds: f64,
    /// Extra time of the chosen engine, as a part of the best time; 0 if it is the fastest.
    pub regret: f64,
    /// Predicted seconds of the chosen engine.
    pub predicted: f64,
    /// Every engine that was tried.
    pub engines: Vec<Timed>,
}

impl Regret {
    /// True if the choice was within 15 % of the best.
    pub const fn is_good(&self) -> bool {
        self.regret <= REGRET
    }
}

/// One engine at a point.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Timed {
    /// The engine.
    pub engine: Engine,
    /// Seconds that it took.
    pub seconds: f64,
    /// Its predicted seconds.
    pub predicted: f64,
}

/// Comparison of the choices of two dispatchers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Agreement {
    /// Points of the grid.
    pub points: usize,
    /// Points where both choose the same engine.
    pub alike: usize,
    /// The same as a part of all points.
    pub share: f64,
    /// The other points.
    pub others: Vec<Differing>,
}

/// A point where two dispatchers choose differently.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Differing {
    /// The operation.
    pub operation: Operation,
    /// Its elements.
    pub elements: u64,
    /// Its work.
    pub work: u64,
    /// The choices of the first dispatcher and of the second; `None` if no engine can do it.
    pub chosen: [Option<Engine>; 2],
}

/// Sizes of the grid in elements, between the sizes at which costs are measured.
const SIZES: [usize; 9] = [
    96, 350, 1300, 5000, 20_000, 60_000, 180_000, 500_000, 1_500_000,
];

/// Returns the shapes at which an operation is checked, as width and number: first the shape of tuning, then others if
/// the shape matters for the operation.
fn shapes(operation: Operation, elements: usize) -> Vec<Shape> {
    let shape = Shape::streaming(operation, elements);
    let mut shapes = vec![shape];
    let others: &[(usize, usize)] = match operation {
        Operation::QuantizeInteger
        | Operation::QuantizeTernary
        | Operation::QuantizeOptimal
        | Operation::Dequantize => &[(64, 1), (3000, 1)],
        Operation::Histogram | Operation::Encode | Operation::Decode => &[],
        Operation::Kmeans => &[(24, 20), (6, 3)],
        Operation::Assign => &[(48, 32), (10, 6)],
        Operation::Search => &[(128, 12), (32, 150)],
        Operation::Matvec => &[(512, 1), (48, 1)],
        Operation::Matmul => &[(512, 16), (96, 40)],
    };
    shapes.extend(others.iter().map(|&(width, many)| Shape {
        elements,
        width,
        many,
        ..shape
    }));
    // Its layout is another one.
    if operation == Operation::Matvec {
        shapes.extend(Shape::busy(operation, elements));
    }
    shapes
}

/// Returns every operation with the shapes at which it is checked.
fn grid() -> impl Iterator<Item = (Operation, Shape)> {
    let all = Operation::ALL.into_iter();
    all.flat_map(|operation| {
        let shapes = SIZES
            .into_iter()
            .flat_map(move |size| shapes(operation, size));
        shapes.map(move |shape| (operation, shape))
    })
}

/// A point while it is timed.
struct Tried {
    operation: Operation,
    shape: Shape,
    job: Job,
    chosen: Engine,
    engines: Vec<Engine>,
    predicted: Vec<f64>,
    rounds: Vec<Rounds>,
}

impl Tried {
    /// Returns the engines to try; `None` if no engine would be chosen.
    fn new<D: Device>(
        dispatcher: &Dispatcher<D>,
        operation: Operation,
        shape: Shape,
    ) -> Option<Self> {
        let job = shape.job(operation);
        let mut explained = dispatcher.explain(&job);
        let chosen = explained.chosen?;
        let least = explained.candidates[0].seconds.unwrap_or(f64::MAX);
        explained.candidates.sort_by_key(|it| it.engine);
        let able = (explained.candidates.iter())
            .filter_map(|it| Some((it.engine, it.seconds?)))
            .filter(|&(_, predicted)| predicted <= HOPELESS * least)
            .filter(|&(engine, _)| engine != Engine::Cuda || dispatcher.open().is_ok());
        let (engines, predicted): (Vec<_>, Vec<_>) = able.unzip();
        Some(Self {
            operation,
            shape,
            job,
            chosen,
            rounds: vec![Rounds::default(); engines.len()],
            engines,
            predicted,
        })
    }

    fn point(&self) -> Option<Regret> {
        let times = self.engines.iter().zip(&self.predicted).zip(&self.rounds);
        let engines: Vec<Timed> = times
            .map(|((&engine, &predicted), rounds)| Timed {
                engine,
                seconds: rounds.typical(),
                predicted,
            })
            .collect();
        let best = *engines
            .iter()
            .min_by(|a, b| a.seconds.total_cmp(&b.seconds))?;
        let of_chosen = *engines.iter().find(|it| it.engine == self.chosen)?;
        Some(Regret {
            operation: self.operation,
            elements: self.job.elements,
            work: self.job.work,
            items: self.job.items,
            chosen: self.chosen,
            best: best.engine,
            seconds: of_chosen.seconds,
            best_seconds: best.seconds,
            regret: (of_chosen.seconds / best.seconds - 1.0).max(0.0),
            predicted: of_chosen.predicted,
            engines,
        })
    }
}

/// Runs every operation on every candidate engine over a grid of sizes, and compares the choices with the times.
///
/// Times are measured as [`super::tune()`] does, in rounds, with `share` as the total time for an engine at a point.
/// There are some 260 points. Calls `progress` with each operation as it begins.
///
/// # Errors
/// [`DispatchError`] of an engine that failed.
pub fn check<D: Device>(
    dispatcher: &Dispatcher<D>,
    share: Duration,
    progress: &mut dyn FnMut(Operation),
) -> Result<Check, DispatchError> {
    check_up_to(dispatcher, usize::MAX, share, progress)
}

/// As [`check`], without the points of more than `largest` elements.
pub(crate) fn check_up_to<D: Device>(
    dispatcher: &Dispatcher<D>,
    largest: usize,
    share: Duration,
    progress: &mut dyn FnMut(Operation),
) -> Result<Check, DispatchError> {
    let grid = grid().filter(|(_, shape)| shape.elements <= largest);
    let all = grid.filter_map(|(operation, shape)| Tried::new(dispatcher, operation, shape));
    let mut all: Vec<Tried> = all.collect();
    let mut last = None;
    for _ in 0..ROUNDS {
        for tried in &mut all {
            if last.replace(tried.operation) != Some(tried.operation) {
                progress(tried.operation);
            }
            let case = tried.shape.entry(tried.operation).build();
            let engines = &tried.engines;
            let handles: Vec<_> = engines
                .iter()
                .map(|&engine| dispatcher.on(engine))
                .collect();
            let able = vec![true; engines.len()];
            let times = (share / ROUNDS, WARM.min(share * 2));
            with_call(&case, |call| {
                take_turns(times, engines, &able, &mut tried.rounds, |index| {
                    call(&handles[index])
                })
            })?;
        }
    }
    let points: Vec<Regret> = all.iter().filter_map(Tried::point).collect();
    let good = points.iter().filter(|point| point.is_good()).count();
    Ok(Check {
        good,
        share: part(good, points.len()),
        points,
    })
}

/// Counts how often two dispatchers, with two tunings of one machine, choose the same over the grid of [`check`].
/// Nothing is timed.
pub fn agreement<D: Device>(first: &Dispatcher<D>, second: &Dispatcher<D>) -> Agreement {
    let mut others = Vec::new();
    let mut points = 0;
    for (operation, shape) in grid() {
        let job = shape.job(operation);
        let chosen = [first, second].map(|dispatcher| dispatcher.choice(&job));
        points += 1;
        if chosen[0] != chosen[1] {
            others.push(Differing {
                operation,
                elements: job.elements,
                work: job.work,
                chosen,
            });
        }
    }
    let alike = points - others.len();
    Agreement {
        points,
        alike,
        share: part(alike, points),
        others,
    }
}

fn part(count: usize, all: usize) -> f64 {
    count as f64 / all.max(1) as f64
}
