//! Takes buffers from a fixed pool and gives them back: memory that is never fragmented and knows how full it was.
//!
//! `cargo run -p tercet-core --example 03_pools`

use tercet_core::BlockPool;
use tercet_core::pool::Block;

// Four blocks of 64 bytes; in firmware a static.
type Windows = BlockPool<64, 4>;

fn main() {
    let pool = Windows::new();
    let mut held: Vec<Block<'_, [i8; 48], Windows>> = Vec::new();
    for number in 0..5 {
        // A full pool gives the value back.
        match pool.alloc([number; 48]) {
            Ok(window) => held.push(window),
            Err(window) => println!("no room for window {}", window[0]),
        }
    }
    // A block that is dropped goes back to its pool.
    held.truncate(1);
    let stats = pool.stats();
    println!("{} in use, {} at most", stats.in_use, stats.high_water);
}
