//! Clusters a stream of sensor readings as they come, in 280 bytes of state, and flags readings unlike all before.
//!
//! `cargo run -p tercet-core --example 02_online_clusters`

use tercet_core::Online;

/// A reading further than this from all clusters is unusual: the squared distance of one axis by 40.
const UNUSUAL: u32 = 40 * 40;

fn main() {
    // Eight clusters of six axes. The first eight distinct readings are the seeds.
    let mut clusters = Online::<8, 6>::new();
    for time in 0..200i32 {
        // Something turns about one axis, once in eight readings, and is hit once.
        let angle = time as f32 * 0.79;
        let (sin, cos) = angle.sin_cos();
        let mut reading = [(sin * 50.0) as i8, (cos * 50.0) as i8, 98, 0, 1, -1];
        if time == 150 {
            reading[3] = 90;
        }
        let seen = clusters.observe(&reading);
        if !seen.seed && seen.distance > UNUSUAL {
            println!("at {time}: squared distance {}", seen.distance);
        }
    }
    println!("{} bytes of state", size_of_val(&clusters));
}
