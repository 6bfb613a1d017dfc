//! Quantizes the weights in a safetensors file to a GGUF file, and measures the error of each tensor.
//!
//! `cargo run --release -p tercet-host --example 05_files [IN.safetensors OUT.gguf]`

use std::path::PathBuf;

use tercet_core::{Format, Rule};
use tercet_host::convert::Target;
use tercet_host::parallel::Threads;
use tercet_host::{Error, QuantizeOptions, TensorFile, quantize};

const DIGITS: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../gpu/demo/digits.safetensors"
);

fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1).map(PathBuf::from);
    let input = arguments.next().unwrap_or_else(|| DIGITS.into());
    let temporary = std::env::temp_dir().join(format!("tercet-05-{}.gguf", std::process::id()));
    let output = arguments.next();

    let model = TensorFile::open(&input)?;
    let mut options = QuantizeOptions::new(Target::Blocks(Format::Tq2_0));
    // The ternary codes of least error; the default is the rule of ggml's reference, with its bytes.
    options.rule = Some(Rule::Optimal);
    // `()` listens to no progress. The output appears whole or not at all.
    let path = output.as_ref().unwrap_or(&temporary);
    let report = quantize(&mut Threads::default(), &model, &options, path, &())?;
    for tensor in &report.tensors {
        let error = tensor.relative_error.unwrap_or(0.0);
        println!(
            "{:20} {:8} relative error {error:.5}",
            tensor.name, tensor.to
        );
    }
    println!("{:.3} bits per weight", report.bits_per_weight);
    if output.is_none() {
        std::fs::remove_file(&temporary).ok();
    }
    Ok(())
}
