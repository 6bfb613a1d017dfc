//! What the block codecs refuse.

error_enum! {
    /// Why values could not be put into blocks or taken out of them.
    ///
    /// Where several things are wrong the block with the lowest index is named; what an output buffer holds
    /// after an error is unspecified.
    pub enum BlockError {
        /// The values do not divide into whole blocks.
        Partial {
            /// Number of values.
            len: usize,
            /// Values in a block.
            block: usize,
        } => "{len} values do not divide into blocks of {block}",
        /// A buffer does not fit the number of values or blocks.
        Length {
            /// The length needed, in the buffer's elements.
            expected: usize,
            /// The length given.
            found: usize,
        } => "buffer holds {found} elements where {expected} are needed",
        /// The number of bytes does not fit `usize`.
        TooLarge {
            /// Number of values.
            len: usize,
        } => "the bytes of {len} values exceed the address space",
        /// A NaN or an infinity among the values.
        NotFinite {
            /// Its index, the lowest one.
            index: usize,
        } => "value {index} is not finite",
        /// A block's scale is too large for the format's scale type.
        ScaleOverflow {
            /// Index of the block.
            block: usize,
        } => "the scale of block {block} overflows its type",
        /// A block's minimum is too large for the format's type of it.
        MinOverflow {
            /// Index of the block.
            block: usize,
        } => "the minimum of block {block} overflows its type",
        /// A block holds a scale that is NaN or infinite.
        ScaleNotFinite {
            /// Index of the block.
            block: usize,
        } => "the scale of block {block} is not finite",
        /// A block holds a minimum that is NaN or infinite.
        MinNotFinite {
            /// Index of the block.
            block: usize,
        } => "the minimum of block {block} is not finite",
        /// The format has one rule of its own and takes no other.
        Rule => "the format takes no ternary rule or scale rule but the default",
        /// The format is read only: there is no encoder for it.
        ReadOnly => "the format can be decoded and multiplied, not encoded",
        /// The format is not one of the ternary ones.
        NotTernary => "the format is not ternary",
        /// There are no values, so no scale.
        Empty => "no values to quantize",
        /// A tensor's scale is NaN, infinite, or of a sign that it cannot have.
        Scale => "the scale of the tensor is out of range",
        /// A code lies outside the format's range.
        CodeRange {
            /// Index of the value, the lowest one.
            index: usize,
        } => "code {index} is outside the format's range",
    }
}
