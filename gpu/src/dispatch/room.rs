//! Whether a device has room for a job, before it is begun.

use tercet_host::engine::EngineError;

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
    // What is held is there, with room beside it or none: the call says so.
    (clusters && job.place == Place::Host && job.held == 0).then_some(needed)
}

/// Whether a job may begin, of a device that says whether it has room: small ones always.
pub(super) fn is_there(job: &Job, has_room: impl FnOnce(&[usize]) -> bool) -> bool {
    let Some(needed) = needed(job) else {
        return true;
    };
    let large = needed.iter().any(|&bytes| bytes >= LARGE);
    !large || has_room(&needed)
}

/// What a job without room fails with.
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
        // Points of 16 bytes, two labels and distances for each.
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
        assert_eq!(asked(&large.at(Place::Device)), None);
        assert!(asked(&Job::kmeans(1 << 20, 16, 8, 100, 3)).is_some());
        // It passes through in parts.
        assert_eq!(asked(&Job::among(1 << 20, 64, 1, 10, 10)), None);
        let text = refused(&large).to_string();
        assert!(
            text.contains("no room on the device for 33554432 bytes"),
            "{text}"
        );
    }
}
