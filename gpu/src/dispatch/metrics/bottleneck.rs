//! Reports where the time goes: by operation, engine and limiting resource, with the change that would help most.

use std::fmt;
use std::time::Instant;

use serde::Serialize;

use super::flights::RunningCall;
use super::row::Row;
use super::{BoundSeconds, EngineMetrics, Metrics};
use crate::dispatch::advice::Machine;
use crate::dispatch::explain::time;
use crate::dispatch::{Advice, Bound, Engine, Operation};

/// The uses of an interval's time; see [`super::Monitor::report`].
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Bottlenecks {
    /// Length of the interval in seconds of wall time.
    pub seconds: f64,
    /// Seconds in calls, of all threads together. Running calls count with their part in the interval.
    pub busy: f64,
    /// Calls that ended.
    pub calls: u64,
    /// The largest predicted part of the busy time; `None` if nothing was predicted.
    pub bound: Option<Bound>,
    /// Operations on engines, the most time-consuming first.
    pub shares: Vec<Share>,
    /// The one change that would help most, by the known costs of the machine; `None` if nothing is known to help.
    pub change: Option<Advice>,
}

/// One operation on one engine.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Share {
    /// The operation.
    pub operation: Operation,
    /// The engine.
    pub engine: Engine,
    /// Seconds in these calls.
    pub seconds: f64,
    /// The same as a part of all busy seconds, 0 to 1.
    pub share: f64,
    /// Calls that ended.
    pub calls: u64,
    /// Calls still running at the end.
    pub running: usize,
    /// Elements per second of the calls that ended.
    pub elements_per_second: f64,
    /// Bytes per second of the calls that ended.
    pub bytes_per_second: f64,
    /// The largest predicted part of its time.
    pub bound: Option<Bound>,
    /// Its seconds by predicted kind; all seconds of a call count for its largest part.
    pub bound_seconds: BoundSeconds,
}

/// Seconds that the running calls had taken at a moment.
#[derive(Debug, Default)]
pub(super) struct InFlight(Vec<(Operation, Engine, Option<Bound>, f64)>);

impl InFlight {
    pub(super) fn of(flying: &[RunningCall], now: Instant) -> Self {
        let seconds = |it: &RunningCall| (it.job.operation, it.engine, it.bound(), it.seconds(now));
        Self(flying.iter().map(seconds).collect())
    }
}

/// Observations of an interval.
pub(super) struct Observed<'a> {
    pub(super) seconds: f64,
    /// Calls that ended in it.
    pub(super) done: Metrics,
    /// Calls still running at its end.
    pub(super) flying: &'a [RunningCall],
    /// Calls that were running when it began, and when it ended.
    pub(super) before: &'a InFlight,
    pub(super) now: &'a InFlight,
}

impl Observed<'_> {
    /// Returns the report: finished calls, plus running calls, less the time that an earlier report included.
    pub(super) fn report(&self, machine: &Machine<'_>) -> Bottlenecks {
        let mut rows: Vec<Row> = Vec::new();
        for it in &self.done.engines {
            rows.push(Row::new(it.clone()));
        }
        for flying in self.flying {
            row(&mut rows, flying.job.operation, flying.engine).begin(flying.job);
        }
        for (air, sign) in [(self.now, 1.0), (self.before, -1.0)] {
            for &(operation, engine, bound, seconds) in &air.0 {
                row(&mut rows, operation, engine).add(bound, sign * seconds);
            }
        }
        rows.iter_mut().for_each(Row::settle);
        rows.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        let busy: f64 = rows.iter().map(|row| row.seconds).sum();
        let mut bounds = BoundSeconds::default();
        for row in &rows {
            for bound in Bound::ALL {
                *bounds.of_mut(bound) += row.bounds.of(bound);
            }
        }
        Bottlenecks {
            seconds: self.seconds,
            busy,
            calls: self.done.calls,
            bound: bounds.most(),
            shares: rows.iter().map(|row| share(row, busy)).collect(),
            change: machine.most(&self.done, &rows),
        }
    }
}

/// Returns the row of an operation on an engine, or adds a new one.
fn row(rows: &mut Vec<Row>, operation: Operation, engine: Engine) -> &mut Row {
    let of = |row: &Row| (row.done.operation, row.done.engine) == (operation, engine);
    let at = rows.iter().position(of).unwrap_or_else(|| {
        rows.push(Row::new(EngineMetrics::none(operation, engine)));
        rows.len() - 1
    });
    &mut rows[at]
}

fn share(row: &Row, busy: f64) -> Share {
    let done = &row.done;
    let rate = |amount: u64| match done.seconds > 0.0 {
        true => amount as f64 / done.seconds,
        false => 0.0,
    };
    Share {
        operation: done.operation,
        engine: done.engine,
        seconds: row.seconds,
        share: if busy > 0.0 { row.seconds / busy } else { 0.0 },
        calls: done.calls,
        running: row.running,
        elements_per_second: rate(done.elements),
        bytes_per_second: rate(done.bytes),
        bound: row.bounds.most(),
        bound_seconds: row.bounds,
    }
}

impl Bottlenecks {
    /// Returns the report as JSON, on one line.
    pub fn to_json(&self) -> String {
        // Numbers, names and lists: nothing in it can fail.
        serde_json::to_string(self).unwrap_or_default()
    }
}

fn calls(count: u64) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{count} call{s}")
}

impl fmt::Display for Bottlenecks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "in {}: {}, {} in them",
            time(self.seconds),
            calls(self.calls),
            time(self.busy)
        )?;
        if let Some(bound) = self.bound {
            write!(f, ", {}-bound", bound.name())?;
        }
        for share in &self.shares {
            write!(f, "\n{share}")?;
        }
        match &self.change {
            Some(change) => write!(f, "\n  would help most: {change}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = 100.0 * self.share;
        let (operation, engine) = (self.operation, self.engine);
        write!(f, "  {percent:5.1} %  {operation} on {engine}: ")?;
        match self.calls {
            0 => write!(f, "{} under way", self.running)?,
            count => write!(
                f,
                "{}, {:.3} GB/s",
                calls(count),
                self.bytes_per_second * 1e-9
            )?,
        }
        match self.bound {
            Some(bound) if self.seconds > 0.0 => {
                let part = 100.0 * self.bound_seconds.of(bound) / self.seconds;
                write!(f, ", {}-bound for {part:.0} % of it", bound.name())
            }
            _ => Ok(()),
        }
    }
}
