//! Runs an integer network from its GGUF file, where it lies in flash, in buffers whose sizes are constants.
//!
//! `cargo run -p tercet-core --example 04_network_in_flash`

use tercet_core::gguf::Aligned;
use tercet_core::linear::network::{Buffers, LayerSize};
use tercet_core::{I8Sym, Layout, Network, Scalar};

static FILE: &Aligned<[u8]> = &Aligned(*include_bytes!("../../firmware/data/digits.gguf"));
static IMAGES: &[u8] = include_bytes!("../../firmware/data/digits.npy");

/// The layers of the file: the memory that is set aside depends on them.
const SIZES: [LayerSize; 2] = [
    LayerSize::new(Layout::TernaryLanes, 64, 256),
    LayerSize::new(Layout::Int8, 10, 64),
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut activations = [0; LayerSize::activations_len(&SIZES)];
    let mut scratch = [0; LayerSize::scratch_len(&SIZES)];
    let network = Network::<2>::new(&FILE.0)?;

    // 32 images of 256 values end the npy file.
    let images = &IMAGES[IMAGES.len() - 32 * 256..];
    for image in images.chunks_exact(256) {
        let image: [i8; 256] = core::array::from_fn(|i| image[i] as i8);
        let mut buffers = Buffers {
            activations: &mut activations,
            scratch: &mut scratch,
        };
        let mut logits = [0; 10];
        let x = I8Sym::new(&image)?;
        network.run(&mut Scalar, x, &mut buffers, &mut logits)?;
        print!("{} ", network.class(&logits));
    }
    println!();
    Ok(())
}
