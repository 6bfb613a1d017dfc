//! Runs an image on an emulated board, and decodes its output.

use std::fs;
use std::path::Path;
use std::time::Duration;

use tercet_firmware_runner::qemu::{self, Emulator, Limits};

use super::decode::Decoder;

/// Result of a run.
#[derive(Debug)]
pub struct Run {
    /// The decoded output of the program.
    pub lines: Vec<String>,
    /// The end of the run.
    pub ending: Ending,
}

/// The end of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The program ended with this exit status; 255 stands for a signal.
    Status(u8),
    /// The run was stopped after this time.
    TimeLimit(Duration),
}

/// Runs an image with `runner`, to which it is appended, for at most `limit`. `line` gets each line when it arrives.
/// The program's stderr goes to stderr.
///
/// # Errors
/// The image cannot be read; QEMU cannot be started (the error tells how to get it); or the output cannot be decoded.
pub fn run(
    runner: &[String],
    image: &Path,
    limit: Duration,
    mut line: impl FnMut(&str),
) -> Result<Run, String> {
    let bytes = fs::read(image).map_err(|error| format!("{}: {error}", image.display()))?;
    let decoder = Decoder::new(&bytes)?;
    let (program, arguments) = runner.split_first().ok_or("no runner")?;
    let limits = Limits {
        time: limit,
        bytes: usize::MAX,
    };
    let mut emulator = Emulator::start(program, arguments, image, limits, true)?;
    let mut lines = Vec::new();
    let decoded = decoder.lines(
        || emulator.next(),
        |text| {
            line(text);
            lines.push(text.to_owned());
        },
    );
    let ending = match emulator.end()? {
        // If the run was stopped, the last frame may be cut off.
        qemu::Ending::Time | qemu::Ending::Bytes => Ending::TimeLimit(limit),
        qemu::Ending::Status(status, _) => {
            decoded?;
            Ending::Status(status.code().map_or(255, |code| code as u8))
        }
    };
    Ok(Run { lines, ending })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::path::PathBuf;

    use super::*;

    /// Runs a shell program instead of QEMU. The image is an ELF file without defmt, the test itself.
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
