//! What the palettes refuse.

error_enum! {
    /// Why values could not be put into a palette or taken out of one.
    ///
    /// What an output buffer holds after an error is unspecified.
    pub enum PaletteError {
        /// An index of no bits, or of more than a byte.
        Width {
            /// What was asked for.
            bits: u8,
        } => "an index of {bits} bits lies outside 1..=8",
        /// There are no values, or no entries to choose.
        Empty => "no values, or no entries to choose",
        /// A buffer does not fit the layout.
        Length {
            /// The length needed, in the buffer's elements.
            expected: usize,
            /// The length given.
            found: usize,
        } => "buffer holds {found} elements where {expected} are needed",
        /// A number of values or bytes does not fit `usize`.
        TooLarge => "the tensor is too large for this machine",
        /// The rows do not make so many groups without an empty one.
        Groups {
            /// Number of rows.
            rows: usize,
            /// Number of groups.
            groups: usize,
        } => "{rows} rows do not make {groups} groups",
        /// A NaN or an infinity.
        NotFinite {
            /// Its index in the tensor, the lowest one.
            index: u64,
        } => "value {index} is not finite",
        /// The weights of a group sum to more than [`MAX_WEIGHT`](super::MAX_WEIGHT).
        Weight {
            /// The largest sum.
            max: u64,
        } => "the weights sum to more than {max}",
        /// Values that must rise do not.
        NotRising {
            /// Index of the first that is not above the one before it.
            index: usize,
        } => "value {index} is not above the one before it",
        /// Scratch is too small.
        Scratch {
            /// Elements needed.
            needed: usize,
        } => "scratch of {needed} elements is needed",
        /// A scale is a NaN or an infinity.
        ScaleNotFinite {
            /// Index of the group.
            group: usize,
        } => "the scale of group {group} is not finite",
        /// A product could leave 32 bits.
        DotLength {
            /// Number of values in a row.
            len: usize,
            /// The most there may be, [`MAX_DOT`](super::MAX_DOT).
            max: usize,
        } => "a dot product of {len} values could leave 32 bits; {max} are the most",
    }
}
