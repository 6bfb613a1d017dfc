//! The results of calls.

use core::ffi::{CStr, c_char};

use tercet_core::cluster::ClusterError;
use tercet_core::linear::LinearError;
use tercet_core::linear::network::NetworkError;
use tercet_core::quant::QuantError;

/// The result of every call that can fail; 0 is success. Numbers never change their meaning; new ones may be added.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Success.
    Ok = 0,
    /// A pointer is null that must not be null.
    Null = 1,
    /// A pointer is not aligned for its type.
    Alignment = 2,
    /// An output overlaps another output or an input.
    Overlap = 3,
    /// The object was not initialised.
    State = 4,
    /// A length does not match the others.
    Length = 5,
    /// No values, no points or no clusters.
    Empty = 6,
    /// A size exceeds what the library can count or an address space can hold.
    Limit = 7,
    /// An option is outside its range.
    Argument = 8,
    /// A value is a NaN or an infinity.
    NotFinite = 9,
    /// An activation is -128, which has no opposite.
    NotSymmetric = 10,
    /// The scratch memory is too small.
    Scratch = 11,
    /// The bytes are not clusters saved with this k and d.
    Saved = 12,
    /// The bytes are not a whole GGUF file.
    File = 13,
    /// The file contains no network of this version, or a layer that does not fit.
    Network = 14,
    /// The network has more layers than `TERCET_NETWORK_LAYERS`.
    Layers = 15,
    /// The library was built without the layout of a layer's weights.
    Layout = 16,
    /// There are no clusters yet.
    NoClusters = 17,
}

impl Status {
    /// All statuses, in the order of their numbers.
    const ALL: [Self; 18] = [
        Self::Ok,
        Self::Null,
        Self::Alignment,
        Self::Overlap,
        Self::State,
        Self::Length,
        Self::Empty,
        Self::Limit,
        Self::Argument,
        Self::NotFinite,
        Self::NotSymmetric,
        Self::Scratch,
        Self::Saved,
        Self::File,
        Self::Network,
        Self::Layers,
        Self::Layout,
        Self::NoClusters,
    ];

    const fn message(self) -> &'static CStr {
        match self {
            Self::Ok => c"done",
            Self::Null => c"a pointer is null",
            Self::Alignment => c"a pointer is not aligned for its type",
            Self::Overlap => c"an output overlaps another buffer",
            Self::State => c"the object was not initialised",
            Self::Length => c"a length does not fit",
            Self::Empty => c"there is nothing to work on",
            Self::Limit => c"a size is too large",
            Self::Argument => c"an option lies outside its range",
            Self::NotFinite => c"a value is not finite",
            Self::NotSymmetric => c"an activation is -128",
            Self::Scratch => c"the scratch memory is too small",
            Self::Saved => c"the bytes are no clusters of this shape",
            Self::File => c"the bytes are no whole GGUF file",
            Self::Network => c"the file holds no network that can be run",
            Self::Layers => c"the network has too many layers",
            Self::Layout => c"the library was built without this layout",
            Self::NoClusters => c"there are no clusters yet",
        }
    }

    /// Returns a call's status.
    pub(crate) fn of(call: impl FnOnce() -> Result<(), Self>) -> Self {
        match call() {
            Ok(()) => Self::Ok,
            Err(status) => status,
        }
    }
}

/// Returns a sentence about a status, in English, without a full stop; "unknown status" for any other number. The
/// sentence is in constant memory.
#[unsafe(no_mangle)]
pub extern "C" fn tercet_message(status: i32) -> *const c_char {
    let known = Status::ALL.iter().find(|known| **known as i32 == status);
    known
        .map_or(c"unknown status", |status| status.message())
        .as_ptr()
}

impl From<ClusterError> for Status {
    fn from(error: ClusterError) -> Self {
        match error {
            ClusterError::Empty => Self::Empty,
            ClusterError::Length { .. } | ClusterError::Ragged { .. } => Self::Length,
            ClusterError::State { .. } => Self::Saved,
            ClusterError::Cap { .. }
            | ClusterError::Clusters { .. }
            | ClusterError::Weight { .. } => Self::Argument,
            _ => Self::Limit,
        }
    }
}

impl From<QuantError> for Status {
    fn from(error: QuantError) -> Self {
        match error {
            QuantError::Empty => Self::Empty,
            QuantError::NotFinite { .. } => Self::NotFinite,
            QuantError::Scratch { .. } => Self::Scratch,
            QuantError::Length { .. } | QuantError::GroupLength { .. } => Self::Length,
            _ => Self::Argument,
        }
    }
}

impl From<LinearError> for Status {
    fn from(error: LinearError) -> Self {
        match error {
            LinearError::NotSymmetric { .. } => Self::NotSymmetric,
            LinearError::Scratch { .. } => Self::Scratch,
            LinearError::Length { .. } => Self::Length,
            LinearError::LeftOut => Self::Layout,
            _ => Self::Network,
        }
    }
}

impl From<NetworkError> for Status {
    fn from(error: NetworkError) -> Self {
        match error {
            NetworkError::File { .. } => Self::File,
            NetworkError::Layers { .. } => Self::Layers,
            NetworkError::NotFinite { .. } => Self::NotFinite,
            NetworkError::Input { .. } => Self::Length,
            _ => Self::Network,
        }
    }
}
