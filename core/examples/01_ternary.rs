//! Quantizes weights to ternary and int8 in the caller's memory, as firmware does: no heap, no std, no panic.
//!
//! `cargo run -p tercet-core --example 01_ternary`

use tercet_core::quant::{Codes, QuantError, dequantize, int8, ternary};
use tercet_core::{Groups, Method, Rule, ScaleRule, Tensor, quantize};

fn main() -> Result<(), QuantError> {
    // Two rows of four weights, one scale each.
    let weights = [0.9f32, -0.1, 0.4, -1.1, 0.2, 0.0, -0.3, 0.25];
    let groups = Groups::rows(2, 4)?;
    let (mut codes, mut scales) = ([0i8; 8], [0f32; 2]);

    // −1, 0 and +1 with the least squared error that exists.
    let method = Method::ternary(Rule::Optimal, ScaleRule::Rule);
    let mut tensor = Tensor::new(&weights, groups, &mut codes, &mut scales, &mut [])?;
    quantize(&mut tensor, method, &mut [])?;
    println!("ternary {codes:?} {scales:?}");

    let mut restored = [0.0; 8];
    let quantized = Codes {
        groups,
        codes: &codes,
        scales: &scales,
        zero_points: &[],
    };
    dequantize(quantized, ternary::RANGE, &mut restored)?;
    println!("restored {restored:?}");

    // The same tensor in int8.
    let mut tensor = Tensor::new(&weights, groups, &mut codes, &mut scales, &mut [])?;
    int8::symmetric(&mut tensor)?;
    println!("int8 {codes:?} {scales:?}");
    Ok(())
}
