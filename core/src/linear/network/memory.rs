//! Memory that a run needs besides the weights.

use crate::linear::Layout;

/// Memory of a run. Its previous content does not matter, and its content afterwards has no meaning.
#[derive(Debug)]
pub struct Buffers<'b> {
    /// Outputs of hidden layers: at least [`Network::activations_len`](super::Network::activations_len) elements, or
    /// [`Network::activations_len_many`](super::Network::activations_len_many) for a batch.
    pub activations: &'b mut [i8],
    /// Words for the kernels: at least [`Network::scratch_len`](super::Network::scratch_len), or
    /// [`Network::scratch_len_on`](super::Network::scratch_len_on) for another engine. Kernels use at most
    /// [`Network::fast_scratch_len`](super::Network::fast_scratch_len) words.
    pub scratch: &'b mut [u32],
}

/// Size of a layer, for memory that is reserved before a file is read.
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
    /// Memory layout of its weights.
    pub layout: Layout,
    /// Number of outputs.
    pub rows: usize,
    /// Number of inputs.
    pub cols: usize,
}

impl LayerSize {
    /// Creates the size of a layer of `rows` outputs and `cols` inputs.
    pub const fn new(layout: Layout, rows: usize, cols: usize) -> Self {
        Self { layout, rows, cols }
    }

    /// Returns the number of bytes of activations that a network of these layers needs. This is the largest sum of
    /// the outputs of two consecutive hidden layers, since one is read while the other is written. The last layer's
    /// outputs are in the caller's buffer.
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

    /// Like [`LayerSize::activations_len`], for a batch of that many points: the product, or `usize::MAX` if it does
    /// not fit.
    ///
    /// The scratch for a batch is that for one point.
    pub const fn activations_len_many(layers: &[Self], points: usize) -> usize {
        Self::activations_len(layers).saturating_mul(points)
    }

    /// Returns the number of words of scratch that a network of these layers needs: the largest
    /// [`Layout::scratch_len`].
    pub const fn scratch_len(layers: &[Self]) -> usize {
        Self::most_scratch(layers, false)
    }

    /// Returns the largest number of words of scratch that a network of these layers uses, by
    /// [`Layout::fast_scratch_len`].
    pub const fn fast_scratch_len(layers: &[Self]) -> usize {
        Self::most_scratch(layers, true)
    }

    /// Returns the bytes that a run of one point needs: its codes, the [`Buffers`] and the resulting sums; the largest
    /// `usize` if there are more. The weights stay in the file.
    ///
    /// ```
    /// use tercet_core::linear::{Layout, network::LayerSize};
    ///
    /// let layers = [LayerSize::new(Layout::Int8, 64, 256), LayerSize::new(Layout::Int8, 10, 64)];
    /// // Codes, hidden outputs, the widened codes in scratch, and a sum of 64 bits per output.
    /// assert_eq!(LayerSize::bytes(&layers), 256 + 64 + 256 * 2 + 10 * 8);
    /// ```
    pub const fn bytes(layers: &[Self]) -> usize {
        let ([first, ..], [.., last]) = (layers, layers) else {
            return 0;
        };
        let codes = first.cols.saturating_add(Self::activations_len(layers));
        let words = Self::scratch_len(layers).saturating_mul(size_of::<u32>());
        let sums = last.rows.saturating_mul(size_of::<i64>());
        codes.saturating_add(words).saturating_add(sums)
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
