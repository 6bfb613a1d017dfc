//! Exact similarity search: the nearest rows of a matrix by dot product, cosine or squared distance.
//!
//! A **base** holds rows in one of three storages. [`Int8Rows`] and [`TernaryRows`] take int8 queries and compare in
//! exact integers. [`FloatRows`] (f32, f16, bf16) takes f32 queries and sums in the one order of
//! [`crate::number::lanes`]. The search compares every row, so it returns the true nearest rows; ties go to the
//! lowest index. An engine scans the rows ([`crate::engine::SearchEngine`], [`crate::scalar::Scalar`]). [`TopK`] and
//! [`Within`] decide which results to keep in the caller's slice.
//!
//! | metric | integer score | float score | better |
//! |---|---|---|---|
//! | [`Dot`] | i32, exact | f32, lane sums | larger |
//! | [`SquaredL2`] | u32, exact | f32, lane sums | smaller |
//! | [`Cosine`] | ratio, ordered exactly without a root | signed square in f64 | larger |
//!
//! Integer rows are compared as codes. If two rows' codes have different scales, convert them to one grid first
//! (cosine does not need this). int8 rows find candidates with a quarter of the memory, and [`rerank`] sorts these by
//! their float scores.
//!
//! ```
//! use tercet_core::engine::{SearchBase, SearchEngine};
//! use tercet_core::scalar::Scalar;
//! use tercet_core::search::{Cosine, Hit, Int8Rows, Score};
//!
//! let rows = [3, 4, -3, -4, 6, 8, 4, 3];
//! let mut engine = Scalar;
//! let mut base = engine.base(Int8Rows::new(&rows, 2)?)?;
//! let mut hits = [Hit::default(); 3];
//! assert_eq!(base.top_k::<Cosine>(&[30, 40], &mut hits)?, 3);
//! // Rows 0 and 2 point the same way: cosine 1 for both, the lower index first.
//! assert_eq!(hits.map(|hit| hit.index), [0, 2, 3]);
//! assert_eq!(hits.map(|hit| hit.score.value()), [1.0, 1.0, 0.96]);
//! # Ok::<(), tercet_core::search::SearchError>(())
//! ```

mod bar;
mod cosine;
mod error;
mod float;
mod int8;
mod metric;
mod rerank;
mod rows;
mod score;
mod ternary;
mod top_k;
mod visit;
mod within;

pub use bar::Bar;
pub use cosine::{IntegerCosine, SignedSquare};
pub use error::SearchError;
pub use float::FloatRows;
pub use int8::Int8Rows;
pub use metric::{Cosine, Dot, Metric, MetricKind, SquaredL2};
pub use rerank::{recall, rerank};
pub use rows::{Rows, check_many};
pub use score::{Larger, Score, Smaller};
pub use ternary::TernaryRows;
pub use top_k::{Hit, TopK};
pub use visit::Visitor;
pub use within::Within;

/// Largest length of an integer row, in values: ‖x‖² − 2·x·c of two int8 rows fits an i32 up to this length (49,152 ·
/// d < 2³¹).
///
/// All integer metrics share this bound, which is the same as in clustering. It keeps a dot product below 2³⁰, a
/// squared distance (65,025 · d) below 2³², and both sides of a comparison of cosines below 2¹²⁸.
pub const MAX_DIM: usize = crate::cluster::MAX_DIMS;
