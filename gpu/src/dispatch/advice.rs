//! Suggests what would be faster: one list, from the figures of calls and the costs of this machine.

use std::fmt;

use serde::Serialize;
use tercet_host::simd::Backend;

use super::builder::Source;
use super::metrics::{EngineMetrics, Metrics, Row};
use super::settings::{Profile, Settings};
use super::{Bound, Costs, Engine, Job, Location, Operation, Prediction};

/// Share of calls above which their largest part is worth a sentence.
const SHARE: f64 = 0.5;
/// Largest error of predictions without advice, as a part of the time taken.
const OFF: f64 = 0.5;
/// Fewer calls than this are not enough for advice on how to make calls.
const CALLS: u64 = 8;
/// Fewer calls than this say nothing about predictions.
const JUDGED: u64 = 16;
/// Another engine is suggested if it takes less than this part of the time.
const FASTER: f64 = 0.8;
/// Requests of a batch, which share one start: the default of a queue.
const BATCH: f64 = 64.0;

/// A sentence about what would be faster.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Advice {
    /// The operation concerned; `None` if it concerns all of them.
    pub operation: Option<Operation>,
    /// The sentence, with its numbers.
    pub text: String,
    /// Seconds that it is predicted to save of the time taken; 0 if that is not known.
    pub seconds: f64,
}

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.operation {
            Some(operation) => write!(f, "{operation}: {}", self.text),
            None => f.write_str(&self.text),
        }
    }
}

/// Returns why an engine did not do a job.
pub(super) type Why<'a> = &'a dyn Fn(&Job, Engine) -> String;

/// The inputs of advice, beside the figures.
pub(super) struct Machine<'a> {
    pub(super) costs: &'a Costs,
    pub(super) source: Source,
    /// The costs of this machine's best instruction set, if another one was asked for.
    pub(super) best: Option<&'a Costs>,
    pub(super) settings: &'a Settings,
    /// True if there is a device, as far as is known.
    pub(super) device: bool,
    pub(super) why: Why<'a>,
}

