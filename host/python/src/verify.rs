//! The conformance suite on this machine.

use std::time::Instant;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use tercet_core::conformance;
use tercet_host::parallel::Threads;
use tercet_host::simd::Backend;

/// What an engine found: the operations, and those whose bits differ.
struct Found {
    engine: String,
    operations: usize,
    differ: Vec<&'static str>,
    seconds: f64,
}

/// Collects whether operations agree, as `suite` reports.
fn found(engine: String, suite: impl FnOnce(&mut dyn FnMut(&'static str, bool))) -> Found {
    let start = Instant::now();
    let (mut operations, mut differ) = (0, Vec::new());
    suite(&mut |operation, agrees| {
        operations += 1;
        if !agrees {
            differ.push(operation);
        }
    });
    Found {
        engine,
        operations,
        differ,
        seconds: start.elapsed().as_secs_f64(),
    }
}

fn core() -> Found {
    found("core, scalar".to_owned(), |report| {
        conformance::run(&mut |operation, digest| {
            report(operation, is_released(operation, digest))
        });
    })
}

fn threads(name: String, engine: Threads) -> Found {
    found(name, |report| {
        let mut digest = |operation, digest| report(operation, is_released(operation, digest));
        conformance::run_engine(&mut { engine }, &mut digest);
        conformance::run_models(&mut { engine }, &mut digest);
        conformance::run_training(&mut { engine }, &mut digest);
        tercet_host::conformance::run(&engine, report);
    })
}

fn is_released(operation: &str, digest: u64) -> bool {
    conformance::expected(operation) == Some(digest)
}

/// Checks that this machine gives the same bits as every other, as `tercet verify` does: every operation runs on fixed
/// inputs, as scalar code and on each instruction set of the processor. Takes seconds; Ctrl-C ends it.
///
/// Returns a list with a dict per engine: `engine`, the number of `operations` and of those that `agreed`, the names of
/// those that `differ`, and `seconds`. The machine is good if no engine has a name in `differ`; a difference raises
/// nothing.
///
/// >>> import tercet
/// >>> [name for found in tercet.verify() for name in found["differ"]]
/// []
#[pyfunction]
pub(crate) fn verify(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let all = PyList::empty(py);
    let add = |work: &(dyn Fn() -> Found + Sync)| {
        // Lets Ctrl-C end the suite between engines.
        py.check_signals()?;
        let found = py.detach(work);
        let dict = PyDict::new(py);
        dict.set_item("engine", found.engine)?;
        dict.set_item("operations", found.operations)?;
        dict.set_item("agreed", found.operations - found.differ.len())?;
        dict.set_item("differ", found.differ)?;
        dict.set_item("seconds", found.seconds)?;
        all.append(dict)
    };
    add(&core)?;
    for backend in Backend::all() {
        let engine = Threads::default().with_backend(backend);
        add(&|| threads(format!("{backend}, all threads"), engine))?;
    }
    let best = Backend::best();
    let alone = Threads::alone().with_backend(best);
    add(&|| threads(format!("{best}, one thread"), alone))?;
    Ok(all)
}
