//! Prints the conformance table of this machine, `name digest` a line, and fails where it differs from the committed
//! one.
//!
//! `cargo run -p tercet-core --example conformance`

use std::process::ExitCode;

use tercet_core::conformance::{self, Mismatch};

fn main() -> ExitCode {
    let mut status = ExitCode::SUCCESS;
    conformance::run(&mut |name, found| {
        println!("{name} {found:016x}");
        let expected = conformance::expected(name);
        if expected != Some(found) {
            let mismatch = Mismatch {
                name,
                found,
                expected,
            };
            eprintln!("{mismatch}");
            status = ExitCode::FAILURE;
        }
    });
    status
}
