//! Errors of models.

use crate::block::BlockError;
use crate::gguf::GgufError;
use crate::linear::LinearError;
use crate::quant::QuantError;

error_enum! {
    /// A step of a layer, in the order of execution.
    pub enum Stage {
        /// The norm before attention.
        AttentionNorm => "the norm before attention",
        /// Rotated queries.
        Queries => "the queries",
        /// Rotated keys.
        Keys => "the keys",
        /// Values of attention.
        Values => "the values of attention",
        /// Scores of attention, or its result, or the norm of the result.
        Attention => "the scores of attention, or what it gave",
        /// The norm before the feed-forward network.
        FeedForwardNorm => "the norm before the feed-forward network",
        /// The gated activation, or its norm.
        Gate => "the gated activation",
        /// The norm before the head. Its layer is the number of layers.
        Head => "the norm before the head",
    }
}

error_enum! {
    /// Reason why a file is not a supported model, or a step was not done. Layers count from 0.
    pub enum ModelError {
        /// The bytes are not a complete GGUF file.
        File {
            /// The reader's error.
            error: GgufError,
        } => "{error}",
        /// The architecture is none of `bitnet`, `bitnet-b1.58`, `bitnet-25` and `llama`.
        Architecture => "general.architecture is missing or none of bitnet, bitnet-b1.58, bitnet-25 and llama",
        /// A key of the architecture is missing or has another value.
        Key {
            /// The key after the architecture's name.
            key: &'static str,
            /// Description of a valid value.
            expected: &'static str,
        } => "key <architecture>.{key} is missing or not {expected}",
        /// One of Tercet's own keys has another value.
        OwnKey {
            /// The key.
            key: &'static str,
            /// Description of a valid value.
            expected: &'static str,
        } => "key {key} is not {expected}",
        /// The model has more layers than the caller's slice can hold.
        Layers {
            /// Number of layers in the file.
            found: usize,
            /// Largest number of layers.
            max: usize,
        } => "the model has {found} layers; room is for {max}",
        /// A tensor outside the layers is missing, or has another type or shape.
        Tensor {
            /// Name of the tensor.
            tensor: &'static str,
            /// Description of a valid tensor.
            expected: &'static str,
        } => "tensor {tensor} is missing or not {expected}",
        /// A tensor of a layer is missing, or has another type or shape.
        LayerTensor {
            /// The layer.
            layer: usize,
            /// The tensor's name after `blk.N.`.
            tensor: &'static str,
            /// Description of a valid tensor.
            expected: &'static str,
        } => "tensor blk.{layer}.{tensor} is missing or not {expected}",
        /// The architecture has no such tensor, or it occurs twice.
        Superfluous {
            /// The tensor's number in the file, from 0; [`crate::gguf::Reader::described`] returns its name.
            tensor: u64,
        } => "tensor number {tensor} has no place in this architecture, or comes twice",
        /// The weights of a tensor are invalid.
        Weights {
            /// The tensor's number in the file, from 0.
            tensor: u64,
            /// The reason.
            error: LinearError,
        } => "the weights of tensor number {tensor}: {error}",
        /// A slice of memory is too short.
        Room {
            /// Name of the slice.
            memory: &'static str,
            /// Required number of elements.
            needed: usize,
            /// Number of elements given.
            found: usize,
        } => "{needed} elements of {memory} are needed; there are {found}",
        /// Sizes do not fit this machine's address range.
        TooLarge => "the model is too large for this machine's addresses",
        /// The file is not the one that a build script read.
        OtherFile => "the file is not the one that the program was built for",
        /// The engine was built without something that the model asks for; see [`ModelParts`](super::ModelParts) and
        /// [`Only`](crate::scalar::Only).
        LeftOut => "the engine was built without something that the model asks for",
        /// A sum over the cache could exceed 64 bits.
        CacheRange {
            /// Largest number of positions for a cache of this type.
            positions: u32,
        } => "a cache of this type takes {positions} positions; take another type or a window",
        /// A token is not in the vocabulary.
        Token {
            /// The token's row.
            row: usize,
            /// The token.
            token: u32,
        } => "row {row} has token {token}, which the vocabulary lacks",
        /// A row refers to a sequence that does not exist.
        NoSequence {
            /// The row.
            row: usize,
        } => "row {row} names a sequence that is not there",
        /// A sequence has reached the end of its context.
        Context {
            /// The sequence.
            sequence: usize,
            /// Number of its positions.
            positions: u32,
        } => "sequence {sequence} has no room for more than {positions} tokens; a window has no end",
        /// A sequence for training does not attend to every position.
        Windowed {
            /// The sequence.
            sequence: usize,
        } => "sequence {sequence} has a window; training attends to every position",
        /// One step has more rows of a sequence than its window has space for.
        Chunk {
            /// The sequence.
            sequence: usize,
            /// Largest number of rows.
            rows: u32,
        } => "sequence {sequence} takes {rows} rows in one step at most",
        /// No page of the cache is free.
        CacheFull {
            /// The sequence that needs a page.
            sequence: usize,
        } => "the cache has no free page for sequence {sequence}",
        /// A value of a row is NaN or infinite.
        NotFinite {
            /// The row's sequence.
            sequence: usize,
            /// The layer.
            layer: usize,
            /// The step.
            step: Stage,
            /// The row's position in its sequence.
            position: u32,
        } => "position {position} of sequence {sequence}, layer {layer}: not finite: {step}",
        /// A sequence had a value that was not finite before.
        Ended {
            /// The sequence.
            sequence: usize,
        } => "sequence {sequence} has ended, since something of it was not finite; reset it",
        /// The sequence had a value that was not finite before. It can be reset, but not truncated.
        Stopped => "the sequence has ended, since something of it was not finite; it can only be reset",
        /// A ring cannot be truncated that far.
        Overwritten {
            /// The position with which it was to continue.
            position: u32,
        } => "keys and values that position {position} attends to were overwritten by later ones",
        /// A sampler cannot draw from these logits.
        Logits => "no token can be drawn: no logit is a number, there is too little scratch, or the sampler's numbers are out of their ranges",
        /// A cache cannot have written these codes and scales.
        Stored {
            /// Description of valid ones.
            expected: &'static str,
        } => "stored keys or values are not {expected}",
        /// A layer's product failed.
        Linear {
            /// The reason.
            error: LinearError,
        } => "{error}",
        /// A row of an embedding could not be decoded.
        Block {
            /// The reason.
            error: BlockError,
        } => "{error}",
        /// A quantizer failed.
        Quantize {
            /// The reason.
            error: QuantError,
        } => "{error}",
    }
}

impl From<LinearError> for ModelError {
    fn from(error: LinearError) -> Self {
        Self::Linear { error }
    }
}

impl From<BlockError> for ModelError {
    fn from(error: BlockError) -> Self {
        Self::Block { error }
    }
}

impl From<QuantError> for ModelError {
    fn from(error: QuantError) -> Self {
        Self::Quantize { error }
    }
}
