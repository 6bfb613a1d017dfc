//! Compares the results of engines with the released digests.

use std::time::Instant;

use serde::Serialize;
use tercet_core::conformance;
use tercet_gpu::AnyEngine;
use tercet_gpu::dispatch::First;
use tercet_host::parallel::Threads;

use super::board::Board;
use super::emulate::Printed;

/// An engine or a board, and its results.
#[derive(Debug, Serialize)]
pub(super) struct EngineFound {
    pub(super) engine: String,
    pub(super) operations: usize,
    pub(super) agreed: usize,
    pub(super) seconds: f64,
    pub(super) differ: Vec<&'static str>,
    /// How a board failed.
    pub(super) failed: Option<String>,
    #[serde(skip)]
    found: Vec<(&'static str, EngineResult)>,
}

/// The result of an engine: a digest, or, if it was compared with core directly, whether it equals core's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EngineResult {
    Digest(u64),
    Same(bool),
}

/// An operation, and the engines whose digest differs from the released one.
#[derive(Debug, Serialize)]
pub(super) struct Digest {
    pub(super) operation: &'static str,
    pub(super) expected: Option<String>,
    pub(super) differ: Vec<Differ>,
}

#[derive(Debug, Serialize)]
pub(super) struct Differ {
    pub(super) engine: String,
    pub(super) found: String,
}

impl EngineResult {
    fn agrees(self, operation: &str) -> bool {
        match self {
            Self::Digest(digest) => conformance::expected(operation) == Some(digest),
            Self::Same(same) => same,
        }
    }

    fn words(self) -> String {
        match self {
            Self::Digest(digest) => format!("{digest:016x}"),
            Self::Same(true) => "core's".to_owned(),
            Self::Same(false) => "not core's".to_owned(),
        }
    }
}

impl EngineFound {
    /// Collects all that `suite` reports.
    pub(super) fn of(
        engine: String,
        suite: impl FnOnce(&mut dyn FnMut(&'static str, EngineResult)),
    ) -> Self {
        let start = Instant::now();
        let mut found = Vec::new();
        suite(&mut |operation, it| found.push((operation, it)));
        Self::new(engine, found, start.elapsed().as_secs_f64())
    }

    fn new(engine: String, found: Vec<(&'static str, EngineResult)>, seconds: f64) -> Self {
        let differ = found.iter().filter(|(operation, it)| !it.agrees(operation));
        let differ: Vec<_> = differ.map(|(operation, _)| *operation).collect();
        Self {
            engine,
            operations: found.len(),
            agreed: found.len() - differ.len(),
            seconds,
            differ,
            failed: None,
            found,
        }
    }

    /// Returns the results of a device.
    #[cfg(feature = "cuda")]
    pub(super) fn device(name: String, device: &mut First) -> Self {
        Self::of(name, |report| {
            digests(AnyEngine::Device(device), report);
        })
    }

    /// Returns the results of the processor's threads, and of the same operations over more sizes and values.
    pub(super) fn threads(name: String, engine: Threads) -> Self {
        Self::of(name, |report| {
            digests(AnyEngine::Threads(engine), report);
            let mut threads = AnyEngine::<First>::Threads(engine);
            let mut digest = |operation, digest| report(operation, EngineResult::Digest(digest));
            conformance::run_models(&mut threads, &mut digest);
            conformance::run_training(&mut { engine }, &mut digest);
            tercet_host::conformance::run(&engine, &mut |operation, same| {
                report(operation, EngineResult::Same(same));
            });
        })
    }

    /// Returns the results of a board's images; together they must print all that is released for small machines.
    pub(super) fn board(board: &Board, printed: &[Printed]) -> Self {
        let digests = printed.iter().flat_map(|it| &it.digests);
        let found: Vec<_> = digests
            .map(|&(operation, digest)| (operation, EngineResult::Digest(digest)))
            .collect();
        let seconds = printed.iter().map(|it| it.seconds).sum();
        let reasons: Vec<&str> = (printed.iter())
            .filter_map(|it| it.failed.as_deref())
            .collect();
        let missing: Vec<&str> = conformance::entries()
            .map(|(operation, _)| operation)
            .filter(|operation| conformance::is_small(operation))
            .filter(|operation| found.iter().all(|(other, _)| other != operation))
            .collect();
        let failed = match (&reasons[..], &missing[..]) {
            ([], []) => None,
            ([], [first, more @ ..]) => Some(match more.len() {
                0 => format!("no image printed {first}"),
                more => format!("no image printed {first} and {more} more"),
            }),
            (reasons, _) => Some(reasons.join("; ")),
        };
        Self {
            failed,
            ..Self::new(format!("emulated {}", board.name), found, seconds)
        }
    }

    /// True if all results are as released.
    pub(super) fn agrees(&self) -> bool {
        self.differ.is_empty() && self.failed.is_none()
    }
}

/// Uses the same type of engine as the commands.
fn digests(mut engine: AnyEngine<'_, First>, report: &mut dyn FnMut(&'static str, EngineResult)) {
    conformance::run_engine(&mut engine, &mut |operation, digest| {
        report(operation, EngineResult::Digest(digest));
    });
}

/// Returns every operation that an engine reported, in the order of the first engine that did, with the engines that
/// differ.
pub(super) fn table(engines: &[EngineFound]) -> Vec<Digest> {
    let mut digests: Vec<Digest> = Vec::new();
    for (engine, &(operation, found)) in
        (engines.iter()).flat_map(|engine| engine.found.iter().map(move |found| (engine, found)))
    {
        let known = digests.iter().position(|it| it.operation == operation);
        let index = known.unwrap_or_else(|| {
            let expected = conformance::expected(operation);
            digests.push(Digest {
                operation,
                expected: expected.map(|it| format!("{it:016x}")),
                differ: Vec::new(),
            });
            digests.len() - 1
        });
        if !found.agrees(operation) {
            digests[index].differ.push(Differ {
                engine: engine.engine.clone(),
                found: found.words(),
            });
        }
    }
    digests
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::board::Processor;

    fn board(printed: &[Printed]) -> EngineFound {
        let board = Board {
            name: "an386 (thumbv7em-none-eabihf)".to_owned(),
            processor: Processor::Arm,
            arguments: Vec::new(),
            images: Vec::new(),
        };
        EngineFound::board(&board, printed)
    }

    #[test]
    fn a_board_is_to_print_all_that_is_released_and_nothing_else() {
        let all = conformance::entries().filter(|(name, _)| conformance::is_small(name));
        let all: Vec<_> = all.collect();
        let (first, rest) = all.split_at(40);
        let mut printed = [first, rest].map(|digests| Printed {
            digests: digests.to_vec(),
            seconds: 1.5,
            failed: None,
        });
        let whole = board(&printed);
        assert!(whole.agrees());
        assert_eq!((whole.operations, whole.agreed), (all.len(), all.len()));
        assert_eq!(whole.seconds, 3.0);
        assert_eq!(whole.engine, "emulated an386 (thumbv7em-none-eabihf)");

        printed[0].digests[3].1 ^= 1;
        let other = board(&printed);
        assert!(!other.agrees());
        assert_eq!(other.differ, [all[3].0]);
        assert_eq!(table(&[whole, other])[3].differ.len(), 1);

        printed[0].digests[3].1 ^= 1;
        printed[1].digests.pop();
        let short = board(&printed);
        let last = all[all.len() - 1].0;
        assert_eq!(short.failed, Some(format!("no image printed {last}")));
        printed[1].failed = Some("points: stopped after 60 s".to_owned());
        assert_eq!(board(&printed).failed, printed[1].failed);
    }
}
