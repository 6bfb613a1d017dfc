//! What a quantizer refuses.

error_enum! {
    /// Why a group of values could not be quantized or dequantized.
    pub enum QuantError {
        /// There are no values, so no scale.
        Empty => "no values to quantize",
        /// A NaN or an infinity.
        NotFinite {
            /// Its index in the tensor, the lowest one.
            index: u64,
        } => "value {index} is not finite",
        /// A row of activations is not finite, or not after it is normalized.
        RowNotFinite {
            /// Its index, the lowest one.
            row: usize,
        } => "row {row} is not finite once normalized",
        /// A buffer does not fit the shape.
        Length {
            /// The length that the shape asks for.
            expected: usize,
            /// The length given.
            found: usize,
        } => "buffer holds {found} elements where {expected} are needed",
        /// The values do not divide into groups.
        GroupLength {
            /// Number of values.
            len: usize,
            /// Length of a group.
            group_len: usize,
        } => "{len} values do not divide into groups of {group_len}",
        /// There is no such group.
        NoGroup {
            /// The group asked for.
            group: usize,
            /// How many groups there are.
            count: usize,
        } => "group {group} of {count} does not exist",
        /// The ends of a range to quantize are not finite, or are swapped.
        Range => "the range's ends are swapped or not finite",
        /// A percentile outside 1 to 1,000,000 in a million.
        Percentile {
            /// What was asked for.
            ppm: u32,
        } => "a percentile of {ppm} in a million lies outside 1..=1000000",
        /// A code lies outside the format's range.
        CodeRange {
            /// Its index, the lowest one.
            index: u64,
        } => "code {index} is outside the format's range",
        /// A scale does not fit the format's scale type.
        ScaleOverflow {
            /// Index of the group or block.
            group: u64,
        } => "the scale of group {group} overflows its type",
        /// Scratch is too small.
        Scratch {
            /// Elements needed.
            needed: usize,
        } => "scratch of {needed} elements is needed",
    }
}
