//! Scripts of outside references, run by Pythons that have imported what these share.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Mutex;

use serde_json::Value;

/// A running `server.py`, which ends with its input.
struct Server {
    _process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

/// Those that no test is using.
static IDLE: Mutex<Vec<Server>> = Mutex::new(Vec::new());

impl Server {
    fn start(python: &Path) -> io::Result<Self> {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../host/tests/reference/server.py"
        );
        // Tests run beside each other: of more threads each would wait for those of the others, and not asleep.
        let mut process = Command::new(python)
            .arg(path)
            .envs([("OMP_NUM_THREADS", "1"), ("OPENBLAS_NUM_THREADS", "1")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (input, output) = (process.stdin.take(), process.stdout.take());
        Ok(Self {
            _process: process,
            input: input.expect("is piped"),
            output: BufReader::new(output.expect("is piped")),
        })
    }

    fn ask(&mut self, script: &[String]) -> io::Result<Value> {
        writeln!(self.input, "{}", serde_json::to_string(script)?)?;
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        Ok(serde_json::from_str(&line)?)
    }
}

/// Runs a script and gives its standard output, or what it failed with.
pub(super) fn run(
    python: &Path,
    script: &Path,
    args: impl Iterator<Item = OsString>,
) -> Result<String, String> {
    let words = [script.into()].into_iter().chain(args);
    let words: Result<Vec<String>, _> = words.map(OsString::into_string).collect();
    let words = words.map_err(|word| format!("cannot take {word:?}, which is not UTF-8"))?;
    let idle = IDLE.lock().expect("no test fails in here").pop();
    let asked = idle
        .map_or_else(|| Server::start(python), Ok)
        .and_then(|mut server| Ok((server.ask(&words)?, server)));
    let (answer, server) = asked.map_err(|error| format!("by {}: {error}", python.display()))?;
    IDLE.lock().expect("no test fails in here").push(server);
    let [out, err] = ["out", "err"].map(|name| answer[name].as_str().unwrap_or_default());
    if answer["status"] == 0 {
        Ok(out.to_owned())
    } else {
        Err(format!("failed ({}):\n{out}{err}", answer["status"]))
    }
}
