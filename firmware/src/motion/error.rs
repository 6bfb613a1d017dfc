//! Errors of the running application.

use embedded_hal::{digital, i2c};
use tercet_core::linear::network::NetworkError;

/// Reason why a step returned nothing. The clusters and the window are kept, and the next step tries again.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Error {
    /// The bus failed.
    Bus {
        /// The kind of failure, as far as the bus can report it.
        kind: i2c::ErrorKind,
    },
    /// The device at the sensor's address is not an LSM6DSOX.
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
        /// The kind of failure.
        kind: digital::ErrorKind,
    },
    /// The file is not a network that can run.
    Network {
        /// The reason.
        error: NetworkError,
    },
    /// The network of the file has different layers than those that this program has memory for.
    Shape,
    /// There was no window in [`Phase::Measure`](super::Phase::Measure), so there is no limit of usual distances.
    Unmeasured,
}

impl Error {
    /// Returns an error of the bus with the kind that `embedded-hal` gives it.
    pub(super) fn bus(error: &impl i2c::Error) -> Self {
        Self::Bus { kind: error.kind() }
    }

    /// Returns an error of the pin.
    pub(super) fn pin(error: &impl digital::Error) -> Self {
        Self::Pin { kind: error.kind() }
    }
}

impl From<NetworkError> for Error {
    fn from(error: NetworkError) -> Self {
        Self::Network { error }
    }
}
