//! Writes a model of random weights, for trying other programs on: `tiny_model bitnet TYPE SEED FILE`, `tiny_model llama SEED FILE`.
//!
//! TYPE is tq1_0, tq2_0, q2_0, f16 or f32; the weights of a seed are the same in each. A file that exists is replaced.

use std::path::Path;

use tercet_core::block::Format;
use tercet_host::DType;
use tercet_host::language::tiny;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let bytes = match arguments[..] {
        ["bitnet", name, seed, path] => {
            let dtype = match name {
                "f16" => DType::F16,
                "f32" => DType::F32,
                other => Format::from_name(other)
                    .map(DType::Block)
                    .ok_or("no such type")?,
            };
            tiny::bitnet(Path::new(path), tiny::BITNET, seed.parse()?, dtype, true)?
        }
        ["llama", seed, path] => tiny::llama(Path::new(path), tiny::LLAMA, seed.parse()?, true)?,
        _ => return Err("tiny_model bitnet TYPE SEED FILE, or tiny_model llama SEED FILE".into()),
    };
    println!("{bytes} bytes");
    Ok(())
}
