//! Finds the nearest of 10,000 vectors to a query by cosine, from int8 codes.
//!
//! `cargo run --release -p tercet-host --example 04_search`

use tercet_core::number::Random;
use tercet_host::{Error, Index};

const DIMS: usize = 64;

fn main() -> Result<(), Error> {
    let mut random = Random::new(1);
    let mut value = || random.below(2001) as f32 / 1000.0 - 1.0;
    let rows: Vec<f32> = (0..10_000 * DIMS).map(|_| value()).collect();
    let index = Index::cosine(&rows, DIMS)?;

    // Row 1234 with some noise.
    let row = &rows[1234 * DIMS..][..DIMS];
    let query: Vec<f32> = row.iter().map(|x| x + value() * 0.3).collect();
    for hit in index.nearest(&query, 3)? {
        println!("row {:4}, cosine {:.4}", hit.index, hit.score);
    }
    Ok(())
}
