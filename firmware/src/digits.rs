//! Reads digits: an integer network and 32 held-out images, both in flash.
//!
//! `tercet network run firmware/data/digits.gguf firmware/data/digits.npy --digest` prints the same digests and
//! classes.

use tercet_core::conformance::Digest;
use tercet_core::gguf::Aligned;
use tercet_core::linear::network::{Buffers, LayerSize, Network, NetworkError};
use tercet_core::linear::{I8Sym, LinearError};
use tercet_core::scalar::Only;

// By value, so that the image has symbols for them and their bytes are counted as data (`firmware/programs.toml`).
static FILE: Aligned<[u8; include_bytes!("../data/digits.gguf").len()]> =
    Aligned(*include_bytes!("../data/digits.gguf"));
static IMAGES: [u8; include_bytes!("../data/digits.npy").len()] =
    *include_bytes!("../data/digits.npy");

mod network {
    //! Facts that the build script read in [`super::FILE`]: the sizes of the memory, and the code to link.
    include!(concat!(env!("OUT_DIR"), "/digits.rs"));
}
use network::{INPUTS, LAYERS, LAYOUTS, OUTPUTS, SIZES};

const COUNT: usize = 32;

/// All RAM of the work, except the stack.
#[derive(Debug)]
pub struct Memory {
    image: [i8; INPUTS],
    sums: [i64; OUTPUTS],
    activations: [i8; LayerSize::activations_len(&SIZES)],
    scratch: [u32; LayerSize::scratch_len(&SIZES)],
}

impl Memory {
    /// Makes it of zeros, so that a static takes no flash.
    pub const fn new() -> Self {
        Self {
            image: [0; INPUTS],
            sums: [0; OUTPUTS],
            activations: [0; LayerSize::activations_len(&SIZES)],
            scratch: [0; LayerSize::scratch_len(&SIZES)],
        }
    }
}

impl Default for Memory {
    fn default() -> Self {
        Self::new()
    }
}

/// The network's result for one image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digit {
    /// Number of the image, from 0.
    pub number: u32,
    /// Digest of its ten logits.
    pub digest: u64,
    /// The class of the largest logit, the lowest one on ties. The class is the digit.
    pub class: u32,
}

/// Reason why nothing was read. The committed files cause none of these.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Error {
    /// The file is no network.
    Network(NetworkError),
    /// The network cannot run on an image.
    Run(LinearError),
}

impl From<NetworkError> for Error {
    fn from(error: NetworkError) -> Self {
        Self::Network(error)
    }
}

impl From<LinearError> for Error {
    fn from(error: LinearError) -> Self {
        Self::Run(error)
    }
}

/// Runs the network on every image, calls `each` after each one, and returns the digest of all logits.
///
/// # Errors
/// Those of [`Network::new`] and [`Network::run`].
pub fn read(memory: &mut Memory, mut each: impl FnMut(Digit)) -> Result<u64, Error> {
    let network = Network::<LAYERS>::new(&FILE.0)?;
    // In an npy file of bytes the data comes last.
    let first = IMAGES.len().saturating_sub(COUNT * INPUTS);
    let images = IMAGES.get(first..).unwrap_or_default();
    let mut all = Digest::new();
    for (number, image) in (0..).zip(images.chunks_exact(INPUTS)) {
        for (code, &byte) in memory.image.iter_mut().zip(image) {
            *code = byte as i8;
        }
        let mut buffers = Buffers {
            activations: &mut memory.activations,
            scratch: &mut memory.scratch,
        };
        I8Sym::new(&memory.image)
            .and_then(|x| network.run(&mut Only::<LAYOUTS>, x, &mut buffers, &mut memory.sums))?;
        let mut one = Digest::new();
        for &sum in &memory.sums {
            one.u64(sum as u64);
            all.u64(sum as u64);
        }
        each(Digit {
            number,
            digest: one.value(),
            class: network.class(&memory.sums) as u32,
        });
    }
    Ok(all.value())
}
