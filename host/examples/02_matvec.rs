//! Multiplies a ternary matrix by vectors: 1.6 bits per weight, exact integer sums, the same result on every machine.
//!
//! `cargo run --release -p tercet-host --example 02_matvec`

use std::time::Instant;

use tercet_host::Weights;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (rows, cols) = (1024, 4096);
    let floats: Vec<f32> = (0..rows * cols).map(|i| (i as f32 * 0.37).sin()).collect();
    let x: Vec<f32> = (0..cols).map(|i| (i as f32 * 0.11).cos()).collect();

    let weights = Weights::ternary(&floats, rows, cols)?;
    println!(
        "{rows} x {cols}: {} bytes as floats, {} as ternary weights",
        size_of_val(&floats[..]),
        weights.size()
    );

    let start = Instant::now();
    let y = weights.matvec(&x)?;
    println!("one product took {:?}", start.elapsed());

    // The product of the floats, for comparison.
    let exact = |row: usize| -> f32 {
        let row = &floats[row * cols..][..cols];
        row.iter().zip(&x).map(|(w, x)| w * x).sum()
    };
    for row in [0, 1, rows - 1] {
        println!("row {row:4}: {:8.3}, in floats {:8.3}", y[row], exact(row));
    }
    Ok(())
}
