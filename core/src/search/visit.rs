//! A visitor that gives an engine the type of the rows.

use super::{FloatRows, Hit, Int8Rows, Metric, TernaryRows};
use crate::number::Element;

/// The work of an engine with its own kernels for each storage; see [`super::Rows::visit`].
///
/// Queries and hits have the storage's own types. The engine and its visitor agree on their lengths.
///
/// ```
/// use tercet_core::number::Element;
/// use tercet_core::search::{Dot, FloatRows, Hit, Int8Rows, Metric, Rows, TernaryRows, Visitor};
///
/// /// Scores the first row alone.
/// struct First;
///
/// impl Visitor for First {
///     type Output = &'static str;
///
///     fn int8<M: Metric>(
///         &mut self,
///         rows: Int8Rows<'_>,
///         query: &[i8],
///         hits: &mut [Hit<M::Integer>],
///     ) -> &'static str {
///         let dot = rows.values().iter().zip(query).map(|(&a, &b)| i32::from(a) * i32::from(b)).sum();
///         hits[0].score = M::integer(dot, 0, 0);
///         "int8"
///     }
///     # fn ternary<M: Metric>(&mut self, _: TernaryRows<'_>, _: &[i8], _: &mut [Hit<M::Integer>]) -> &'static str {
///     #     "ternary"
///     # }
///     # fn float<M: Metric, T: Element>(&mut self, _: FloatRows<'_, T>, _: &[f32], _: &mut [Hit<M::Float>]) -> &'static str {
///     #     "float"
///     # }
///     // and so on for the others
/// }
///
/// let rows = Int8Rows::new(&[1, 2, 3, 4], 2)?;
/// let mut hits = [Hit::default()];
/// assert_eq!(rows.visit::<Dot, _>(&[10, 1], &mut hits, &mut First), "int8");
/// assert_eq!(hits[0].score.0, 12);
/// # Ok::<(), tercet_core::search::SearchError>(())
/// ```
pub trait Visitor {
    /// Result of a visit.
    type Output;

    /// Visits int8 rows.
    fn int8<M: Metric>(
        &mut self,
        rows: Int8Rows<'_>,
        queries: &[i8],
        hits: &mut [Hit<M::Integer>],
    ) -> Self::Output;

    /// Visits packed ternary rows.
    fn ternary<M: Metric>(
        &mut self,
        rows: TernaryRows<'_>,
        queries: &[i8],
        hits: &mut [Hit<M::Integer>],
    ) -> Self::Output;

    /// Visits rows of floats.
    fn float<M: Metric, T: Element>(
        &mut self,
        rows: FloatRows<'_, T>,
        queries: &[f32],
        hits: &mut [Hit<M::Float>],
    ) -> Self::Output;
}
