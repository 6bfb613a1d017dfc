//! Images on emulated boards, as many at once as the machine has threads.

use std::io::{self, Read};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tercet_core::conformance;

use super::board::{Board, Emulator};

/// The suite prints some 10 KB.
const MOST: usize = 1 << 20;
/// Between two looks at whether an emulator has ended.
const PAUSE: Duration = Duration::from_millis(10);
/// What an emulator may still have to say when it has ended.
const LATER: Duration = Duration::from_secs(1);
/// Bytes of that.
const WORDS: usize = 4096;

/// Emulators that run, for an interrupt to end.
static RUNNING: Mutex<Vec<Child>> = Mutex::new(Vec::new());

/// What an image printed, and how long that took.
#[derive(Debug, Default)]
pub(super) struct Printed {
    pub(super) digests: Vec<(&'static str, u64)>,
    pub(super) seconds: f64,
    /// Why there is no more; none where the image ended as it should.
    pub(super) failed: Option<String>,
}

/// Ends all emulators. For the end of the process: what waits for them goes on as if they had ended by themselves.
pub(crate) fn abandon() {
    let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
    for child in running.iter_mut() {
        // One that has ended needs no end.
        let _ = child.kill();
    }
}

/// Runs all images of all boards, each for at most `limit`; a list for each board, in its images' order. `done` hears how many have ended.
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
            ending.failure(limit).or(read.err())
        }
        Err(reason) => Some(reason),
    };
    printed.failed = failed.map(|reason| {
        let last = printed.digests.last();
        let last = last.map_or_else(String::new, |(last, _)| {
            format!("; the last to come was {last}")
        });
        format!("{name}: {reason}{last}")
    });
    printed.seconds = start.elapsed().as_secs_f64();
    printed
}

/// How an emulator ended.
enum Ending {
    /// By itself; the words are its last on stderr.
    Status(ExitStatus, String),
    /// It took too long.
    Limit,
    /// It printed too much.
    Flood,
}

impl Ending {
    /// Why this is no success.
    fn failure(&self, limit: Duration) -> Option<String> {
        match self {
            Self::Status(status, _) if status.code() == Some(0) => None,
            Self::Status(status, said) if said.is_empty() => Some(format!("it failed: {status}")),
            Self::Status(_, said) => Some(format!("it failed: {said}")),
            Self::Limit => Some(format!("ended after {} s", limit.as_secs())),
            Self::Flood => Some(format!(
                "ended after {MOST} bytes, more than the suite prints"
            )),
        }
    }
}

fn run(board: &Board, image: &Path, limit: Duration) -> Result<(String, Ending), String> {
    let end = Instant::now() + limit;
    let child = start(board.emulator, &board.arguments, Some(image))?;
    let mut child = Running::new(child);
    let (out, err) = child.streams();
    let mut bytes = Vec::new();
    let ending = loop {
        match out.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(more) => bytes.extend(more),
            Err(RecvTimeoutError::Timeout) => break Some(Ending::Limit),
            Err(RecvTimeoutError::Disconnected) => break None,
        }
        if bytes.len() > MOST {
            break Some(Ending::Flood);
        }
    };
    let ending = match ending {
        Some(ending) => ending,
        // An emulator that closed its output may still run.
        None => match child.wait(end).map_err(|error| error.to_string())? {
            None => Ending::Limit,
            // Where something else holds the stream open, nothing is lost but words.
            Some(status) => Ending::Status(status, err.recv_timeout(LATER).unwrap_or_default()),
        },
    };
    Ok((String::from_utf8_lossy(&bytes).into_owned(), ending))
}

/// Whether the emulators of all boards are installed; which is not, otherwise, and how to install it.
pub(super) fn installed(boards: &[Board]) -> Result<(), String> {
    for emulator in Emulator::ALL {
        if boards.iter().any(|board| board.emulator == emulator) {
            let mut child = Running::new(start(emulator, &["--version".to_owned()], None)?);
            // Its answer does not matter: that it starts does.
            let _ = child.wait(Instant::now() + LATER);
        }
    }
    Ok(())
}

fn start(emulator: Emulator, arguments: &[String], image: Option<&Path>) -> Result<Child, String> {
    let program = emulator.program();
    let child = Command::new(program)
        .args(arguments)
        .args(image)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    child.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => format!("no {program}; {}", emulator.package()),
        _ => format!("{program}: {error}"),
    })
}

/// An emulator that runs; ended where nobody waits for it any more.
struct Running {
    id: u32,
}

impl Running {
    fn new(child: Child) -> Self {
        let id = child.id();
        RUNNING
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(child);
        Self { id }
    }

    /// With the child, whom only this handle takes away.
    fn with<T>(&self, work: impl FnOnce(&mut Child) -> T) -> Option<T> {
        let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
        let child = running.iter_mut().find(|child| child.id() == self.id)?;
        Some(work(child))
    }

    /// What it writes to stdout, as it comes, and its last line on stderr, when it has ended.
    fn streams(&self) -> (Receiver<Vec<u8>>, Receiver<String>) {
        let pipes = self.with(|child| (child.stdout.take(), child.stderr.take()));
        let (out, err) = pipes.unwrap_or_default();
        (reader(out), last_line(err))
    }

    fn wait(&mut self, end: Instant) -> io::Result<Option<ExitStatus>> {
        loop {
            if let Some(status) = self.with(Child::try_wait).transpose()?.flatten() {
                return Ok(Some(status));
            }
            if Instant::now() >= end {
                return Ok(None);
            }
            thread::sleep(PAUSE);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = running.iter().position(|child| child.id() == self.id) {
            let mut child = running.swap_remove(at);
            drop(running);
            // One that has ended is only waited for.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Reads in a thread, since a read cannot be given a time. A few pieces wait to be taken, so that a flood stays outside.
fn reader(pipe: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (send, received) = mpsc::sync_channel(16);
    thread::spawn(move || pieces(pipe, |piece| send.send(piece.to_vec()).is_ok()));
    received
}

/// The last line, short, at the stream's end.
fn last_line(pipe: Option<impl Read + Send + 'static>) -> Receiver<String> {
    let (send, received) = mpsc::sync_channel(1);
    thread::spawn(move || {
        let mut bytes = Vec::new();
        pieces(pipe, |piece| {
            bytes.extend(piece);
            let past = bytes.len().saturating_sub(WORDS);
            bytes.drain(..past);
            true
        });
        let text = String::from_utf8_lossy(&bytes);
        let last = text.lines().map(str::trim).rfind(|line| !line.is_empty());
        // Nobody may wait any more.
        let _ = send.send(last.unwrap_or_default().chars().take(200).collect());
    });
    received
}

/// Gives `take` what comes, until that has enough or there is no more.
fn pieces(pipe: Option<impl Read>, mut take: impl FnMut(&[u8]) -> bool) {
    let Some(mut pipe) = pipe else { return };
    let mut buffer = [0; 4096];
    while let Ok(length @ 1..) = pipe.read(&mut buffer) {
        if !take(&buffer[..length]) {
            break;
        }
    }
}

/// The digests of what an image printed: a line each, `#` before what is for people.
fn read(text: &str, digests: &mut Vec<(&'static str, u64)>) -> Result<(), String> {
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let short = || line.chars().take(80).collect::<String>();
        let (name, digest) = line
            .split_once(' ')
            .and_then(|(name, digest)| Some((name, u64::from_str_radix(digest.trim(), 16).ok()?)))
            .ok_or_else(|| format!("{:?} is no digest", short()))?;
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
            ("panicked", "\"panicked\" is no digest"),
            ("number/random 12zz", "is no digest"),
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
