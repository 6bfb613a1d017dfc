//! Errors of the linear layer.

error_enum! {
    /// Reason why a matrix was not accepted or not multiplied.
    ///
    /// After an error, the content of an output buffer is unspecified.
    pub enum LinearError {
        /// An activation is −128, which has no opposite in int8; see [`I8Sym`](super::I8Sym).
        NotSymmetric {
            /// Lowest index of such an activation.
            index: usize,
        } => "activation {index} is -128, outside -127..=127",
        /// A row has no weights, or more than a 32-bit sum allows.
        Columns {
            /// Number of weights per row.
            cols: usize,
            /// Largest number, [`MAX_COLS`](super::MAX_COLS).
            max: usize,
        } => "rows of {cols} weights; 1 to {max} are taken",
        /// A row is not a whole number of blocks.
        Partial {
            /// Weights per row.
            cols: usize,
            /// Weights per block.
            block: usize,
        } => "a row of {cols} weights is no whole number of blocks of {block}",
        /// The size of the matrix does not fit `usize`.
        TooLarge => "the matrix is too large for this machine",
        /// A buffer does not fit the matrix.
        Length {
            /// The required length, in the buffer's elements.
            expected: usize,
            /// The length given.
            found: usize,
        } => "buffer holds {found} elements where {expected} are needed",
        /// Scratch is too small.
        Scratch {
            /// Required number of words.
            needed: usize,
            /// Number of words given.
            found: usize,
        } => "scratch of {found} words where {needed} are needed",
        /// The layout has no code for a weight, or a code in the bytes is invalid.
        CodeRange {
            /// Lowest such row.
            row: usize,
            /// Lowest such column in it.
            col: usize,
        } => "row {row}, column {col} is no code of the layout",
        /// Blocks cannot be packed from codes alone.
        Blocks => "blocks are encoded from floats, not packed from codes",
        /// A block's scale is NaN or infinite.
        ScaleNotFinite {
            /// Lowest such row.
            row: usize,
        } => "row {row} has a scale that is not finite",
        /// The scales of a row's blocks are so large that its sum might not fit 64 bits.
        ScaleRange {
            /// Lowest such row.
            row: usize,
        } => "row {row} has scales whose products could leave 64 bits",
        /// The engine was built without this layout; see [`Only`](crate::scalar::Only).
        LeftOut => "the engine was built without this layout",
        /// Scales were given for a layout whose blocks contain their own.
        ScaleTwice => "the scales of this layout lie in its blocks",
        /// A bias is shifted by more than 30 bits.
        BiasShift {
            /// The shift.
            shift: u8,
        } => "a bias shifted by {shift} bits could leave 64; at most 30 are taken",
        /// A multiplier is outside 2³⁰..2³¹.
        Multiplier {
            /// Lowest such row; 0 if one multiplier applies to all rows.
            row: usize,
        } => "row {row} has a multiplier outside 2^30..2^31",
        /// A shift is outside 1..=94.
        Shift {
            /// Lowest such row; 0 if one shift applies to all rows.
            row: usize,
        } => "row {row} has a shift outside 1..=94",
        /// The scale is not a positive number that a multiplier and a shift can represent.
        Scale => "the scale is not a positive number between 2^-64 and 2^30",
    }
}
