//! Makes an integer network for a microcontroller from float weights, and runs it here to the same bits.
//!
//! `cargo run --release -p tercet-host --features network --example 07_network`

use tercet_core::Layout;
use tercet_host::network::{BuildOptions, NetworkFile, build};
use tercet_host::parallel::Threads;
use tercet_host::points::{Points, ReadOptions};
use tercet_host::{Error, TensorFile};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../firmware/data");

fn main() -> Result<(), Error> {
    // A classifier of motions: 18 features, 32 hidden values, 4 classes. Recorded features fix the activations' scales.
    let model = TensorFile::open(format!("{FOLDER}/motion.safetensors"))?;
    let recorded = format!("{FOLDER}/motion-calibrate.npy");
    let recorded = Points::open(&recorded, &ReadOptions::default())?;

    // `hidden.weight` in ternary lanes with a ReLU behind it, `head.weight` in int8.
    let layers = vec!["hidden:relu".parse()?, "head:int8".parse()?];
    let options = BuildOptions::new(layers, Layout::TernaryLanes);
    let threads = &mut Threads::default();
    let built = build(threads, &model, &options, &recorded, &())?;
    println!("{} bytes of flash", built.bytes.len());

    // What a microcontroller reads from its flash, run here.
    let network = NetworkFile::from_bytes("motion.gguf", built.bytes)?;
    let answers = network.run(threads, &recorded)?;
    println!(
        "the first windows are of class {:?}",
        &answers.classes[..10]
    );
    Ok(())
}
