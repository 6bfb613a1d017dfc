//! A part of the conformance suite on the board. Prints its table and the stack it took, and fails if either is wrong.

use core::panic::PanicInfo;

use tercet_core::conformance::{self, Section};

use crate::text::Text;
use crate::{exit, stack};

/// Runs the part and ends the program. If `part` is a constant, the image contains only that part.
#[inline(always)]
pub fn run(part: Section) -> ! {
    let mut meter = stack::Meter::start();
    let mut deepest = (0, "");
    let mut failures = 0;
    conformance::run_part(part, &mut |name, digest| {
        // Before printing, whose own frames are not the suite's.
        let bytes = meter.lap();
        if bytes > deepest.0 {
            deepest = (bytes, name);
        }
        Text::new().str(name).str(" ").hex(digest).end();
        Text::new()
            .str("# ")
            .number(bytes)
            .str(" bytes of stack")
            .end();
        if conformance::expected(name) != Some(digest) {
            Text::new()
                .str("# ")
                .str(name)
                .str(" differs from the committed table")
                .end();
            failures += 1;
        }
        meter.lap();
    });
    let (bytes, name) = deepest;
    Text::new()
        .str("# deepest stack: ")
        .number(bytes)
        .str(" bytes, ")
        .str(name)
        .end();
    Text::new().str("# stack ").number(bytes).end();
    let most = part.case_bytes();
    if bytes as usize > most {
        Text::new()
            .str("# a case may take ")
            .number(most as u32)
            .str(" bytes of stack")
            .end();
        failures += 1;
    }
    if failures == 0 {
        exit::success()
    }
    exit::failure()
}

/// Handles a panic. The suite digests messages of errors, and the compiler cannot prove that `core::fmt` does not
/// panic. So these programs, unlike the others, contain the code that runs after a panic.
pub fn panicked(info: &PanicInfo<'_>) -> ! {
    if let Some(place) = info.location() {
        let text = Text::new().str("# panicked at ").str(place.file());
        text.str(":").number(place.line()).end();
    }
    exit::failure()
}
