//! Checks whether a device has room for a job before the job begins.

use tercet_host::engine::EngineError;

use super::{Job, Location, Operation};

/// Jobs from this many bytes on are large: asking the driver takes some microseconds, a tenth of the time to copy so
/// much.
const LARGE: usize = 16 << 20;

/// Returns the bytes that must be on the device at once: points, and twice the bytes of the returned labels and
/// distances. All other data passes through the device in parts (`crate::engine`), or is already there.
fn needed(job: &Job) -> Option<[usize; 2]> {
    let bytes = |amount: u64| usize::try_from(amount).unwrap_or(usize::MAX);
    let clusters = matches!(job.operation, Operation::Kmeans | Operation::Assign);
    // A coordinate is one byte.
    let needed = [bytes(job.elements), bytes(job.bytes_out.saturating_mul(2))];
    // Held data is already there; the call itself reports if there is no room beside it.
    (clusters && job.place == Location::Host && job.held == 0).then_some(needed)
}

/// True if a job may begin. `has_room` asks the device; small jobs may always begin.
pub(super) fn is_there(job: &Job, has_room: impl FnOnce(&[usize]) -> bool) -> bool {
    let Some(needed) = needed(job) else {
        return true;
    };
    let large = needed.iter().any(|&bytes| bytes >= LARGE);
    !large || has_room(&needed)
}

/// Returns the error of a job without room.
pub(super) fn refused(job: &Job) -> EngineError {
    let [first, second] = needed(job).unwrap_or_default();
    let total = first.saturating_add(second);
    EngineError::NoRoom(format!("no room on the device for {total} bytes").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_large_jobs_that_must_be_there_whole_are_asked_about() {
        // Points of 16 bytes, with two labels and distances each.
        let points = |count| Job::points(Operation::Assign, count, 16, 4);
        let asked = |job: &Job| {
            let mut bytes = None;
            let answer = is_there(job, |needed| {
                bytes = Some(needed.to_vec());
                false
            });
            assert_eq!(answer, bytes.is_none());
            bytes
        };
        assert_eq!(asked(&points(1000)), None);
        let large = points(1 << 20);
        assert_eq!(asked(&large), Some(vec![16 << 20, 16 << 20]));
        assert!(is_there(&large, |_| true));
        assert_eq!(asked(&large.at(Location::Device)), None);
        assert!(asked(&Job::kmeans(1 << 20, 16, 8, 100, 3)).is_some());
        // The data passes through in parts.
        assert_eq!(asked(&Job::among(1 << 20, 64, 1, 10, 10)), None);
        let text = refused(&large).to_string();
        assert!(
            text.contains("no room on the device for 33554432 bytes"),
            "{text}"
        );
    }
}
