//! Starts QEMU, hears it out, and ends it where it takes too long.

use std::io::{ErrorKind, Read};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};
use std::{fs, thread};

use tercet_firmware_runner::needs::how_to_get;

use super::decode::Decoder;

/// What a run was.
#[derive(Debug)]
pub struct Run {
    /// What the program wrote, decoded.
    pub lines: Vec<String>,
    /// How it ended.
    pub ending: Ending,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// By itself, with this exit status; 255 stands for a signal.
    Status(u8),
    /// It was ended after this time.
    TimeLimit(Duration),
}

/// Runs an image by `runner`, which it is appended to, for at most `limit`. `line` gets each line as it comes; what the program writes
/// to stderr goes to stderr.
///
/// # Errors
/// The image cannot be read, QEMU cannot be started, with how to get it, or what comes cannot be decoded.
pub fn run(
    runner: &[String],
    image: &Path,
    limit: Duration,
    mut line: impl FnMut(&str),
) -> Result<Run, String> {
    let bytes = fs::read(image).map_err(|error| format!("{}: {error}", image.display()))?;
    let decoder = Decoder::new(&bytes)?;
    let mut child = start(runner, image)?;
    let end = Instant::now() + limit;
    let received = read(&mut child);
    let mut lines = Vec::new();
    let decoded = decoder.lines(
        // Until the stream is closed or the time is over.
        || {
            received
                .recv_timeout(end.saturating_duration_since(Instant::now()))
                .ok()
        },
        |text| {
            line(text);
            lines.push(text.to_owned());
        },
    );
    // A program that closed its stream may still run.
    let ending = match wait(&mut child, end)? {
        Some(status) => Ending::Status(status.code().map_or(255, |code| code as u8)),
        None => Ending::TimeLimit(limit),
    };
    // Of one that was ended, the last frame may be cut.
    if let Ending::Status(_) = ending {
        decoded?;
    }
    Ok(Run { lines, ending })
}

fn start(runner: &[String], image: &Path) -> Result<Child, String> {
    let (program, arguments) = runner.split_first().ok_or("no runner")?;
    let child = Command::new(program)
        .args(arguments)
        .arg(image)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn();
    child.map_err(|error| match error.kind() {
        ErrorKind::NotFound => format!("no {program}: {}", how_to_get(program)),
        _ => format!("{program}: {error}"),
    })
}

/// Reads in a thread, since a read cannot be given a time.
fn read(child: &mut Child) -> Receiver<Vec<u8>> {
    let (send, received) = mpsc::channel();
    if let Some(mut stdout) = child.stdout.take() {
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(length @ 1..) = stdout.read(&mut buffer) {
                if send.send(buffer[..length].to_vec()).is_err() {
                    break;
                }
            }
        });
    }
    received
}

/// The child's status, or `None` where it had to be ended.
fn wait(child: &mut Child, end: Instant) -> Result<Option<ExitStatus>, String> {
    let wrong = |error: std::io::Error| format!("QEMU: {error}");
    loop {
        if let Some(status) = child.try_wait().map_err(wrong)? {
            return Ok(Some(status));
        }
        if Instant::now() >= end {
            child.kill().map_err(wrong)?;
            child.wait().map_err(wrong)?;
            return Ok(None);
        }
        thread::sleep(Duration::from_millis(10));
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::path::PathBuf;

    use super::*;

    /// A program of the shell in QEMU's place; the image is an ELF file without defmt, the test itself.
    fn shell(script: &str, limit: Duration) -> Run {
        let runner = ["sh", "-c", script].map(str::to_owned);
        let image: PathBuf = std::env::current_exe().expect("a test");
        run(&runner, &image, limit, |_| ()).expect("a run")
    }

    #[test]
    fn lines_and_the_exit_status_come_through() {
        let run = shell("echo one; echo two; exit 3", Duration::from_secs(20));
        assert_eq!(run.lines, ["one", "two"]);
        assert_eq!(run.ending, Ending::Status(3));
    }

    #[test]
    fn a_program_that_hangs_is_ended_and_what_it_wrote_is_kept() {
        let limit = Duration::from_millis(300);
        let run = shell("echo one; exec sleep 60", limit);
        assert_eq!(run.lines, ["one"]);
        assert_eq!(run.ending, Ending::TimeLimit(limit));
    }

    #[test]
    fn an_emulator_that_is_missing_is_named_with_its_package() {
        let runner = ["no-such-system-arm".to_owned()];
        let image = std::env::current_exe().expect("a test");
        let error = run(&runner, &image, Duration::from_secs(1), |_| ()).expect_err("no emulator");
        assert!(error.starts_with("no no-such-system-arm: apt-get install qemu-system-arm"));
    }
}
