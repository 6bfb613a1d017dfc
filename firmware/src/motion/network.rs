//! Classifies the activity of a window with a ternary network in flash.

use tercet_core::linear::I8Sym;
use tercet_core::linear::network::{Buffers, LayerSize, Network};
use tercet_core::scalar::Only;

use super::{Codes, Error, FEATURES};

pub mod sizes {
    //! Facts that the build script read in the network's file: the sizes of the memory, and the code to link.
    include!(concat!(env!("OUT_DIR"), "/motion.rs"));
}
use sizes::{LAYERS, LAYOUTS, SIZES};

/// Number of activities that the network distinguishes.
pub const CLASSES: usize = sizes::OUTPUTS;

// A window has as many features as the network has inputs.
const _: () = assert!(sizes::INPUTS == FEATURES);

/// Activities, in the order of the network's outputs and of the recordings' labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Activity {
    /// Standing.
    Standing,
    /// Walking.
    Walking,
    /// Running.
    Running,
    /// Playing badminton.
    Badminton,
}

impl Activity {
    /// All activities, in order.
    pub const ALL: [Self; CLASSES] = [
        Self::Standing,
        Self::Walking,
        Self::Running,
        Self::Badminton,
    ];

    /// Returns its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Standing => "standing",
            Self::Walking => "walking",
            Self::Running => "running",
            Self::Badminton => "badminton",
        }
    }
}

/// Memory that a run needs beside the weights.
#[derive(Debug)]
pub(super) struct Scratch {
    activations: [i8; LayerSize::activations_len(&SIZES)],
    words: [u32; LayerSize::scratch_len(&SIZES)],
}

impl Scratch {
    pub(super) const fn new() -> Self {
        Self {
            activations: [0; LayerSize::activations_len(&SIZES)],
            words: [0; LayerSize::scratch_len(&SIZES)],
        }
    }
}

/// A network of the right shape.
#[derive(Clone, Debug)]
pub(super) struct Classifier<'a> {
    network: Network<'a, LAYERS>,
}

impl<'a> Classifier<'a> {
    /// Reads the file.
    pub(super) fn new(file: &'a [u8]) -> Result<Self, Error> {
        let network = Network::new(file)?;
        let sizes = network.layers().map(|layer| {
            let weights = layer.weights();
            LayerSize::new(weights.layout(), weights.rows(), weights.cols())
        });
        if sizes.eq(SIZES) {
            Ok(Self { network })
        } else {
            Err(Error::Shape)
        }
    }

    /// Returns the activity and the logits, which are exact sums.
    pub(super) fn run(
        &self,
        codes: &Codes,
        scratch: &mut Scratch,
    ) -> Result<(Activity, [i64; CLASSES]), Error> {
        let mut logits = [0; CLASSES];
        let mut buffers = Buffers {
            activations: &mut scratch.activations,
            scratch: &mut scratch.words,
        };
        I8Sym::new(codes)
            .and_then(|x| {
                let engine = &mut Only::<LAYOUTS>;
                self.network.run(engine, x, &mut buffers, &mut logits)
            })
            // Impossible: the memory is sized for these layers.
            .map_err(|_| Error::Shape)?;
        let class = self.network.class(&logits);
        let activity = Activity::ALL.get(class).copied();
        Ok((activity.unwrap_or(Activity::Standing), logits))
    }
}
