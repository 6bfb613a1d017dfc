//! What every engine refuses, as one type.

use core::error::Error;
use core::fmt;

use crate::block::BlockError;
use crate::cluster::ClusterError;
use crate::linear::LinearError;
use crate::model::ModelError;
use crate::palette::PaletteError;
use crate::quant::QuantError;
use crate::search::SearchError;

/// What every engine refuses, whichever operation it is: the caller's mistake, the same on each of them.
///
/// An engine whose operations fail in ways of their own wraps it beside those.
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
    /// By a quantizer.
    Quantize(QuantError),
    /// By a block format.
    Block(BlockError),
    /// By a clustering.
    Cluster(ClusterError),
    /// By a search.
    Search(SearchError),
    /// By a palette.
    Palette(PaletteError),
    /// By a layer.
    Linear(LinearError),
    /// By a language model.
    Model(ModelError),
}

impl Refused {
    /// The refusal itself.
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

/// The refusal's own words.
impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.error(), f)
    }
}

/// Its source is the refusal's, as its words are.
impl Error for Refused {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.error().source()
    }
}

/// Makes each operation's refusal, and [`Refused`](crate::engine::Refused) itself, convert into an error that has a variant
/// `Refused` for it.
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
