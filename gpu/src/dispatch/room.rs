//! Whether a device has room for a job, before it is begun.

use tercet_host::engine::Fault;

use super::engine::Device;
use super::{Job, Operation, Place};

/// Bytes from which on a job is large: asking the driver takes some microseconds, what is copied meanwhile a tenth of that.
const LARGE: usize = 16 << 20;

/// What must be on the device at once: points, and as much again as comes back of labels and distances. All else passes through it in
/// parts (`crate::engine`), or lies there already.
fn needed(job: &Job) -> Option<[usize; 2]> {
    let bytes = |amount: u64| usize::try_from(amount).unwrap_or(usize::MAX);
    let clusters = matches!(job.operation, Operation::Kmeans | Operation::Assign);
    // A coordinate is a byte.
    let needed = [bytes(job.elements), bytes(job.bytes_out.saturating_mul(2))];
    (clusters && job.place == Place::Host).then_some(needed)
}

/// Whether a job may begin: small ones always.
pub(super) fn is_there(device: &impl Device, job: &Job) -> bool {
    let Some(needed) = needed(job) else {
        return true;
    };
    let large = needed.iter().any(|&bytes| bytes >= LARGE);
    !large || device.has_room(&needed)
}

/// What a job without room fails with.
pub(super) fn refused(job: &Job) -> Fault {
    let [first, second] = needed(job).unwrap_or_default();
    let total = first.saturating_add(second);
    Fault::NoRoom(format!("no room on the device for {total} bytes").into())
}