impl Machine<'_> {
    /// Returns all advice for the same work, the most helpful first.
    pub(super) fn advise(&self, metrics: &Metrics) -> Vec<Advice> {
        let rows = metrics.engines.iter().cloned().map(Row::new);
        let mut advice: Vec<Advice> = rows.flat_map(|row| self.of_row(&row)).collect();
        advice.extend(self.tuning(metrics));
        advice.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        advice
    }

    /// Returns the change that saves the most time of an interval; it may also be other work.
    pub(super) fn most(&self, metrics: &Metrics, rows: &[Row]) -> Option<Advice> {
        let of_rows = rows.iter().flat_map(|row| {
            let mut advice = self.of_row(row);
            advice.extend(self.fewer_bytes(row));
            advice
        });
        // Time before the interval is no gain within it.
        let most: f64 = rows.iter().map(|row| row.seconds).sum();
        let tuning = self.tuning(metrics).map(|advice| Advice {
            seconds: advice.seconds.min(most),
            ..advice
        });
        let all = of_rows.chain(tuning).filter(|advice| advice.seconds > 0.0);
        all.max_by(|a, b| a.seconds.total_cmp(&b.seconds))
    }

    fn of_row(&self, row: &Row) -> Vec<Advice> {
        let it = &row.done;
        let mut advice = Vec::new();
        advice.extend(failing(it));
        let Some((job, predicted)) = self.predicted(row) else {
            return advice;
        };
        advice.extend(self.faster(row, &job, &predicted));
        if it.calls >= CALLS {
            advice.extend(self.copies(row, &predicted));
            advice.extend(starts(row, &predicted));
        }
        advice
    }

    /// Returns the mean call and its prediction, if the row took any time.
    fn predicted(&self, row: &Row) -> Option<(Job, Prediction)> {
        let job = row.mean().filter(|_| row.seconds > 0.0)?;
        let cost = self.costs.get(row.done.operation, row.done.engine)?;
        Some((job, cost.predict(&job)))
    }

    /// Another engine, or this machine's best instruction set, would take less time.
    fn faster(&self, row: &Row, job: &Job, predicted: &Prediction) -> Option<Advice> {
        let (operation, engine) = (row.done.operation, row.done.engine);
        if self.settings.profile == Profile::Edge {
            return None;
        }
        let part = |costs: &Costs, other| {
            let total = costs.get(operation, other)?.predict(job).total();
            Some((total / predicted.total(), other))
        };
        let others = Engine::ALL.into_iter().filter(|&other| {
            let reachable = match job.place {
                Location::Host => other != Engine::Cuda || self.device,
                Location::Processor => other != Engine::Cuda,
                Location::Device => false,
            };
            let able = !job.is_tiled() || other == Engine::Cuda;
            other != engine && reachable && able
        });
        let tiling = self.settings.profile.tiling();
        let better = self.best.into_iter().flat_map(|best| {
            let engines = [Engine::Simd, Engine::Threads].into_iter();
            let able = engines.filter(|&other| !job.is_tiled() || other == tiling);
            able.filter_map(move |other| part(best, other))
                .map(|(part, other)| (part, other, true))
        });
        let all = others
            .filter_map(|other| part(self.costs, other))
            .map(|(part, other)| (part, other, false))
            .chain(better);
        let (part, other, is_best) = all.min_by(|a, b| a.0.total_cmp(&b.0))?;
        if part >= FASTER {
            return None;
        }
        let percent = 100.0 * part;
        let text = if is_best {
            format!(
                "{other} with {} is predicted to take {percent:.0} % of the time of {engine}; {} was asked for",
                Backend::best().isa(),
                self.settings.backend().isa()
            )
        } else {
            format!(
                "{other} is predicted to take {percent:.0} % of the time of {engine}; it was not taken: {}",
                (self.why)(job, other)
            )
        };
        Some(Advice {
            operation: Some(operation),
            text,
            seconds: of_engine(row, job, predicted) * (1.0 - part),
        })
    }

    /// Copies to the device take most of its time.
    fn copies(&self, row: &Row, predicted: &Prediction) -> Option<Advice> {
        let it = &row.done;
        let share = it.transfer_bound as f64 / it.calls as f64;
        if share < SHARE {
            return None;
        }
        let from = self.pays(it);
        let batch = match from {
            Some(elements) => format!(", or batch from {elements} elements on"),
            None => String::new(),
        };
        Some(Advice {
            operation: Some(it.operation),
            text: format!(
                "{:.0} % of {} calls on {} were bound by copies: keep data resident there{}{batch}",
                100.0 * share,
                it.calls,
                it.engine,
                resident(it.operation)
            ),
            seconds: row.seconds * predicted.transfer / predicted.total(),
        })
    }

    /// Returns the number of elements, a power of two, from which a job of the mean shape is faster there, copies
    /// included, than here.
    fn pays(&self, it: &EngineMetrics) -> Option<u64> {
        let elements = it.elements.checked_div(it.calls)?.max(1);
        let bytes = it.bytes / it.calls;
        (0..40).map(|power| 1u64 << power).find(|&count| {
            let scaled = |amount: u64| (amount as f64 / elements as f64 * count as f64) as u64;
            let job = Job {
                flow: it.calls == it.flows,
                ..Job::each(it.operation, count, scaled(bytes), 0)
            };
            let total = |engine| Some(self.costs.get(it.operation, engine)?.predict(&job).total());
            let here = [Engine::Scalar, Engine::Simd, Engine::Threads];
            let tiling = self.settings.profile.tiling();
            let here = (here.into_iter()).filter(|&engine| !job.is_tiled() || engine == tiling);
            let here = here.filter_map(total).min_by(f64::total_cmp);
            here.zip(total(it.engine))
                .is_some_and(|(here, there)| there < here)
        })
    }

    /// Most of the time goes to reading and writing. Only the caller knows what fewer bytes would save: at most the
    /// time beyond the other parts.
    fn fewer_bytes(&self, row: &Row) -> Option<Advice> {
        let (job, predicted) = self.predicted(row)?;
        if row.bounds.most() != Some(Bound::Memory) {
            return None;
        }
        let part = 0.5 * (predicted.memory - predicted.compute).max(0.0) / predicted.total();
        Some(Advice {
            operation: Some(row.done.operation),
            text: format!(
                "calls of {} elements on {} mostly read and write: \
                 a format with half the bits per value moves half the bytes",
                job.elements, row.done.engine
            ),
            seconds: of_engine(row, &job, &predicted) * part,
        })
    }

    /// Predictions are far off, or made from rough costs.
    fn tuning(&self, metrics: &Metrics) -> Option<Advice> {
        let known = || {
            metrics
                .engines
                .iter()
                .filter(|it| it.calls - it.flows >= JUDGED && it.judged_seconds() > 0.0)
        };
        let seconds: f64 = known().map(EngineMetrics::judged_seconds).sum();
        let off: f64 = known().map(EngineMetrics::off_seconds).sum();
        let (text, seconds) = if seconds > 0.0 && off / seconds >= OFF {
            let costs = match self.source {
                Source::Builtin => "built-in",
                Source::Program => "the program's",
                Source::Measured => "measured",
            };
            let text = format!(
                "calls differed from their predictions by {:.0} % of their time: \
                 `tercet tune` measures this machine again ({costs} costs now)",
                100.0 * off / seconds
            );
            (text, off)
        } else if self.source == Source::Builtin
            && !matches!(self.settings.profile, Profile::Development | Profile::Edge)
        {
            let text =
                "the costs are rough figures of other machines: `tercet tune` measures this one";
            (text.to_owned(), 0.0)
        } else {
            return None;
        };
        Some(Advice {
            operation: None,
            text,
            seconds,
        })
    }
}

