//! What search refuses.

error_enum! {
    /// Why rows could not be searched.
    pub enum SearchError {
        /// Rows of no values.
        NoColumns => "rows have no values",
        /// Rows too long for exact 32-bit integers.
        TooWide {
            /// Values in a row.
            dim: usize,
        } => "rows of {dim} integers could overflow; at most 43690 are taken",
        /// The values do not fill whole rows.
        Shape {
            /// How many values (for packed rows: bytes).
            len: usize,
            /// Values (bytes) in a row.
            row: usize,
        } => "{len} elements are no whole number of rows of {row}",
        /// A table beside the rows does not hold one entry for each.
        Length {
            /// The length that the rows ask for.
            expected: usize,
            /// The length given.
            found: usize,
        } => "buffer holds {found} elements where {expected} are needed",
        /// A row holds a NaN or an infinity.
        NotFinite {
            /// The row, the lowest one.
            row: usize,
            /// The lowest column in it.
            column: usize,
        } => "row {row}, column {column} is not finite",
        /// A packed ternary row holds the bits 3, which stand for nothing.
        CodeRange {
            /// The row, the lowest one.
            row: usize,
            /// The lowest column in it.
            column: usize,
        } => "row {row}, column {column} is not a ternary code",
        /// A ternary row's magnitude is above 127.
        Magnitude {
            /// The row, the lowest one.
            row: usize,
            /// Its magnitude.
            magnitude: u8,
        } => "row {row} has magnitude {magnitude}; at most 127 is taken",
        /// A query is not as long as the rows.
        QueryLength {
            /// Values in a row.
            expected: usize,
            /// Values in the query, or in all queries where there are several.
            found: usize,
        } => "a query of {found} values does not fit rows of {expected}",
        /// A query holds a NaN or an infinity.
        QueryNotFinite {
            /// The query, the lowest one; 0 where there is one only.
            query: usize,
            /// The lowest column in it.
            column: usize,
        } => "query {query}, column {column} is not finite",
        /// A threshold that is NaN.
        Threshold => "the threshold is not a number",
        /// A candidate that is no row.
        NoRow {
            /// The index asked for.
            index: usize,
            /// How many rows there are.
            rows: usize,
        } => "row {index} of {rows} does not exist",
    }
}
