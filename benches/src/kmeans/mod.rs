//! Lloyd's loop, timed a step, beside scikit-learn and faiss: the same points, the same first centroids, one run.
//!
//! Tercet has int8 codes of the points, the peers the f32 values themselves. A step's time is that of a fit of b steps less
//! one of a steps, over b − a, so that what a fit does once (copies, norms, the start of a loop) counts for
//! nobody.

mod data;
mod table;
mod tercet;

pub use data::{Data, SHAPES};
pub use table::{Row, page};

use crate::peers::python::{Fit, Python};
use std::fmt;
use std::io;
use std::time::Instant;
use tercet::Tercet;

/// Who clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// `tercet_core`'s reference engine on one thread, `tercet_host::parallel` on all.
    Tercet,
    /// `sklearn.cluster.KMeans` with `algorithm="lloyd"`.
    ScikitLearn,
    /// `faiss.Kmeans` on every point.
    Faiss,
}

impl Who {
    /// Everyone.
    pub const ALL: [Self; 3] = [Self::Tercet, Self::ScikitLearn, Self::Faiss];

    /// As tables say it, and [`Python`].
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tercet => "Tercet",
            Self::ScikitLearn => "scikit-learn",
            Self::Faiss => "faiss",
        }
    }
}

/// How many threads a contender has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pool {
    /// One.
    One,
    /// As many as the rayon pool.
    All,
}

impl Pool {
    /// Both.
    pub const ALL: [Self; 2] = [Self::One, Self::All];

    fn threads(self) -> usize {
        match self {
            Self::One => 1,
            Self::All => rayon::current_num_threads(),
        }
    }
}

impl fmt::Display for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.threads() {
            1 => f.write_str("1 thread"),
            threads => write!(f, "{threads} threads"),
        }
    }
}

/// How to measure.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Steps that are timed: b − a, where a is 1.
    pub steps: u32,
    /// The least time a contender gets on one set of points, never fewer than 3 fits of each length.
    pub seconds: f64,
}

/// Everyone who clusters one set of points.
struct Field<'a> {
    tercet: Tercet<'a>,
    python: Option<&'a mut Python>,
}

impl Field<'_> {
    /// `None` where the contender is not here.
    fn fit(&mut self, who: Who, pool: Pool, steps: u32) -> io::Result<Option<Fit>> {
        let fit = match (who, &mut self.python) {
            (Who::Tercet, _) => self.tercet.fit(pool, steps),
            (_, Some(python)) if python.has(who.name()) => {
                python.fit(who.name(), pool.threads(), steps)?
            }
            _ => return Ok(None),
        };
        if fit.steps != steps {
            return Err(io::Error::other(format!(
                "{} converged after {} of {steps} steps: time fewer",
                who.name(),
                fit.steps
            )));
        }
        Ok(Some(fit))
    }
}

/// Times everyone in turns, so that a slow minute of the machine falls on all of them, and keeps the best time of each length of
/// fit. The first round is not timed: it faults memory in.
///
/// # Errors
/// Where Python ends, or a contender converges before the last step.
pub fn measure(data: &Data, python: Option<&mut Python>, effort: Effort) -> io::Result<Row> {
    let mut field = Field {
        tercet: Tercet::new(data),
        // One without any peer may lack what it needs to take the points.
        python: python.filter(|python| Who::ALL.iter().any(|who| python.has(who.name()))),
    };
    if let Some(python) = &mut field.python {
        python.data(&data.values, &data.start(), data.dims)?;
    }
    let lengths = [1, 1 + effort.steps];
    let mut contenders = Vec::new();
    for (who, pool) in Who::ALL
        .map(|who| Pool::ALL.map(|pool| (who, pool)))
        .as_flattened()
    {
        let mut here = true;
        for steps in lengths {
            here &= field.fit(*who, *pool, steps)?.is_some();
        }
        if here {
            contenders.push((*who, *pool, [f64::INFINITY; 2]));
        }
    }
    let start = Instant::now();
    let mut rounds = 0;
    while rounds < 3 || start.elapsed().as_secs_f64() < effort.seconds * contenders.len() as f64 {
        for (who, pool, best) in &mut contenders {
            for (best, steps) in best.iter_mut().zip(lengths) {
                if let Some(fit) = field.fit(*who, *pool, steps)? {
                    *best = best.min(fit.seconds);
                }
            }
        }
        rounds += 1;
    }
    let step = |[few, many]: [f64; 2]| (many - few) / f64::from(effort.steps);
    let times = contenders.into_iter();
    let times = times.map(|(who, pool, best)| (who, pool, step(best)));
    Ok(Row {
        name: data.name.clone(),
        products: (data.values.len() * data.k) as f64,
        times: times.collect(),
        inertia: inertia(&mut field, lengths[1])?,
    })
}

/// Tercet's true inertia over scikit-learn's after as many steps.
fn inertia(field: &mut Field<'_>, steps: u32) -> io::Result<Option<f64>> {
    field.fit(Who::Tercet, Pool::All, steps)?;
    if field.fit(Who::ScikitLearn, Pool::All, steps)?.is_none() {
        return Ok(None);
    }
    let theirs = field.python.as_mut().map(|python| python.inertia());
    Ok(theirs
        .transpose()?
        .map(|theirs| field.tercet.inertia() / theirs))
}
