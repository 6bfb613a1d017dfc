//! Suggests what would be faster, from the metrics: sentences with their numbers.

use std::fmt;

use serde::Serialize;

use super::metrics::EngineMetrics;
use super::settings::{Profile, Settings};
use super::{Costs, Engine, Job, Location, Metrics, Operation};

/// Shares and factors above which advice is given.
const SHARE: f64 = 0.5;
/// Largest error of predictions without advice, as a part of the time taken.
const OFF: f64 = 0.5;
/// Fewer calls than this are not enough for advice.
const CALLS: u64 = 16;

/// A sentence about what would be faster.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Advice {
    /// The operation concerned; `None` if it concerns all of them.
    pub operation: Option<Operation>,
    /// The sentence, with its numbers.
    pub text: String,
    /// Seconds of the time taken so far that it concerns: the larger, the more it may help.
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

/// The inputs of advice, beside the metrics.
pub(super) struct Machine<'a> {
    pub(super) costs: &'a Costs,
    pub(super) measured: bool,
    pub(super) settings: &'a Settings,
    /// True if there is a device, as far as is known.
    pub(super) device: bool,
}

impl Machine<'_> {
    /// Returns all advice, the most time-consuming subject first.
    pub(super) fn advise(&self, metrics: &Metrics) -> Vec<Advice> {
        let mut advice = Vec::new();
        for it in &metrics.engines {
            advice.extend(self.failing(it));
            if it.calls >= CALLS {
                advice.extend(self.copies(it));
                advice.extend(starts(it));
                advice.extend(self.plain(it));
            }
        }
        advice.extend(self.tuning(metrics));
        advice.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        advice
    }

    /// Copies to the device take most of its time.
    fn copies(&self, it: &EngineMetrics) -> Option<Advice> {
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
            seconds: it.seconds * share,
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
                operation: it.operation,
                elements: count,
                bytes_in: scaled(bytes),
                bytes_out: 0,
                work: count,
                items: 0,
                held: 0,
                scratch: 0,
                place: Location::Host,
                flow: it.calls == it.flows,
                times: 1,
            };
            let total = |engine| Some(self.costs.get(it.operation, engine)?.predict(&job).total());
            let here = [Engine::Scalar, Engine::Simd, Engine::Threads];
            let tiling = self.settings.profile.tiling();
            let here = (here.into_iter()).filter(|&engine| !job.is_tiled() || engine == tiling);
            let here = here.filter_map(total);
            let there = total(it.engine);
            there.is_some_and(|there| there < here.fold(f64::INFINITY, f64::min))
        })
    }

    /// Plain code runs although there are kernels.
    fn plain(&self, it: &EngineMetrics) -> Option<Advice> {
        let average = Job::each(it.operation, it.elements / it.calls, it.bytes / it.calls, 0);
        let total = |engine| {
            Some(
                self.costs
                    .get(it.operation, engine)?
                    .predict(&average)
                    .total(),
            )
        };
        let (scalar, simd) = (total(Engine::Scalar)?, total(Engine::Simd)?);
        let fixed = self.settings.profile == Profile::Edge;
        if it.engine != Engine::Scalar || fixed || scalar < 2.0 * simd {
            return None;
        }
        Some(Advice {
            operation: Some(it.operation),
            text: format!(
                "{} calls of {} elements on average ran as scalar code; simd is predicted to take {:.0} % of their time",
                it.calls,
                average.elements,
                100.0 * simd / scalar
            ),
            seconds: it.seconds * (1.0 - simd / scalar),
        })
    }

    /// An engine fails.
    fn failing(&self, it: &EngineMetrics) -> Option<Advice> {
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

    /// Predictions are far off.
    fn tuning(&self, metrics: &Metrics) -> Option<Advice> {
        let known = || {
            metrics
                .engines
                .iter()
                .filter(|it| it.calls - it.flows >= CALLS && it.judged_seconds() > 0.0)
        };
        let seconds: f64 = known().map(EngineMetrics::judged_seconds).sum();
        let off: f64 = known().map(EngineMetrics::off_seconds).sum();
        if seconds <= 0.0 || off / seconds < OFF {
            return None;
        }
        let costs = if self.measured {
            "measured"
        } else {
            "built-in"
        };
        Some(Advice {
            operation: None,
            text: format!(
                "calls differed from their predictions by {:.0} % of their time: \
                 `tercet tune` measures this machine again ({costs} costs now)",
                100.0 * off / seconds
            ),
            seconds: off,
        })
    }
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

/// Starting takes most of the time.
fn starts(it: &EngineMetrics) -> Option<Advice> {
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
        seconds: it.seconds * share,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dispatch::Prediction;
    use crate::dispatch::metrics::{Call, Counters};

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
        let machine = Machine {
            costs: &Costs::builtin(4),
            measured: false,
            settings: &Settings::default(),
            device: true,
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
        let plain = advice(Engine::Scalar, 20, prediction(1e-7, 0.0, 1e-3), false);
        assert!(
            plain[0].contains("20 calls of 1048576 elements on average ran as scalar"),
            "{plain:?}"
        );
        let off = advice(Engine::Simd, 20, prediction(1e-7, 0.0, 1e-3), true);
        assert_eq!(off.len(), 1);
        assert!(
            off[0].starts_with("calls differed from their predictions by 50 %"),
            "{off:?}"
        );
        assert!(off[0].contains("built-in costs now"), "{off:?}");
    }
}
