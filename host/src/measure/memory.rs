//! Measures the memory of a call.

use std::fs;

/// Resident memory of this process around a call, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Growth {
    /// Maximum during the call.
    pub peak: u64,
    /// Growth over the state before.
    pub added: u64,
}

impl Growth {
    /// Measures a call; `None` if the system does not report it (only Linux does) or forbids it.
    ///
    /// Linux counts pages a few dozen at a time, so a growth of some hundred KiB may appear as 0. Memory that an
    /// allocator kept from earlier calls does not count again.
    pub fn of(work: impl FnOnce()) -> Option<Self> {
        // 5 resets the maximum of the resident size (proc(5)).
        let reset = fs::write("/proc/self/clear_refs", "5").is_ok();
        let before = status("VmRSS:").filter(|_| reset);
        work();
        let (before, peak) = (before?, status("VmHWM:")?);
        let added = peak.saturating_sub(before);
        Some(Self { peak, added })
    }
}

/// Returns the maximum memory of this process so far, in bytes; `None` if the system does not report it (only Linux
/// does).
pub fn peak_resident() -> Option<u64> {
    status("VmHWM:")
}

/// Returns the memory of this process now, in bytes; `None` if the system does not report it (only Linux does).
pub fn resident() -> Option<u64> {
    status("VmRSS:")
}

/// Returns a field of `/proc/self/status`, in bytes.
fn status(field: &str) -> Option<u64> {
    let text = fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(field))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}
