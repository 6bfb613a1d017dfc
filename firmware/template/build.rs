//! Writes the sizes of the network as constants, and links for a microcontroller.

use std::{env, fs, path::Path};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=net.gguf");
    println!("cargo:rerun-if-changed=memory.x");
    // cortex-m-rt's linker script, which includes `memory.x`; without alignment to the pages of an operating system.
    println!("cargo:rustc-link-arg-bins=-Tlink.x");
    println!("cargo:rustc-link-arg-bins=--nmagic");
    println!(
        "cargo:rustc-link-search={}",
        env::var("CARGO_MANIFEST_DIR")?
    );
    let sizes = tercet_core::build_script::network(&fs::read("net.gguf")?)?;
    fs::write(Path::new(&env::var("OUT_DIR")?).join("net.rs"), sizes)?;
    Ok(())
}
