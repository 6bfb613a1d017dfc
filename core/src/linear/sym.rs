//! Symmetric activations: each has an opposite.

use super::LinearError;

/// Borrowed int8 values in −127..=127, which the kernels multiply by.
///
/// −128 would invalidate the proofs of some kernels but not of others. So this type refuses it once, for every
/// engine. Symmetric quantizers ([`crate::quant::int8::symmetric`]) and [`super::dense`] never write it.
///
/// ```
/// use tercet_core::linear::{I8Sym, LinearError};
///
/// assert_eq!(I8Sym::new(&[127, -127])?.get(), [127, -127]);
/// assert_eq!(I8Sym::new(&[0, -128]), Err(LinearError::NotSymmetric { index: 1 }));
/// # Ok::<(), LinearError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct I8Sym<'a>(&'a [i8]);

impl<'a> I8Sym<'a> {
    /// Accepts values after one pass that checks them. O(n).
    ///
    /// # Errors
    /// [`LinearError::NotSymmetric`] with the index of the first −128.
    pub fn new(values: &'a [i8]) -> Result<Self, LinearError> {
        let legal = legal_runs(values);
        let rest = values.get(legal..).unwrap_or_default();
        match rest.iter().position(|&value| value == i8::MIN) {
            Some(index) => Err(LinearError::NotSymmetric {
                index: legal + index,
            }),
            None => Ok(Self(values)),
        }
    }

    /// Returns the values.
    pub const fn get(self) -> &'a [i8] {
        self.0
    }

    /// Returns rows of `cols` values each. A remainder at the end is no row; with `cols` 0 there are no rows.
    pub fn rows(self, cols: usize) -> impl ExactSizeIterator<Item = Self> + use<'a> {
        let values = if cols == 0 { &[] } else { self.0 };
        values.chunks_exact(cols.max(1)).map(Self)
    }

    /// Returns the number of values.
    pub const fn len(self) -> usize {
        self.0.len()
    }

    /// Returns true if there are no values.
    pub const fn is_empty(self) -> bool {
        self.0.is_empty()
    }
}

/// Returns the number of values in the valid runs at the front. It checks run by run, since a loop without an exit
/// can be vectorized.
fn legal_runs(values: &[i8]) -> usize {
    const RUN: usize = 256;
    if cfg!(not(target_pointer_width = "64")) {
        return 0;
    }
    let runs = values.chunks_exact(RUN);
    let legal = |run: &&[i8]| {
        run.iter()
            .fold(true, |legal, &value| legal & (value != i8::MIN))
    };
    RUN * runs.take_while(legal).count()
}
