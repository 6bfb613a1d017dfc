//! Errors of quantizers.

error_enum! {
    /// Reason why a group of values could not be quantized or dequantized.
    pub enum QuantError {
        /// There are no values, so there is no scale.
        Empty => "no values to quantize",
        /// A value is NaN or infinite.
        NotFinite {
            /// Lowest index of such a value in the tensor.
            index: u64,
        } => "value {index} is not finite",
        /// A row of activations is not finite, before or after it is normalized.
        RowNotFinite {
            /// Lowest index of such a row.
            row: usize,
        } => "row {row} is not finite once normalized",
        /// A buffer does not fit the shape.
        Length {
            /// The length that the shape requires.
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
        /// The group does not exist.
        NoGroup {
            /// The group that was requested.
            group: usize,
            /// Number of groups.
            count: usize,
        } => "group {group} of {count} does not exist",
        /// The ends of a range to quantize are not finite, or are swapped.
        Range => "the range's ends are swapped or not finite",
        /// A percentile is outside 1 to 1,000,000 per million.
        Percentile {
            /// The percentile that was requested.
            ppm: u32,
        } => "a percentile of {ppm} in a million lies outside 1..=1000000",
        /// A code lies outside the format's range.
        CodeRange {
            /// Lowest index of such a code.
            index: u64,
        } => "code {index} is outside the format's range",
        /// A scale does not fit the format's scale type.
        ScaleOverflow {
            /// Index of the group or block.
            group: u64,
        } => "the scale of group {group} overflows its type",
        /// Scratch is too small.
        Scratch {
            /// Required number of elements.
            needed: usize,
        } => "scratch of {needed} elements is needed",
    }
}
