//! Errors of palettes.

error_enum! {
    /// Reason why values could not be encoded to a palette or decoded from one.
    ///
    /// After an error, the content of an output buffer is unspecified.
    pub enum PaletteError {
        /// An index has no bits, or more than a byte.
        Width {
            /// The number of bits that was requested.
            bits: u8,
        } => "an index of {bits} bits lies outside 1..=8",
        /// There are no values, or no entries to choose.
        Empty => "no values, or no entries to choose",
        /// A buffer does not fit the layout.
        Length {
            /// The required length, in the buffer's elements.
            expected: usize,
            /// The length given.
            found: usize,
        } => "buffer holds {found} elements where {expected} are needed",
        /// A number of values or bytes does not fit `usize`.
        TooLarge => "the tensor is too large for this machine",
        /// The rows cannot form that many groups without an empty one.
        Groups {
            /// Number of rows.
            rows: usize,
            /// Number of groups.
            groups: usize,
        } => "{rows} rows do not make {groups} groups",
        /// A value is NaN or infinite.
        NotFinite {
            /// Lowest index of such a value in the tensor.
            index: u64,
        } => "value {index} is not finite",
        /// The weights of a group sum to more than [`MAX_WEIGHT`](super::MAX_WEIGHT).
        Weight {
            /// Largest allowed sum.
            max: u64,
        } => "the weights sum to more than {max}",
        /// Values that must be strictly ascending are not.
        NotRising {
            /// Index of the first that is not above the one before it.
            index: usize,
        } => "value {index} is not above the one before it",
        /// Scratch is too small.
        Scratch {
            /// Required number of elements.
            needed: usize,
        } => "scratch of {needed} elements is needed",
        /// A scale is NaN or infinite.
        ScaleNotFinite {
            /// Index of the group.
            group: usize,
        } => "the scale of group {group} is not finite",
        /// A product could exceed 32 bits.
        DotLength {
            /// Number of values per row.
            len: usize,
            /// Largest number, [`MAX_DOT`](super::MAX_DOT).
            max: usize,
        } => "a dot product of {len} values could leave 32 bits; {max} are the most",
    }
}
