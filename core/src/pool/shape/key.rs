//! The key of buffers: element type and shape.
#![forbid(unsafe_code)]

use core::fmt;

use crate::number::Kind;

/// Up to four dimensions, outermost first. Missing dimensions are 1, so `[3, 5]` and `[3, 5, 1]` are the same.
///
/// ```
/// use tercet_core::pool::Shape;
///
/// assert_eq!(Shape::from([3, 5]), Shape::from([3, 5, 1, 1]));
/// assert_eq!(Shape::from([3, 5]).elements(), Some(15));
/// assert_eq!(Shape::from([usize::MAX, 2]).elements(), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Shape([usize; 4]);

impl Shape {
    pub(super) const ZERO: Self = Self([0; 4]);

    /// Returns the four dimensions.
    pub const fn dims(&self) -> [usize; 4] {
        self.0
    }

    /// Returns their product; `None` if it exceeds `usize::MAX`.
    pub fn elements(&self) -> Option<usize> {
        self.0
            .iter()
            .try_fold(1_usize, |n, &dim| n.checked_mul(dim))
    }
}

impl<const RANK: usize> From<[usize; RANK]> for Shape {
    /// A rank above 4 does not compile.
    #[inline]
    fn from(dims: [usize; RANK]) -> Self {
        const { assert!(RANK <= 4, "a shape has at most four dimensions") };
        let mut shape = [1; 4];
        for (place, dim) in shape.iter_mut().zip(dims) {
            *place = dim;
        }
        Self(shape)
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d] = self.0;
        write!(f, "{a} × {b} × {c} × {d}")
    }
}

/// The properties that two buffers must share so that one can replace the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) shape: Shape,
    pub(super) kind: Kind,
}
