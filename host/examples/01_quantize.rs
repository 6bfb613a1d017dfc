//! Quantizes a matrix to int8 and to ternary, and measures what each loses.
//!
//! `cargo run -p tercet-host --example 01_quantize`

use tercet_host::Quantizer;
use tercet_host::quantized::QuantError;

fn main() -> Result<(), QuantError> {
    // 4 rows of 256 weights.
    let weights: Vec<f32> = (0..1024).map(|i| (i as f32 * 0.7).sin()).collect();

    for (name, quantizer, bits) in [
        ("int8", Quantizer::int8(), 8.0),
        ("int4", Quantizer::int4(), 4.0),
        ("ternary", Quantizer::ternary(), 1.6),
    ] {
        // One scale per row; without `per_row` there is one for all weights.
        let quantized = quantizer.per_row(256).quantize(&weights)?;
        let error = quantized.compare(&weights)?;
        println!(
            "{name:8} {bits:3} bits  scales {:.4?}  {error}",
            quantized.scales()
        );
    }

    // A code stands for (code - zero point) * scale.
    let quantized = Quantizer::ternary().per_row(256).quantize(&weights)?;
    println!("first codes {:?}", &quantized.codes()[..8]);
    println!("restored    {:.3?}", &quantized.restore()[..8]);
    Ok(())
}
