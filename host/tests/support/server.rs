//! Scripts of outside references, run by Pythons that have imported what these share.

use std::cell::RefCell;
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::Value;

/// A running `server.py`, which ends with its input.
struct Server {
    process: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

thread_local! {
    /// That of the test which the thread runs: it ends with it.
    static SERVER: RefCell<Option<Server>> = const { RefCell::new(None) };
}

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
        let output = process.stdout.take().map(BufReader::new);
        Ok(Self {
            input: process.stdin.take(),
            output: output.expect("is piped"),
            process,
        })
    }

    fn ask(&mut self, script: &[String]) -> io::Result<Value> {
        let input = self.input.as_mut().expect("is there until it ends");
        writeln!(input, "{}", serde_json::to_string(script)?)?;
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        Ok(serde_json::from_str(&line)?)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.input.take());
        // A test that failed has said why.
        let _ = self.process.wait();
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
    let asked = SERVER.with_borrow_mut(|server| {
        if server.is_none() {
            *server = Some(Server::start(python)?);
        }
        server.as_mut().expect("has started").ask(&words)
    });
    let answer = asked.map_err(|error| format!("by {}: {error}", python.display()))?;
    let [out, err] = ["out", "err"].map(|name| answer[name].as_str().unwrap_or_default());
    if answer["status"] == 0 {
        Ok(out.to_owned())
    } else {
        Err(format!("failed ({}):\n{out}{err}", answer["status"]))
    }
}
