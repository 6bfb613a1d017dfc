//! Ways for sums and centroids to cross between devices.

use std::fmt;

use crate::engine::nccl::Communicators;
use crate::engine::{Cuda, CudaError};

/// How k-means' sums and centroids cross between the devices of a [`super::Cudas`]. Results have the same bits by every way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Exchange {
    /// By NCCL where it is installed and takes these devices, else as [`Exchange::Peer`].
    #[default]
    Auto,
    /// By NCCL (`libnccl.so.2`, 2.4 or newer, looked for when it is first needed), or not at all.
    Nccl,
    /// By copies from device to device (`cuMemcpyPeerAsync`); through pinned memory of the host between those that do not reach
    /// each other.
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

/// NCCL for the first n devices, as far as it was tried: what it gave, or why it does not work.
type Tried = Option<Result<Communicators, CudaError>>;

/// What lies between the devices of an engine.
#[derive(Debug)]
pub(in crate::engine) struct Links {
    pub(super) choice: Exchange,
    /// Whether the device of a row can read the memory of that of a column.
    reaches: Vec<Vec<bool>>,
    /// By the number of devices that take part.
    nccl: Vec<Tried>,
}

/// What lies between those devices that take part in something.
#[derive(Debug)]
pub(in crate::engine) struct Link<'a> {
    reaches: &'a [Vec<bool>],
    /// How many there are.
    count: usize,
    straight: bool,
    nccl: Option<&'a mut Tried>,
}

impl Links {
    /// Finds out which devices reach each other, and opens their memory to those.
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

    /// What lies between the first `count` devices. Tries NCCL where that is wanted and was not yet.
    ///
    /// # Errors
    /// [`CudaError::Nccl`] where it must be NCCL and cannot.
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
        // Nothing crosses where there is one.
        if count < 2 || !(must || self.choice == Exchange::Auto) {
            return Ok(link);
        }
        // What failed may have been for want of memory: who insists has it tried again.
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
    /// NCCL, where things cross by it.
    pub(in crate::engine) fn nccl(&mut self) -> Option<&mut Communicators> {
        match self.nccl.as_deref_mut() {
            Some(Some(Ok(communicators))) => Some(communicators),
            _ => None,
        }
    }

    /// Ends what NCCL has under way. From now on things cross by copies; the next to ask for a link gets other communicators.
    pub(in crate::engine) fn abort(&mut self) {
        if let Some(Ok(communicators)) = self.nccl.take().and_then(Option::take) {
            communicators.abort();
        }
    }

    /// Whether a device copies straight from another's memory.
    pub(in crate::engine) fn straight(&self, to: usize, from: usize) -> bool {
        self.straight && self.reaches[to][from]
    }

    /// The way that things take: not [`Exchange::Auto`]. The host's where no device reaches any other.
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
