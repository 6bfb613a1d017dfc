//! Errors of clustering.

error_enum! {
    /// Reason why points could not be clustered.
    pub enum ClusterError {
        /// There are no points, or points without coordinates.
        Empty => "no points to cluster",
        /// A buffer does not fit the shape.
        Length {
            /// The length that the shape requires.
            expected: usize,
            /// The length given.
            found: usize,
        } => "buffer holds {found} elements where {expected} are needed",
        /// The coordinates do not divide into points.
        Ragged {
            /// Number of coordinates.
            len: usize,
            /// Coordinates per point.
            dims: usize,
        } => "{len} coordinates do not divide into points of {dims}",
        /// Points have too many coordinates: ‖c‖² − 2·x·c would not fit 32 bits.
        Dims {
            /// Coordinates per point.
            dims: usize,
        } => "points of {dims} coordinates; scores fit 32 bits up to 43690",
        /// More points than 32-bit labels and indices can distinguish.
        Points {
            /// Number of points.
            points: usize,
        } => "{points} points; indices of 32 bits end at 4294967294",
        /// The number of clusters is 0, or exceeds the number of points of positive weight.
        Clusters {
            /// The number of clusters that was requested.
            clusters: usize,
            /// Points of positive weight.
            points: usize,
        } => "{clusters} clusters asked for {points} points; 1 to the number of points (of positive weight) can be made",
        /// The sum of all weights is too large: a sum could wrap.
        Weight {
            /// The sum of the weights, as far as 64 bits hold it.
            total: u64,
            /// The largest sum that these points, this accumulator or this rule allows.
            limit: u64,
        } => "weights add up to {total}; sums stay exact up to {limit}",
        /// A mini-batch could raise a count above 2²⁴, so that 32-bit sums could wrap.
        Batch {
            /// Largest weight that a batch may have.
            weight: u64,
            /// Largest weight that keeps the sums exact.
            limit: u64,
        } => "a batch may weigh {weight}; 32-bit sums stay exact up to {limit}",
        /// The cap is outside 2 to 2²⁴.
        Cap {
            /// The cap that was requested.
            cap: u32,
        } => "a cap of {cap}; counts are capped at 2 to 16777216",
        /// A value is NaN or infinite.
        NotFinite {
            /// Lowest index of such a value.
            index: u64,
        } => "value {index} is not finite",
        /// The point or cluster does not exist.
        Index {
            /// The index that was requested.
            index: usize,
            /// Number of points or clusters.
            count: usize,
        } => "index {index} of {count} does not exist",
        /// A score was requested for fewer than two clusters.
        Score {
            /// Number of clusters that have members.
            clusters: usize,
        } => "{clusters} clusters have members; a score compares at least 2",
        /// Bytes that cannot be saved clusters.
        State {
            /// Offset of the first impossible value.
            offset: usize,
        } => "the value at byte {offset} cannot be part of saved clusters",
    }
}
