//! Prints the conformance table of the threads' engine, `name digest` a line, and fails where it differs from the
//! committed one, or where an operation that the table does not name differs from core's.
//!
//! `TERCET_BACKEND=avx2 cargo run -p tercet-host --example conformance_threads`; with the word `backends` after `--`
//! it lists what `TERCET_BACKEND` may say on this machine.

use std::process::ExitCode;

use tercet_core::conformance::{self, Mismatch};
use tercet_host::parallel::Threads;
use tercet_host::simd::{Backend, Isa};

fn main() -> ExitCode {
    if std::env::args().any(|argument| argument == "backends") {
        Backend::all().for_each(|backend| println!("{backend}"));
        return ExitCode::SUCCESS;
    }
    let backend = match Backend::chosen() {
        Ok(backend) => backend,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    };
    println!("# {backend}");
    let mut status = ExitCode::SUCCESS;
    let mut report = |name: &'static str, found: u64| {
        println!("{name} {found:016x}");
        let expected = conformance::expected(name);
        if expected != Some(found) {
            let mismatch = Mismatch {
                name,
                found,
                expected,
            };
            eprintln!("{backend}: {mismatch}");
            status = ExitCode::FAILURE;
        }
    };
    conformance::run_engine(&mut Threads::default(), &mut report);
    conformance::run_models(&mut Threads::default(), &mut report);
    // AMX trains by the kernels of AVX-512, which is a backend of its own: not again in the emulator that tests the
    // tiles.
    if backend.isa() != Isa::Amx {
        conformance::run_training(&mut Threads::default(), &mut report);
    }
    tercet_host::conformance::run(&Threads::default(), &mut |operation, agrees| {
        println!(
            "# {operation}: {}",
            if agrees { "as core" } else { "differs" }
        );
        if !agrees {
            eprintln!("{backend}: {operation} differs from core's");
            status = ExitCode::FAILURE;
        }
    });
    status
}
