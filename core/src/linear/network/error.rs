//! Errors of networks.

use crate::gguf::GgufError;
use crate::linear::LinearError;

error_enum! {
    /// Reason why a file is not a network, or an input was not accepted. Layers count from 0.
    pub enum NetworkError {
        /// The bytes are not a complete GGUF file.
        File {
            /// The reader's error.
            error: GgufError,
        } => "{error}",
        /// A key of the network is missing or has another value.
        Key {
            /// The key after `tercet.network.`.
            key: &'static str,
            /// Description of a valid value.
            expected: &'static str,
        } => "tercet.network.{key} is missing or not {expected}",
        /// A key of a layer is missing or has another value.
        LayerKey {
            /// The layer.
            layer: usize,
            /// The key after the layer's number.
            key: &'static str,
            /// Description of a valid value.
            expected: &'static str,
        } => "tercet.network.{layer}.{key} is missing or not {expected}",
        /// The file has more layers than the network can hold, or none.
        Layers {
            /// Number of layers in the file.
            found: u64,
            /// Largest number of layers.
            max: usize,
        } => "the file has {found} layers; 1 to {max} fit",
        /// A tensor of a layer is missing, or has another type or shape.
        Tensor {
            /// The layer.
            layer: usize,
            /// The tensor's name after the layer's number.
            tensor: &'static str,
            /// Description of a valid tensor.
            expected: &'static str,
        } => "tensor network.{layer}.{tensor} is missing or not {expected}",
        /// The file has a tensor that the layer cannot use.
        Superfluous {
            /// The layer.
            layer: usize,
            /// The tensor's name after the layer's number.
            tensor: &'static str,
        } => "tensor network.{layer}.{tensor} has no place in this layer",
        /// The number of a layer's inputs differs from the number of the previous layer's outputs.
        Width {
            /// The layer, at least 1.
            layer: usize,
            /// Outputs of the previous layer.
            expected: usize,
            /// Inputs of this layer.
            found: usize,
        } => "layer {layer} takes {found} inputs; the layer before gives {expected}",
        /// A layer's weights, bias or multipliers are invalid.
        Layer {
            /// The layer.
            layer: usize,
            /// The reason.
            error: LinearError,
        } => "layer {layer}: {error}",
        /// An input value is NaN or infinite.
        NotFinite {
            /// Lowest index of such a value.
            index: usize,
        } => "input {index} is not finite",
        /// The input, or the buffer for its codes, does not have the first layer's length.
        Input {
            /// The required length.
            expected: usize,
            /// The length given.
            found: usize,
        } => "{found} input values; the first layer takes {expected}",
    }
}
