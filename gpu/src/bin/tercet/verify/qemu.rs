//! A program of a microcontroller in QEMU: started, heard out, and ended where it takes too long, writes too much or is given up.
//!
//! The firmware's runner compiles this file too, so that there is one; it needs the standard library alone.

use std::io::{self, ErrorKind, Read, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Between two looks at whether an emulator has ended.
const PAUSE: Duration = Duration::from_millis(10);
/// What an emulator may still have to say when it has ended, and how long it may take to tell its version.
const LATER: Duration = Duration::from_secs(1);
/// Bytes of what it says last.
const WORDS: usize = 4096;

/// Emulators that run, for an interrupt to end.
static RUNNING: Mutex<Vec<Child>> = Mutex::new(Vec::new());

/// What a program may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// From its start to its end.
    pub time: Duration,
    /// What it writes to stdout.
    pub bytes: usize,
}

/// How a program ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// By itself; the words are the last line that came on stderr.
    Status(ExitStatus, String),
    /// It took too long, and was ended.
    Time,
    /// It wrote too much, and was ended.
    Bytes,
}

/// An emulator that runs a program; ended when it is dropped.
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
    /// Starts `program arguments… image`. What comes on stderr goes to this process's, too, where `echo` says so.
    ///
    /// # Errors
    /// It does not start, with how to get it where it is not installed.
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

    /// Waits for the end, or makes it. What was not taken before is lost.
    ///
    /// # Errors
    /// The system's.
    pub fn end(mut self) -> Result<Ending, String> {
        if let Some(over) = self.over.take() {
            return Ok(over);
        }
        let status = self.wait().map_err(|error| format!("QEMU: {error}"))?;
        Ok(status.map_or(Ending::Time, |status| {
            // Where something else holds the stream open, nothing is lost but words.
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

    /// With the child, whom only this handle takes away.
    fn with<T>(&self, work: impl FnOnce(&mut Child) -> T) -> Option<T> {
        let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
        let child = running.iter_mut().find(|child| child.id() == self.id)?;
        Some(work(child))
    }
}

/// What the program writes, piece by piece, until it closes its output or goes over a limit.
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
            // One that has ended is only waited for.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Ends all emulators. For the end of the process: what waits for them goes on as if they had ended by themselves.
pub fn abandon() {
    let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
    for child in running.iter_mut() {
        // One that has ended needs no end.
        let _ = child.kill();
    }
}

/// Whether an emulator starts; its answer does not matter.
///
/// # Errors
/// It does not.
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

/// That an emulator does not start, with how to get it where it is not installed.
pub fn does_not_start(program: &str, error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => format!("no {program}: {}", how_to_get(program)),
        _ => format!("{program}: {error}"),
    }
}

/// Packages that have an emulator of that name.
pub fn how_to_get(program: &str) -> String {
    let package = if program.ends_with("arm") {
        "qemu-system-arm"
    } else {
        "qemu-system-misc"
    };
    format!("apt-get install {package}, brew install qemu, or https://www.qemu.org/download")
}

/// Reads in a thread, since a read cannot be given a time. A few pieces wait to be taken, so that a flood stays outside.
fn reader(pipe: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (send, received) = mpsc::sync_channel(16);
    thread::spawn(move || pieces(pipe, |piece| send.send(piece.to_vec()).is_ok()));
    received
}

/// The last line, short, at the stream's end.
fn last_words(pipe: Option<impl Read + Send + 'static>, echo: bool) -> Receiver<String> {
    let (send, received) = mpsc::sync_channel(1);
    thread::spawn(move || {
        let mut bytes = Vec::new();
        pieces(pipe, |piece| {
            if echo {
                // Nothing is left to tell it to.
                let _ = io::stderr().write_all(piece);
            }
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
