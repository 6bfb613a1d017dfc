//! What a model refuses.

use crate::block::BlockError;
use crate::gguf::GgufError;
use crate::linear::LinearError;
use crate::quant::QuantError;

error_enum! {
    /// A step of a layer, in the order in which they are done.
    pub enum Step {
        /// The norm before attention.
        AttentionNorm => "the norm before attention",
        /// Rotated queries.
        Queries => "the queries",
        /// Rotated keys.
        Keys => "the keys",
        /// Values of attention.
        Values => "the values of attention",
        /// Scores of attention, or what it gave, or the norm of that.
        Attention => "the scores of attention, or what it gave",
        /// The norm before the feed-forward network.
        FeedForwardNorm => "the norm before the feed-forward network",
        /// The gated activation, or its norm.
        Gate => "the gated activation",
        /// The norm before the head, whose layer is the number of layers.
        Head => "the norm before the head",
    }
}

error_enum! {
    /// Why a file is no model that is run, or a step was not taken. Layers count from 0.
    pub enum ModelError {
        /// The bytes are no whole GGUF file.
        File {
            /// What the reader says.
            error: GgufError,
        } => "{error}",
        /// The architecture is none of `bitnet`, `bitnet-b1.58`, `bitnet-25` and `llama`.
        Architecture => "general.architecture is missing or none of bitnet, bitnet-b1.58, bitnet-25 and llama",
        /// A key of the architecture is missing or holds something else.
        Key {
            /// The key behind the architecture's name.
            key: &'static str,
            /// What it should be.
            expected: &'static str,
        } => "key <architecture>.{key} is missing or not {expected}",
        /// A key of Tercet's own holds something else.
        OwnKey {
            /// The key.
            key: &'static str,
            /// What it should be.
            expected: &'static str,
        } => "key {key} is not {expected}",
        /// There are more layers than the caller's slice has room for.
        Layers {
            /// How many the file has.
            found: usize,
            /// How many there may be.
            max: usize,
        } => "the model has {found} layers; room is for {max}",
        /// A tensor that is not of a layer is missing, or has another type or shape.
        Tensor {
            /// Its name.
            tensor: &'static str,
            /// What it should be.
            expected: &'static str,
        } => "tensor {tensor} is missing or not {expected}",
        /// A tensor of a layer is missing, or has another type or shape.
        LayerTensor {
            /// The layer.
            layer: usize,
            /// Its name behind `blk.N.`.
            tensor: &'static str,
            /// What it should be.
            expected: &'static str,
        } => "tensor blk.{layer}.{tensor} is missing or not {expected}",
        /// A tensor has no place in the architecture, or comes twice.
        Superfluous {
            /// Its number in the file, from 0; [`crate::gguf::Reader::described`] tells its name.
            tensor: u64,
        } => "tensor number {tensor} has no place in this architecture, or comes twice",
        /// The weights of a tensor are refused.
        Weights {
            /// Its number in the file, from 0.
            tensor: u64,
            /// Why.
            error: LinearError,
        } => "the weights of tensor number {tensor}: {error}",
        /// A memory has too little room.
        Room {
            /// Which one.
            memory: &'static str,
            /// Elements that are needed.
            needed: usize,
            /// Elements that are there.
            found: usize,
        } => "{needed} elements of {memory} are needed; there are {found}",
        /// Sizes do not fit this machine's addresses.
        TooLarge => "the model is too large for this machine's addresses",
        /// A sum of the cache could leave 64 bits.
        CacheRange {
            /// The most positions that a cache of this type takes.
            positions: u32,
        } => "a cache of this type takes {positions} positions; take another type or a window",
        /// A token is not in the vocabulary.
        Token {
            /// The row that has it.
            row: usize,
            /// The token.
            token: u32,
        } => "row {row} has token {token}, which the vocabulary lacks",
        /// A row names a sequence that is not there.
        NoSequence {
            /// The row.
            row: usize,
        } => "row {row} names a sequence that is not there",
        /// A sequence is at the end of its context.
        Context {
            /// The sequence.
            sequence: usize,
            /// Positions that it has.
            positions: u32,
        } => "sequence {sequence} has no room for more than {positions} tokens; a window has no end",
        /// A sequence that is to be trained on does not attend to every position.
        Windowed {
            /// The sequence.
            sequence: usize,
        } => "sequence {sequence} has a window; training attends to every position",
        /// More rows of a sequence in one step than its window has room for.
        Chunk {
            /// The sequence.
            sequence: usize,
            /// The most rows.
            rows: u32,
        } => "sequence {sequence} takes {rows} rows in one step at most",
        /// No page of the cache is free.
        CacheFull {
            /// The sequence that asked for one.
            sequence: usize,
        } => "the cache has no free page for sequence {sequence}",
        /// Something of a row is a NaN or an infinity.
        NotFinite {
            /// The row's sequence.
            sequence: usize,
            /// The layer.
            layer: usize,
            /// The step.
            step: Step,
            /// The row's position in its sequence.
            position: u32,
        } => "position {position} of sequence {sequence}, layer {layer}: not finite: {step}",
        /// A sequence that came to something not finite before.
        Ended {
            /// The sequence.
            sequence: usize,
        } => "sequence {sequence} has ended, since something of it was not finite; reset it",
        /// The sequence came to something not finite before; it can be forgotten, but not cut back.
        Stopped => "the sequence has ended, since something of it was not finite; it can only be reset",
        /// A ring cannot be cut back so far.
        Overwritten {
            /// The position that it was to go on with.
            position: u32,
        } => "keys and values that position {position} attends to were overwritten by later ones",
        /// A sampler draws none of these logits.
        Logits => "no token can be drawn: no logit is a number, there is too little scratch, or the sampler's numbers are out of their ranges",
        /// Codes and scales are not such as a cache keeps.
        Stored {
            /// What they should be.
            expected: &'static str,
        } => "stored keys or values are not {expected}",
        /// A layer's product was refused.
        Linear {
            /// Why.
            error: LinearError,
        } => "{error}",
        /// A row of an embedding was refused.
        Block {
            /// Why.
            error: BlockError,
        } => "{error}",
        /// A quantizer refused.
        Quantize {
            /// Why.
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
