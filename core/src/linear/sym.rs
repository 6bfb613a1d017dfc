//! Activations that have an opposite each.

use super::LinearError;

/// int8 values of −127..=127, borrowed: what the kernels multiply with.
///
/// −128 would break the proofs of some kernels and not of others, so it is refused here, once, and no engine decides alone.
/// Symmetric quantizers ([`crate::quant::int8::symmetric`]) and [`super::dense`] never give it.
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
    /// Takes values after one scan. O(n).
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

    /// The values.
    pub const fn get(self) -> &'a [i8] {
        self.0
    }

    /// Rows of `cols` values each; what remains at the end, and everything where `cols` is 0, is no row.
    pub fn rows(self, cols: usize) -> impl ExactSizeIterator<Item = Self> + use<'a> {
        let values = if cols == 0 { &[] } else { self.0 };
        values.chunks_exact(cols.max(1)).map(Self)
    }

    /// How many.
    pub const fn len(self) -> usize {
        self.0.len()
    }

    /// True for none.
    pub const fn is_empty(self) -> bool {
        self.0.is_empty()
    }
}

/// How many values the legal runs at the front have: run by run, since a loop without a way out becomes one of vectors, where there are some.
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
