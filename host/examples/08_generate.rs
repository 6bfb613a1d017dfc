//! Continues a text with the bundled ternary model, as microcontrollers do from the same file.
//!
//! `cargo run --release -p tercet-host --example 08_generate [MODEL.gguf] [PROMPT]`

use std::io::{Write, stdout};

use tercet_host::parallel::Threads;
use tercet_host::{Error, LanguageModel};

const NANO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../gpu/models/nano.gguf");

fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().unwrap_or_else(|| NANO.to_owned());
    let prompt = arguments.next().unwrap_or_else(|| "ROMEO:".to_owned());

    let model = LanguageModel::open(path)?;
    print!("{prompt}");
    let asked = model.prompt(&prompt).tokens(110).temperature(0.8).seed(1);
    let written = asked.generate_on(&mut Threads::default(), |text| {
        print!("{text}");
        stdout().flush().is_ok()
    })?;
    println!();
    println!(
        "{} tokens, logits {:016x}",
        written.tokens.len(),
        written.digest
    );
    Ok(())
}
