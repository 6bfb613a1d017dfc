//! Errors common to all engines, as one type.

use core::error::Error;
use core::fmt;

use crate::block::BlockError;
use crate::cluster::ClusterError;
use crate::linear::LinearError;
use crate::model::ModelError;
use crate::palette::PaletteError;
use crate::quant::QuantError;
use crate::search::SearchError;

/// Errors caused by the caller's arguments, of any operation. They are the same on every engine.
///
/// An engine with other errors wraps this type in its own.
///
/// ```
/// use tercet_core::engine::Refused;
/// use tercet_core::quant::QuantError;
///
/// let refused = Refused::from(QuantError::Empty);
/// assert_eq!(refused.to_string(), QuantError::Empty.to_string());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Refused {
    /// Error of a quantizer.
    Quantize(QuantError),
    /// Error of a block format.
    Block(BlockError),
    /// Error of a clustering.
    Cluster(ClusterError),
    /// Error of a search.
    Search(SearchError),
    /// Error of a palette.
    Palette(PaletteError),
    /// Error of a layer.
    Linear(LinearError),
    /// Error of a language model.
    Model(ModelError),
}

impl Refused {
    /// Returns the wrapped error.
    fn error(&self) -> &(dyn Error + 'static) {
        match self {
            Self::Quantize(error) => error,
            Self::Block(error) => error,
            Self::Cluster(error) => error,
            Self::Search(error) => error,
            Self::Palette(error) => error,
            Self::Linear(error) => error,
            Self::Model(error) => error,
        }
    }
}

/// The same text as the wrapped error's.
impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.error(), f)
    }
}

/// The source is that of the wrapped error, because the text is also its own.
impl Error for Refused {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.error().source()
    }
}

/// Implements `From` for an error type with a variant `Refused`: from each operation's error and from
/// [`Refused`](crate::engine::Refused).
///
/// ```
/// use tercet_core::engine::Refused;
/// use tercet_core::quant::QuantError;
///
/// #[derive(Debug)]
/// enum Failure {
///     Refused(Refused),
///     Lost,
/// }
/// tercet_core::from_refusals!(Failure);
///
/// assert!(matches!(QuantError::Empty.into(), Failure::Refused(Refused::Quantize(_))));
/// ```
#[macro_export]
macro_rules! from_refusals {
    ($error:ty) => {
        $crate::from_refusals!($error: $crate::engine::Refused);
        $crate::from_refusals!($error: $crate::quant::QuantError);
        $crate::from_refusals!($error: $crate::block::BlockError);
        $crate::from_refusals!($error: $crate::cluster::ClusterError);
        $crate::from_refusals!($error: $crate::search::SearchError);
        $crate::from_refusals!($error: $crate::palette::PaletteError);
        $crate::from_refusals!($error: $crate::linear::LinearError);
        $crate::from_refusals!($error: $crate::model::ModelError);
    };
    ($error:ty: $refusal:ty) => {
        impl From<$refusal> for $error {
            fn from(refusal: $refusal) -> Self {
                Self::Refused(refusal.into())
            }
        }
    };
}

macro_rules! from {
    ($($variant:ident: $error:ty),+ $(,)?) => {
        $(
            impl From<$error> for Refused {
                fn from(error: $error) -> Self {
                    Self::$variant(error)
                }
            }
        )+
    };
}
from!(
    Quantize: QuantError,
    Block: BlockError,
    Cluster: ClusterError,
    Search: SearchError,
    Palette: PaletteError,
    Linear: LinearError,
    Model: ModelError,
);
