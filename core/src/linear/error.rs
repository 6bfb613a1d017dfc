//! What the linear layer refuses.

error_enum! {
    /// Why a matrix was not taken, or not multiplied.
    ///
    /// What an output buffer holds after an error is unspecified.
    pub enum LinearError {
        /// An activation is −128, which has no opposite; see [`I8Sym`](super::I8Sym).
        NotSymmetric {
            /// Its index, the lowest one.
            index: usize,
        } => "activation {index} is -128, outside -127..=127",
        /// A row has no weights, or more than 32 bits can sum.
        Columns {
            /// How many it has.
            cols: usize,
            /// The most there may be, [`MAX_COLS`](super::MAX_COLS).
            max: usize,
        } => "rows of {cols} weights; 1 to {max} are taken",
        /// A row is no whole number of blocks.
        Partial {
            /// Weights in a row.
            cols: usize,
            /// Weights in a block.
            block: usize,
        } => "a row of {cols} weights is no whole number of blocks of {block}",
        /// The matrix does not fit `usize`.
        TooLarge => "the matrix is too large for this machine",
        /// A buffer does not fit the matrix.
        Length {
            /// The length needed, in the buffer's elements.
            expected: usize,
            /// The length given.
            found: usize,
        } => "buffer holds {found} elements where {expected} are needed",
        /// Scratch is too small.
        Scratch {
            /// Words needed.
            needed: usize,
            /// Words given.
            found: usize,
        } => "scratch of {found} words where {needed} are needed",
        /// A weight that the layout has no code for, or a code that stands for nothing.
        CodeRange {
            /// The row, the lowest one.
            row: usize,
            /// The lowest column in it.
            col: usize,
        } => "row {row}, column {col} is no code of the layout",
        /// Blocks are not packed from codes alone.
        Blocks => "blocks are encoded from floats, not packed from codes",
        /// A block's scale is a NaN or an infinity.
        ScaleNotFinite {
            /// The row, the lowest one.
            row: usize,
        } => "row {row} has a scale that is not finite",
        /// The scales of a row's blocks are so large that 64 bits might not hold its sum.
        ScaleRange {
            /// The row, the lowest one.
            row: usize,
        } => "row {row} has scales whose products could leave 64 bits",
        /// A layout that the engine was built without; see [`Only`](crate::scalar::Only).
        LeftOut => "the engine was built without this layout",
        /// A layout whose blocks bring their own scales was given others.
        ScaleTwice => "the scales of this layout lie in its blocks",
        /// A bias is shifted by more than 30 bits.
        BiasShift {
            /// The shift.
            shift: u8,
        } => "a bias shifted by {shift} bits could leave 64; at most 30 are taken",
        /// A multiplier lies outside 2³⁰..2³¹.
        Multiplier {
            /// The row, the lowest one; 0 where one stands for all.
            row: usize,
        } => "row {row} has a multiplier outside 2^30..2^31",
        /// A shift lies outside 1..=94.
        Shift {
            /// The row, the lowest one; 0 where one stands for all.
            row: usize,
        } => "row {row} has a shift outside 1..=94",
        /// A scale is not a positive number that a multiplier and a shift can stand for.
        Scale => "the scale is not a positive number between 2^-64 and 2^30",
    }
}
