//! What clustering refuses.

error_enum! {
    /// Why points could not be clustered.
    pub enum ClusterError {
        /// There are no points, or points without coordinates.
        Empty => "no points to cluster",
        /// A buffer does not fit the shape.
        Length {
            /// The length that the shape asks for.
            expected: usize,
            /// The length given.
            found: usize,
        } => "buffer holds {found} elements where {expected} are needed",
        /// The coordinates do not divide into points.
        Ragged {
            /// Number of coordinates.
            len: usize,
            /// Coordinates of a point.
            dims: usize,
        } => "{len} coordinates do not divide into points of {dims}",
        /// Points too long: ‖c‖² − 2·x·c would not fit 32 bits.
        Dims {
            /// Coordinates of a point.
            dims: usize,
        } => "points of {dims} coordinates; scores fit 32 bits up to 43690",
        /// More points than labels and indices of 32 bits can tell apart.
        Points {
            /// How many.
            points: usize,
        } => "{points} points; indices of 32 bits end at 4294967294",
        /// No clusters, or more than there are points of positive weight.
        Clusters {
            /// The clusters asked for.
            clusters: usize,
            /// Points of positive weight.
            points: usize,
        } => "{clusters} clusters asked for {points} points; 1 to the number of points (of positive weight) can be made",
        /// All weights together are too large: a sum could wrap.
        Weight {
            /// The sum of the weights, as far as 64 bits tell it.
            total: u64,
            /// The largest sum that these points, this accumulator or this rule allows.
            limit: u64,
        } => "weights add up to {total}; sums stay exact up to {limit}",
        /// A mini-batch could bring a count past 2²⁴, where its 32-bit sums could wrap.
        Batch {
            /// The most weight that a batch may carry.
            weight: u64,
            /// The most that leaves the sums exact.
            limit: u64,
        } => "a batch may weigh {weight}; 32-bit sums stay exact up to {limit}",
        /// A cap outside 2 to 2²⁴.
        Cap {
            /// What was asked for.
            cap: u32,
        } => "a cap of {cap}; counts are capped at 2 to 16777216",
        /// A NaN or an infinity.
        NotFinite {
            /// Its index in the values, the lowest one.
            index: u64,
        } => "value {index} is not finite",
        /// There is no such point or cluster.
        Index {
            /// The index asked for.
            index: usize,
            /// How many there are.
            count: usize,
        } => "index {index} of {count} does not exist",
        /// A score of fewer than two clusters.
        Score {
            /// Clusters that have members.
            clusters: usize,
        } => "{clusters} clusters have members; a score compares at least 2",
        /// Bytes that no clusters were saved as.
        State {
            /// The offset of the first value that cannot be.
            offset: usize,
        } => "the value at byte {offset} cannot be part of saved clusters",
    }
}
