//! Ways to exchange sums and centroids between devices.

use std::fmt;

use crate::engine::nccl::Communicators;
use crate::engine::{Cuda, CudaError};

/// How k-means exchanges sums and centroids between the devices of a [`super::Cudas`]. Results have the same bits in
/// every way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Exchange {
    /// NCCL if it is installed and accepts these devices, otherwise as [`Exchange::Peer`].
    #[default]
    Auto,
    /// NCCL (`libnccl.so.2`, 2.4 or newer, looked up when first needed), or an error.
    Nccl,
    /// Copies from device to device (`cuMemcpyPeerAsync`); through pinned memory of the host between devices that do
    /// not reach each other.
    Peer,
    /// Through pinned memory of the host.
    Host,
}

impl fmt::Display for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Auto => "auto",
            Self::Nccl => "nccl",
            Self::Peer => "peer",
            Self::Host => "host",
        })
    }
}

/// NCCL for the first n devices, if it was tried: the result, or the reason why it does not work.
type Tried = Option<Result<Communicators, CudaError>>;

/// The connections between the devices of an engine.
#[derive(Debug)]
pub(in crate::engine) struct Links {
    pub(super) choice: Exchange,
    /// True if the device of a row can read the memory of the device of a column.
    reaches: Vec<Vec<bool>>,
    /// By the number of participating devices.
    nccl: Vec<Tried>,
}

/// The connection between the participating devices of an operation.
#[derive(Debug)]
pub(in crate::engine) struct Link<'a> {
    reaches: &'a [Vec<bool>],
    /// Number of devices.
    count: usize,
    straight: bool,
    nccl: Option<&'a mut Tried>,
}

impl Links {
    /// Determines which devices reach each other, and opens their memory to those.
    pub(super) fn new(devices: &[Cuda]) -> Result<Self, CudaError> {
        let reaches = devices.iter().map(|to| {
            let row = devices.iter().map(|from| {
                let reaches = to.named(to.context.reaches(&from.context))?;
                if reaches {
                    from.named(from.pool.open_to(&to.context))?;
                }
                Ok(reaches)
            });
            row.collect()
        });
        Ok(Self {
            choice: Exchange::default(),
            reaches: reaches.collect::<Result<_, CudaError>>()?,
            nccl: std::iter::repeat_with(|| None)
                .take(devices.len() + 1)
                .collect(),
        })
    }

    /// Returns the connection between the first `count` devices. Tries NCCL if that is wanted and was not tried yet.
    ///
    /// # Errors
    /// [`CudaError::Nccl`] if NCCL is required and fails.
    pub(in crate::engine) fn between(
        &mut self,
        devices: &[Cuda],
        count: usize,
    ) -> Result<Link<'_>, CudaError> {
        let must = self.choice == Exchange::Nccl;
        let mut link = Link {
            reaches: &self.reaches,
            count,
            straight: self.choice != Exchange::Host,
            nccl: None,
        };
        let Some(tried) = self.nccl.get_mut(count) else {
            return Ok(link);
        };
        // With one device nothing is exchanged.
        if count < 2 || !(must || self.choice == Exchange::Auto) {
            return Ok(link);
        }
        // It may have failed for lack of memory: if NCCL is required, it is tried again.
        if tried.is_none() || (must && matches!(tried, Some(Err(_)))) {
            *tried = Some(Communicators::new(&devices[..count]));
        }
        match tried {
            Some(Err(error)) if must => return Err(error.clone()),
            Some(Ok(_)) => link.nccl = Some(tried),
            _ => {}
        }
        Ok(link)
    }
}

impl Link<'_> {
    /// Returns NCCL, if it is used.
    pub(in crate::engine) fn nccl(&mut self) -> Option<&mut Communicators> {
        match self.nccl.as_deref_mut() {
            Some(Some(Ok(communicators))) => Some(communicators),
            _ => None,
        }
    }

    /// Ends NCCL's running work. From now on copies are used; the next request for a link gets new communicators.
    pub(in crate::engine) fn abort(&mut self) {
        if let Some(Ok(communicators)) = self.nccl.take().and_then(Option::take) {
            communicators.abort();
        }
    }

    /// True if a device copies directly from another's memory.
    pub(in crate::engine) fn straight(&self, to: usize, from: usize) -> bool {
        self.straight && self.reaches[to][from]
    }

    /// Returns the way of exchange: never [`Exchange::Auto`], and the host's if no device reaches any other.
    pub(in crate::engine) fn way(&self) -> Exchange {
        if matches!(self.nccl.as_deref(), Some(Some(Ok(_)))) {
            return Exchange::Nccl;
        }
        let count = self.count;
        let mut pairs = (0..count).flat_map(|to| (0..count).map(move |from| (to, from)));
        if pairs.any(|(to, from)| (to != from || count == 1) && self.straight(to, from)) {
            Exchange::Peer
        } else {
            Exchange::Host
        }
    }
}
