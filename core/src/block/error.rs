//! Errors of the block codecs.

error_enum! {
    /// Reason why values could not be encoded into blocks or decoded from them.
    ///
    /// If there are several errors, the block with the lowest index is reported. After an error, the content of an
    /// output buffer is unspecified.
    pub enum BlockError {
        /// The values do not divide into whole blocks.
        Partial {
            /// Number of values.
            len: usize,
            /// Values per block.
            block: usize,
        } => "{len} values do not divide into blocks of {block}",
        /// A buffer does not fit the number of values or blocks.
        Length {
            /// The required length, in the buffer's elements.
            expected: usize,
            /// The length given.
            found: usize,
        } => "buffer holds {found} elements where {expected} are needed",
        /// The number of bytes does not fit `usize`.
        TooLarge {
            /// Number of values.
            len: usize,
        } => "the bytes of {len} values exceed the address space",
        /// A value is NaN or infinite.
        NotFinite {
            /// Lowest index of such a value.
            index: usize,
        } => "value {index} is not finite",
        /// A block's scale is too large for the format's scale type.
        ScaleOverflow {
            /// Index of the block.
            block: usize,
        } => "the scale of block {block} overflows its type",
        /// A block's minimum is too large for the format's type of minima.
        MinOverflow {
            /// Index of the block.
            block: usize,
        } => "the minimum of block {block} overflows its type",
        /// A block has a scale that is NaN or infinite.
        ScaleNotFinite {
            /// Index of the block.
            block: usize,
        } => "the scale of block {block} is not finite",
        /// A block has a minimum that is NaN or infinite.
        MinNotFinite {
            /// Index of the block.
            block: usize,
        } => "the minimum of block {block} is not finite",
        /// The format has only one rule and accepts no other.
        Rule => "the format takes no ternary rule or scale rule but the default",
        /// The format has no encoder.
        ReadOnly => "the format can be decoded and multiplied, not encoded",
        /// The engine was built without this format; see [`Only`](crate::scalar::Only).
        LeftOut => "the engine was built without this format",
        /// The format is not one of the ternary ones.
        NotTernary => "the format is not ternary",
        /// There are no values, so there is no scale.
        Empty => "no values to quantize",
        /// A tensor's scale is NaN, infinite, or has an invalid sign.
        Scale => "the scale of the tensor is out of range",
        /// A code lies outside the format's range.
        CodeRange {
            /// Lowest index of such a value.
            index: usize,
        } => "code {index} is outside the format's range",
    }
}
