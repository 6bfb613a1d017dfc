//! Runs images on emulated boards, as many at once as the machine has threads.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tercet_core::conformance;

use super::board::{Board, Processor};
use super::qemu::{self, Emulator, Ending, Limits};

/// The suite prints some 10 KB.
const MOST: usize = 1 << 20;

/// The output of an image, and the time it took.
#[derive(Debug, Default)]
pub(super) struct Printed {
    pub(super) digests: Vec<(&'static str, u64)>,
    pub(super) seconds: f64,
    /// The reason if the output is incomplete; `None` if the image ended as it should.
    pub(super) failed: Option<String>,
}

/// Runs all images of all boards, each for at most `limit`. Returns a list for each board, in the order of its images.
/// Calls `done` with the number of images that have ended.
pub(super) fn all(
    boards: &[Board],
    limit: Duration,
    done: &(dyn Fn(usize) + Sync),
) -> Vec<Vec<Printed>> {
    let jobs: Vec<(usize, &Board, &Path)> = boards
        .iter()
        .enumerate()
        .flat_map(|(at, board)| board.images.iter().map(move |image| (at, board, &**image)))
        .collect();
    let (next, ended) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let printed: Vec<Mutex<Printed>> = jobs.iter().map(|_| Mutex::default()).collect();
    let work = || {
        while let Some((job, place)) = {
            let at = next.fetch_add(1, Ordering::Relaxed);
            jobs.get(at).zip(printed.get(at))
        } {
            let (_, board, image) = *job;
            let found = one(board, image, limit);
            *place.lock().unwrap_or_else(PoisonError::into_inner) = found;
            done(ended.fetch_add(1, Ordering::Relaxed) + 1);
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..threads.min(jobs.len()) {
            scope.spawn(work);
        }
    });
    let mut found: Vec<Vec<Printed>> = boards.iter().map(|_| Vec::new()).collect();
    for ((at, ..), printed) in jobs.iter().zip(printed) {
        found[*at].push(printed.into_inner().unwrap_or_else(PoisonError::into_inner));
    }
    found
}

fn one(board: &Board, image: &Path, limit: Duration) -> Printed {
    let start = Instant::now();
    let name = image.file_name().unwrap_or_default().display();
    let mut printed = Printed::default();
    let failed = match run(board, image, limit) {
        Ok((text, ending)) => {
            let read = read(&text, &mut printed.digests);
            failure(&ending, limit).or(read.err())
        }
        Err(reason) => Some(reason),
    };
    printed.failed = failed.map(|reason| {
        let last = printed.digests.last();
        let last = last.map_or_else(String::new, |(last, _)| {
            format!("; the last digest was that of {last}")
        });
        format!("{name}: {reason}{last}")
    });
    printed.seconds = start.elapsed().as_secs_f64();
    printed
}

fn run(board: &Board, image: &Path, limit: Duration) -> Result<(String, Ending), String> {
    let limits = Limits {
        time: limit,
        bytes: MOST,
    };
    let program = board.processor.emulator();
    let mut emulator = Emulator::start(program, &board.arguments, image, limits, false)?;
    let bytes: Vec<u8> = emulator.by_ref().flatten().collect();
    let ending = emulator.end()?;
    Ok((String::from_utf8_lossy(&bytes).into_owned(), ending))
}

/// Returns why an ending is a failure.
fn failure(ending: &Ending, limit: Duration) -> Option<String> {
    match ending {
        Ending::Status(status, _) if status.code() == Some(0) => None,
        Ending::Status(status, said) if said.is_empty() => Some(format!("it failed: {status}")),
        Ending::Status(_, said) => Some(format!("it failed: {said}")),
        Ending::Time => Some(format!("stopped after {} s", limit.as_secs())),
        Ending::Bytes => Some(format!(
            "stopped after {MOST} bytes, more than the suite prints"
        )),
    }
}

/// Checks that the emulators of all boards are installed; otherwise names the missing one, and how to install it.
pub(super) fn installed(boards: &[Board]) -> Result<(), String> {
    for processor in Processor::ALL {
        if boards.iter().any(|board| board.processor == processor) {
            let program = processor.emulator();
            qemu::try_out(program).map_err(|error| qemu::does_not_start(program, &error))?;
        }
    }
    Ok(())
}

/// Reads the digests from the output of an image: one per line; lines with `#` are for people.
fn read(text: &str, digests: &mut Vec<(&'static str, u64)>) -> Result<(), String> {
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let short = || line.chars().take(80).collect::<String>();
        let (name, digest) = line
            .split_once(' ')
            .and_then(|(name, digest)| Some((name, u64::from_str_radix(digest.trim(), 16).ok()?)))
            .ok_or_else(|| format!("{:?} is not a digest", short()))?;
        // Released names live as long as the program.
        let known = conformance::entries().find(|(known, _)| *known == name);
        let (name, _) =
            known.ok_or_else(|| format!("{:?} is no operation of this version", short()))?;
        digests.push((name, digest));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_digest_is_told_and_what_came_before_is_kept() {
        let (name, digest) = conformance::entries().next().unwrap();
        let line = format!("{name} {digest:016x}\r\n# 12 bytes of stack\n");
        let mut digests = Vec::new();
        assert_eq!(read(&line, &mut digests), Ok(()));
        assert_eq!(digests, [(name, digest)]);
        for (more, told) in [
            ("panicked", "\"panicked\" is not a digest"),
            ("number/random 12zz", "is not a digest"),
            (
                "number/dice 12",
                "\"number/dice 12\" is no operation of this version",
            ),
        ] {
            let mut digests = Vec::new();
            let error = read(&format!("{line}{more}\n"), &mut digests).unwrap_err();
            assert!(error.contains(told), "{error}");
            assert_eq!(digests.len(), 1);
        }
    }
}
