//! Errors of search.

error_enum! {
    /// Reason why rows could not be searched.
    pub enum SearchError {
        /// Rows have no values.
        NoColumns => "rows have no values",
        /// Rows are too long for exact 32-bit integers.
        TooWide {
            /// Number of values per row.
            dim: usize,
        } => "rows of {dim} integers could overflow; at most 43690 are taken",
        /// The values do not fill whole rows.
        Shape {
            /// Number of values (for packed rows: bytes).
            len: usize,
            /// Values (bytes) per row.
            row: usize,
        } => "{len} elements are no whole number of rows of {row}",
        /// A table that belongs to the rows does not have one entry per row.
        Length {
            /// The length that the rows require.
            expected: usize,
            /// The length given.
            found: usize,
        } => "buffer holds {found} elements where {expected} are needed",
        /// A row contains a NaN or an infinity.
        NotFinite {
            /// Lowest such row.
            row: usize,
            /// Lowest such column in it.
            column: usize,
        } => "row {row}, column {column} is not finite",
        /// A packed ternary row contains the bits 3, which are no code.
        CodeRange {
            /// Lowest such row.
            row: usize,
            /// Lowest such column in it.
            column: usize,
        } => "row {row}, column {column} is not a ternary code",
        /// A ternary row's magnitude is above 127.
        Magnitude {
            /// Lowest such row.
            row: usize,
            /// Its magnitude.
            magnitude: u8,
        } => "row {row} has magnitude {magnitude}; at most 127 is taken",
        /// A query does not have the rows' length.
        QueryLength {
            /// Number of values per row.
            expected: usize,
            /// Number of values of the query, or of all queries if there are several.
            found: usize,
        } => "a query of {found} values does not fit rows of {expected}",
        /// A query contains a NaN or an infinity.
        QueryNotFinite {
            /// Lowest such query; 0 if there is only one.
            query: usize,
            /// Lowest such column in it.
            column: usize,
        } => "query {query}, column {column} is not finite",
        /// The threshold is NaN.
        Threshold => "the threshold is not a number",
        /// A candidate's index is not that of a row.
        NoRow {
            /// The index that was requested.
            index: usize,
            /// Number of rows.
            rows: usize,
        } => "row {index} of {rows} does not exist",
    }
}