/// Returns the seconds that the engine took: of whole flows only its part.
fn of_engine(row: &Row, job: &Job, predicted: &Prediction) -> f64 {
    match (row.done.calls, row.done.flows) {
        (0, _) if job.flow => row.seconds.min(predicted.total()),
        (calls, flows) if calls > 0 && calls == flows => {
            row.seconds.min(row.done.predicted_seconds)
        }
        _ => row.seconds,
    }
}

/// An engine fails.
fn failing(it: &EngineMetrics) -> Option<Advice> {
    let tried = it.calls + it.failures;
    (it.failures > 0).then(|| Advice {
        operation: Some(it.operation),
        text: format!(
            "{} of {tried} calls failed on {} and were done again by another engine: \
             use smaller calls, or set the operation to another engine",
            it.failures, it.engine
        ),
        // The time of a failed call is not known; it is assumed to be that of an ordinary call.
        seconds: it.average_seconds * it.failures as f64,
    })
}

/// Starting takes most of the time. One thread starts at once, so there is nothing to gain.
fn starts(row: &Row, predicted: &Prediction) -> Option<Advice> {
    let it = &row.done;
    let share = it.launch_bound as f64 / it.calls as f64;
    if share < SHARE || !matches!(it.engine, Engine::Threads | Engine::Cuda) {
        return None;
    }
    Some(Advice {
        operation: Some(it.operation),
        text: format!(
            "{:.0} % of {} calls on {} spent most of their time starting, at {} elements on average: put several into one call",
            100.0 * share,
            it.calls,
            it.engine,
            it.elements / it.calls
        ),
        seconds: row.seconds * predicted.launch / predicted.total() * (1.0 - 1.0 / BATCH),
    })
}

