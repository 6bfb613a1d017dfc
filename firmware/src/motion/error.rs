//! What can go wrong while the application runs.

use embedded_hal::{digital, i2c};
use tercet_core::linear::network::NetworkError;

/// Why a step gave nothing. What was learned and the window are kept; the next step tries again.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Error {
    /// The bus failed.
    Bus {
        /// How, as far as the bus can tell.
        kind: i2c::ErrorKind,
    },
    /// What answers at the sensor's address is something else.
    Identity {
        /// Its identity; an LSM6DSOX has 0x6C.
        found: u8,
    },
    /// The sensor did not come out of its reset.
    Reset,
    /// The sensor has no new sample although it is due. The next step sets it up again, as after a loss of power.
    NotReady,
    /// The pin could not be set.
    Pin {
        /// How it failed.
        kind: digital::ErrorKind,
    },
    /// The file is no network that can be run.
    Network {
        /// Why.
        error: NetworkError,
    },
    /// The file's network has other layers than this program sets memory aside for.
    Shape,
    /// No window came in [`Phase::Measure`](super::Phase::Measure), so nothing says how far the usual goes.
    Unmeasured,
}

impl Error {
    /// An error of the bus as `embedded-hal` names it.
    pub(super) fn bus(error: &impl i2c::Error) -> Self {
        Self::Bus { kind: error.kind() }
    }

    /// An error of the pin.
    pub(super) fn pin(error: &impl digital::Error) -> Self {
        Self::Pin { kind: error.kind() }
    }
}

impl From<NetworkError> for Error {
    fn from(error: NetworkError) -> Self {
        Self::Network { error }
    }
}
