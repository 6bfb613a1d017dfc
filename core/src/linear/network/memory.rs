//! What a run needs beside the weights.

use crate::linear::Layout;

/// The memory of a run; what it holds before does not matter, and what it holds afterwards means nothing.
#[derive(Debug)]
pub struct Buffers<'b> {
    /// Outputs of hidden layers: at least [`Network::activations_len`](super::Network::activations_len) of them; of a batch
    /// [`Network::activations_len_many`](super::Network::activations_len_many).
    pub activations: &'b mut [i8],
    /// Words for the kernels: at least [`Network::scratch_len`](super::Network::scratch_len) of them, or as many as
    /// [`Network::scratch_len_on`](super::Network::scratch_len_on) says of another engine; more than
    /// [`Network::fast_scratch_len`](super::Network::fast_scratch_len) are not used.
    pub scratch: &'b mut [u32],
}

/// The size of a layer, for memory that is set aside before any file is read.
///
/// ```
/// use tercet_core::linear::{Layout, network::LayerSize};
///
/// const SIZES: [LayerSize; 2] = [
///     LayerSize::new(Layout::TernaryLanes, 64, 256),
///     LayerSize::new(Layout::Int8, 10, 64),
/// ];
/// static ACTIVATIONS: [i8; LayerSize::activations_len(&SIZES)] = [0; 64];
/// static SCRATCH: [u32; LayerSize::scratch_len(&SIZES)] = [0; LayerSize::scratch_len(&SIZES)];
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct LayerSize {
    /// How its weights lie.
    pub layout: Layout,
    /// Outputs.
    pub rows: usize,
    /// Inputs.
    pub cols: usize,
}

impl LayerSize {
    /// A layer of `rows` outputs and `cols` inputs.
    pub const fn new(layout: Layout, rows: usize, cols: usize) -> Self {
        Self { layout, rows, cols }
    }

    /// Bytes of activations that a network of these layers needs: the outputs of two hidden layers that follow one another, the
    /// most of any, since one is read while the other is written. The last layer's are the caller's.
    pub const fn activations_len(layers: &[Self]) -> usize {
        let (mut most, mut before) = (0, 0);
        let mut rest = layers;
        while let [layer, after @ ..] = rest {
            if after.is_empty() {
                break;
            }
            let both = before + layer.rows;
            if both > most {
                most = both;
            }
            before = layer.rows;
            rest = after;
        }
        most
    }

    /// As [`LayerSize::activations_len`], of a batch of so many points: as many times that, or `usize::MAX` where it does not fit.
    ///
    /// Its scratch is that of one point.
    pub const fn activations_len_many(layers: &[Self], points: usize) -> usize {
        Self::activations_len(layers).saturating_mul(points)
    }

    /// Words of scratch that a network of these layers needs: the most of any, by [`Layout::scratch_len`].
    pub const fn scratch_len(layers: &[Self]) -> usize {
        Self::most_scratch(layers, false)
    }

    /// The most words of scratch that a network of these layers makes use of, by [`Layout::fast_scratch_len`].
    pub const fn fast_scratch_len(layers: &[Self]) -> usize {
        Self::most_scratch(layers, true)
    }

    const fn most_scratch(layers: &[Self], fast: bool) -> usize {
        let mut most = 0;
        let mut rest = layers;
        while let [layer, after @ ..] = rest {
            let words = match fast {
                true => layer.layout.fast_scratch_len(layer.rows, layer.cols),
                false => layer.layout.scratch_len(layer.rows, layer.cols),
            };
            if words > most {
                most = words;
            }
            rest = after;
        }
        most
    }
}