/// Names what keeps an operation's data on the device, if a call of the dispatcher does.
const fn resident(operation: Operation) -> &'static str {
    match operation {
        Operation::Kmeans | Operation::Assign => " (Dispatcher::resident_points)",
        Operation::Search => " (Dispatcher::resident_rows)",
        Operation::Matvec | Operation::Matmul => " (Dispatcher::resident_layer)",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dispatch::metrics::{Call, Counters};
    use crate::dispatch::{Cost, Curve};

    /// Returns the advice for `calls` calls of a million elements that took twice their prediction, or exactly their
    /// prediction.
    fn advice(engine: Engine, calls: u64, prediction: Prediction, twice: bool) -> Vec<String> {
        let job = Job::each(Operation::Encode, 1 << 20, 4 << 20, 1 << 20);
        advice_on(&job, engine, calls, prediction, twice)
    }

    fn advice_on(
        job: &Job,
        engine: Engine,
        calls: u64,
        prediction: Prediction,
        twice: bool,
    ) -> Vec<String> {
        let counters = Counters::new();
        let seconds = prediction.total() * if twice { 2.0 } else { 1.0 };
        for _ in 0..calls {
            counters.done(&Call {
                job,
                engine,
                nanoseconds: (seconds * 1e9) as u64,
                prediction: Some(prediction),
                finished: false,
            });
        }
        // Only this engine has a known cost, which gives the prediction.
        let mut costs = Costs::none();
        let mut cost = Cost::constant(prediction.launch, f64::MAX, f64::MAX);
        let rate = |seconds: f64| Curve::new([(job.bytes(), seconds)]).unwrap();
        cost.memory = rate(prediction.memory);
        cost.transfer = (prediction.transfer > 0.0).then(|| rate(prediction.transfer));
        costs.set(job.operation, engine, cost);
        let machine = Machine {
            costs: &costs,
            source: Source::Measured,
            best: None,
            settings: &Settings::default(),
            device: true,
            why: &|_, _| "of a reason".to_owned(),
        };
        let advice = machine.advise(&counters.snapshot());
        assert!(
            advice
                .windows(2)
                .all(|pair| pair[0].seconds >= pair[1].seconds)
        );
        advice.iter().map(ToString::to_string).collect()
    }

    fn prediction(launch: f64, transfer: f64, memory: f64) -> Prediction {
        Prediction {
            launch,
            transfer,
            memory,
            ..Prediction::default()
        }
    }

    #[test]
    fn where_nothing_is_known_to_help_nothing_is_said() {
        let none: [String; 0] = [];
        assert_eq!(
            advice(Engine::Threads, 100, prediction(1e-5, 0.0, 1e-3), false),
            none
        );
        assert_eq!(
            advice(Engine::Cuda, 100, prediction(1e-5, 1e-4, 1e-3), false),
            none
        );
        // Too few calls for advice.
        assert_eq!(
            advice(Engine::Cuda, 3, prediction(1e-5, 1e-2, 1e-3), true),
            none
        );
        // One thread starts at once, so there is nothing to gain.
        assert_eq!(
            advice(Engine::Simd, 100, prediction(1e-5, 0.0, 1e-6), false),
            none
        );
    }

    #[test]
    fn what_flows_take_beside_the_engine_is_no_wrong_prediction() {
        let flow = Job::each(Operation::Encode, 1 << 20, 4 << 20, 1 << 20).in_flow();
        let of = prediction(1e-7, 0.0, 1e-3);
        let none: [String; 0] = [];
        assert_eq!(advice_on(&flow, Engine::Simd, 20, of, true), none);
        // The time of items within the engine is reported like that of calls.
        let starts = prediction(1e-5, 0.0, 1e-6);
        assert_eq!(advice_on(&flow, Engine::Threads, 50, starts, true).len(), 1);
    }

    #[test]
    fn residence_is_named_where_there_is_a_call_for_it() {
        for operation in Operation::ALL {
            let named = !resident(operation).is_empty();
            // Operations with a second operand, so that the first may stay.
            assert_eq!(named, operation >= Operation::Kmeans, "{operation}");
        }
    }

    #[test]
    fn each_sentence_has_its_numbers() {
        let copies = advice(Engine::Cuda, 100, prediction(1e-5, 1e-2, 1e-3), false);
        let text =
            "encode: 100 % of 100 calls on cuda were bound by copies: keep data resident there";
        assert_eq!(copies, [text]);
        let starts = advice(Engine::Threads, 50, prediction(1e-5, 0.0, 1e-6), false);
        assert_eq!(starts.len(), 1);
        assert!(
            starts[0].starts_with("encode: 100 % of 50 calls on threads spent most"),
            "{starts:?}"
        );
        assert!(
            starts[0].contains("at 1048576 elements on average"),
            "{starts:?}"
        );
        let off = advice(Engine::Simd, 20, prediction(1e-7, 0.0, 1e-3), true);
        assert_eq!(off.len(), 1);
        assert!(
            off[0].starts_with("calls differed from their predictions by 50 %"),
            "{off:?}"
        );
        assert!(off[0].contains("measured costs now"), "{off:?}");
    }
}
