//! Clusters the bundled images of handwritten digits, and names the clusters of images it has not seen.
//!
//! `cargo run --release -p tercet-host --example 03_cluster [FILE.npy|FILE.csv]`

use tercet_host::points::{Points, ReadOptions, Values};
use tercet_host::{Error, KMeans};

const DIGITS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../gpu/demo/images.npy");

fn main() -> Result<(), Error> {
    let path = std::env::args().nth(1).unwrap_or_else(|| DIGITS.to_owned());
    let points = Points::open(&path, &ReadOptions::default())?;
    println!("{} points of {} values", points.rows(), points.dims());

    let found = KMeans::new(10)
        .restarts(4)
        .on_step(|step, inertia| {
            if step.step == 1 {
                println!("restart {}: inertia {inertia} after one step", step.restart);
            }
        })
        .fit(&points)?;
    println!("inertia {}", found.inertia);
    println!("silhouette {:.4}", found.silhouette()?.score);
    for (number, cluster) in found.clusters.iter().enumerate() {
        println!("cluster {number}: {} points", cluster.count);
    }

    // Points that were not clustered belong to the nearest centroid. A centroid belongs to itself.
    let centroids = Values::F32(found.centroids.clone());
    let centroids = Points::from_rows(points.dims(), centroids)?;
    println!("centroids are in {:?}", found.predict(&centroids)?);
    Ok(())
}
