//! Runs a microcontroller's program in QEMU: starts it, reads its output, and ends it if it takes too long, writes too
//! much or is given up.
//!
//! The firmware's runner compiles this file too, so that there is only one; it needs only the standard library.

use std::io::{self, ErrorKind, Read, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Time between two checks whether an emulator has ended.
const PAUSE: Duration = Duration::from_millis(10);
/// Time to wait for an emulator's last words after it has ended, and for its version.
const LATER: Duration = Duration::from_secs(1);
/// Maximum bytes of its last words.
const WORDS: usize = 4096;

/// Running emulators, which an interrupt must end.
static RUNNING: Mutex<Vec<Child>> = Mutex::new(Vec::new());

/// Limits of a program.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Time from its start to its end.
    pub time: Duration,
    /// Bytes that it writes to stdout.
    pub bytes: usize,
}

/// How a program ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// By itself; the text is the last line on stderr.
    Status(ExitStatus, String),
    /// It took too long, and was ended.
    Time,
    /// It wrote too much, and was ended.
    Bytes,
}

/// An emulator that runs a program. It is ended when dropped.
#[derive(Debug)]
pub struct Emulator {
    id: u32,
    until: Instant,
    bytes_left: usize,
    over: Option<Ending>,
    out: Receiver<Vec<u8>>,
    last_words: Receiver<String>,
}

impl Emulator {
    /// Starts `program arguments… image`. If `echo` is set, its stderr also goes to that of this process.
    ///
    /// # Errors
    /// The emulator does not start. If it is not installed, the error says how to get it.
    pub fn start(
        program: &str,
        arguments: &[String],
        image: &Path,
        limits: Limits,
        echo: bool,
    ) -> Result<Self, String> {
        let mut command = Command::new(program);
        command.args(arguments).arg(image);
        Self::spawn(command, limits, echo).map_err(|error| does_not_start(program, &error))
    }

    fn spawn(mut command: Command, limits: Limits, echo: bool) -> io::Result<Self> {
        let until = Instant::now() + limits.time;
        command.stdin(Stdio::null());
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let (out, err) = (child.stdout.take(), child.stderr.take());
        let id = child.id();
        let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
        running.push(child);
        drop(running);
        Ok(Self {
            id,
            until,
            bytes_left: limits.bytes,
            over: None,
            out: reader(out),
            last_words: last_words(err, echo),
        })
    }

    /// Waits for the end, or forces it. Output that was not read before is lost.
    ///
    /// # Errors
    /// The system's.
    pub fn end(mut self) -> Result<Ending, String> {
        if let Some(over) = self.over.take() {
            return Ok(over);
        }
        let status = self.wait().map_err(|error| format!("QEMU: {error}"))?;
        Ok(status.map_or(Ending::Time, |status| {
            // If another process holds the stream open, only these words are lost.
            let words = self.last_words.recv_timeout(LATER);
            Ending::Status(status, words.unwrap_or_default())
        }))
    }

    fn wait(&self) -> io::Result<Option<ExitStatus>> {
        loop {
            if let Some(status) = self.with(Child::try_wait).transpose()?.flatten() {
                return Ok(Some(status));
            }
            if Instant::now() >= self.until {
                return Ok(None);
            }
            thread::sleep(PAUSE);
        }
    }

    /// Calls `work` with the child, which only this handle can remove.
    fn with<T>(&self, work: impl FnOnce(&mut Child) -> T) -> Option<T> {
        let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
        let child = running.iter_mut().find(|child| child.id() == self.id)?;
        Some(work(child))
    }
}

/// Returns the program's output, piece by piece, until it closes its output or exceeds a limit.
impl Iterator for Emulator {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        if self.over.is_some() {
            return None;
        }
        let left = self.until.saturating_duration_since(Instant::now());
        match self.out.recv_timeout(left) {
            Ok(more) => match self.bytes_left.checked_sub(more.len()) {
                Some(left) => {
                    self.bytes_left = left;
                    return Some(more);
                }
                None => self.over = Some(Ending::Bytes),
            },
            Err(RecvTimeoutError::Timeout) => self.over = Some(Ending::Time),
            // It may still run.
            Err(RecvTimeoutError::Disconnected) => {}
        }
        None
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = running.iter().position(|child| child.id() == self.id) {
            let mut child = running.swap_remove(at);
            drop(running);
            // For one that has ended, this only waits.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Ends all emulators, at the end of the process. Threads that wait for them continue as if the emulators had ended by
/// themselves.
pub fn abandon() {
    let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
    for child in running.iter_mut() {
        // One that has ended does not need this.
        let _ = child.kill();
    }
}

/// Checks that an emulator starts; its output does not matter.
///
/// # Errors
/// The emulator does not start.
pub fn try_out(program: &str) -> io::Result<()> {
    let mut command = Command::new(program);
    command.arg("--version");
    let limits = Limits {
        time: LATER,
        bytes: usize::MAX,
    };
    let emulator = Emulator::spawn(command, limits, false)?;
    let _ = emulator.wait();
    Ok(())
}

/// Returns a message that an emulator does not start, and if it is not installed, how to get it.
pub fn does_not_start(program: &str, error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => format!("no {program}: {}", how_to_get(program)),
        _ => format!("{program}: {error}"),
    }
}

/// Returns the packages that contain an emulator of that name.
pub fn how_to_get(program: &str) -> String {
    let package = if program.ends_with("arm") {
        "qemu-system-arm"
    } else {
        "qemu-system-misc"
    };
    format!("apt-get install {package}, brew install qemu, or https://www.qemu.org/download")
}

/// Reads in a thread, because a read has no time limit. Only a few pieces wait to be taken, so that a flood of output
/// stays outside.
fn reader(pipe: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (send, received) = mpsc::sync_channel(16);
    thread::spawn(move || pieces(pipe, |piece| send.send(piece.to_vec()).is_ok()));
    received
}

/// Returns the last line at the end of the stream, shortened.
fn last_words(pipe: Option<impl Read + Send + 'static>, echo: bool) -> Receiver<String> {
    let (send, received) = mpsc::sync_channel(1);
    thread::spawn(move || {
        let mut bytes = Vec::new();
        pieces(pipe, |piece| {
            if echo {
                // There is nobody to report the error to.
                let _ = io::stderr().write_all(piece);
            }
            bytes.extend(piece);
            let past = bytes.len().saturating_sub(WORDS);
            bytes.drain(..past);
            true
        });
        let text = String::from_utf8_lossy(&bytes);
        let last = text.lines().map(str::trim).rfind(|line| !line.is_empty());
        // Nobody may be waiting any more.
        let _ = send.send(last.unwrap_or_default().chars().take(200).collect());
    });
    received
}

/// Calls `take` with each piece, until that returns false or there is no more.
fn pieces(pipe: Option<impl Read>, mut take: impl FnMut(&[u8]) -> bool) {
    let Some(mut pipe) = pipe else { return };
    let mut buffer = [0; 4096];
    while let Ok(length @ 1..) = pipe.read(&mut buffer) {
        if !take(&buffer[..length]) {
            break;
        }
    }
}
