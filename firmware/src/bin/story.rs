//! Writes a text with the bundled language model, and prints its costs: see `tercet_firmware::story`.

#![no_std]
#![no_main]

use core::cell::Cell;

use static_cell::ConstStaticCell;
use tercet_core::model::ModelError;
use tercet_firmware::clock::Counter;
use tercet_firmware::story::{self, Error, Memory, Told};
use tercet_firmware::text::Text;
use tercet_firmware::{entry, exit, no_panic, report, stack};

no_panic!();

static MEMORY: ConstStaticCell<Memory> = ConstStaticCell::new(Memory::new());

/// The token whose instructions are printed. It attends to this many positions, including itself.
const COUNTED: u32 = 64;

#[entry]
fn main() -> ! {
    let (Some(counter), Some(memory)) = (Counter::start(), MEMORY.try_take()) else {
        exit::failure()
    };
    let mut meter = stack::Meter::start();
    let mut deepest = 0;
    // Instructions of all tokens, and of the one that is printed; number of tokens.
    let (mut all, mut counted, mut tokens) = (0u64, 0u32, 0u32);
    let own = Cell::new(0u32);
    let written = story::write(
        memory,
        &mut |work| {
            let instructions = counter.count(work);
            deepest = meter.lap().max(deepest);
            own.set(own.get().saturating_add(instructions));
        },
        &mut |told| match told {
            Told::Text(bytes) => Text::new().bytes(bytes),
            Told::Taken(taken) => {
                let instructions = own.replace(0);
                all = all.saturating_add(instructions.into());
                tokens = taken;
                if taken == COUNTED {
                    counted = instructions;
                }
            }
        },
    );
    let digest = match written {
        Ok(digest) => digest,
        Err(error) => {
            let text = Text::error().str("nothing is written: ").str(error.text());
            if let Error::Model(ModelError::Room { needed, found, .. }) = error {
                let text = text.str(": needed ").number(needed as u32);
                text.str(", there are ").number(found as u32).end();
            } else {
                text.end();
            }
            exit::failure()
        }
    };
    Text::new().end();
    Text::new().str("logits ").hex(digest).end();
    let mean = all.checked_div(tokens.into()).unwrap_or(0) as u32;
    for (name, instructions) in [("token_64", counted), ("mean", mean)] {
        let line = Text::new().str("# instructions ").str(name);
        line.str(" ").number(instructions).end();
    }
    // Tokens in 100 million instructions, from the mean.
    let pace = 100_000_000u32.checked_div(mean).unwrap_or(0);
    let line = Text::new().str("# ").number(pace);
    line.str(" tokens in 100 million instructions").end();
    report::footprint(size_of::<Memory>(), deepest);
    exit::success()
}
