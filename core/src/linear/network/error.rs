//! What a network refuses.

use crate::gguf::GgufError;
use crate::linear::LinearError;

error_enum! {
    /// Why a file is no network, or an input was not taken. Layers count from 0.
    pub enum NetworkError {
        /// The bytes are no whole GGUF file.
        File {
            /// What the reader says.
            error: GgufError,
        } => "{error}",
        /// A key of the network is missing or holds something else.
        Key {
            /// The key behind `tercet.network.`.
            key: &'static str,
            /// What it should be.
            expected: &'static str,
        } => "tercet.network.{key} is missing or not {expected}",
        /// A key of a layer is missing or holds something else.
        LayerKey {
            /// The layer.
            layer: usize,
            /// The key behind the layer's number.
            key: &'static str,
            /// What it should be.
            expected: &'static str,
        } => "tercet.network.{layer}.{key} is missing or not {expected}",
        /// There are more layers than the network has room for, or none.
        Layers {
            /// How many the file has.
            found: u64,
            /// How many there may be.
            max: usize,
        } => "the file has {found} layers; 1 to {max} fit",
        /// A tensor of a layer is missing, or has another type or shape.
        Tensor {
            /// The layer.
            layer: usize,
            /// The tensor's name behind the layer's number.
            tensor: &'static str,
            /// What it should be.
            expected: &'static str,
        } => "tensor network.{layer}.{tensor} is missing or not {expected}",
        /// A tensor is there that the layer has no use for.
        Superfluous {
            /// The layer.
            layer: usize,
            /// The tensor's name behind the layer's number.
            tensor: &'static str,
        } => "tensor network.{layer}.{tensor} has no place in this layer",
        /// A layer takes another number of inputs than the one before gives outputs.
        Width {
            /// The layer, at least 1.
            layer: usize,
            /// Outputs of the layer before.
            expected: usize,
            /// Inputs of this one.
            found: usize,
        } => "layer {layer} takes {found} inputs; the layer before gives {expected}",
        /// A layer's weights, bias or multipliers are refused.
        Layer {
            /// The layer.
            layer: usize,
            /// Why.
            error: LinearError,
        } => "layer {layer}: {error}",
        /// An input value is a NaN or an infinity.
        NotFinite {
            /// Its index, the lowest one.
            index: usize,
        } => "input {index} is not finite",
        /// The input, or where its codes go, has another length than the first layer takes.
        Input {
            /// The length needed.
            expected: usize,
            /// The length given.
            found: usize,
        } => "{found} input values; the first layer takes {expected}",
    }
}
