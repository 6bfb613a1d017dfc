//! A peer in a separate process: of Python, which `peers/serve.py` runs, or of Rust (`peers/rust`).

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use super::environment;

/// The process.
#[derive(Debug)]
pub struct Process {
    child: Child,
    /// `None` only when the process must end.
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    /// The peer's name and version.
    pub about: About,
}

/// A peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Module {
    /// A module of `peers/contenders`, such as `numpy_`.
    Python(&'static str),
    /// A peer of `peers/rust`, such as `linfa`.
    Rust(&'static str),
}

impl Module {
    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Python(name) => name.trim_end_matches('_'),
            Self::Rust(name) => name,
        }
    }
}

/// The programs that run modules, if available.
#[derive(Clone, Debug, Default)]
pub struct Programs {
    /// The interpreter.
    pub python: Option<PathBuf>,
    /// The program that `peers/rust` compiles to.
    pub rust: Option<PathBuf>,
}

/// Description of a peer.
#[derive(Clone, Debug, Deserialize)]
pub struct About {
    /// Name, such as `NumPy`.
    pub name: String,
    /// Version, such as `2.4.6`.
    pub version: String,
    /// The work that it can do.
    pub work: Vec<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Here {
    Yes(About),
    No { missing: String },
}

#[derive(Deserialize)]
struct Nothing {}

#[derive(Deserialize)]
struct Loaded {
    failed: Option<String>,
}

#[derive(Deserialize)]
struct Seconds {
    seconds: f64,
}

/// The result of a run: little-endian values, by name.
#[derive(Clone, Debug, Default)]
pub struct Answer(BTreeMap<String, Vec<u8>>);

impl Process {
    /// Starts a module; `Ok(Err(why))` if it lacks something that it needs.
    ///
    /// # Errors
    /// Its program does not start.
    pub fn start(programs: &Programs, module: Module) -> io::Result<Result<Self, String>> {
        let (program, script, name) = match module {
            Module::Python(name) => (&programs.python, Some("peers/serve.py"), name),
            Module::Rust(name) => (&programs.rust, None, name),
        };
        let Some(program) = program else {
            return Ok(Err("nothing to run it with".into()));
        };
        let mut child = Command::new(program)
            .args(script.map(environment::file))
            .arg(name)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let requests = child.stdin.take();
        let mut answers = BufReader::new(child.stdout.take().expect("it is piped"));
        match read(&mut answers)? {
            Here::Yes(about) => Ok(Ok(Self {
                child,
                requests,
                answers,
                about,
            })),
            Here::No { missing } => {
                child.wait()?;
                Ok(Err(missing))
            }
        }
    }

    /// Gives it files and lets it do the work once; `Ok(Err(why))` if it cannot, for example for lack of memory.
    ///
    /// # Errors
    /// The process ends, as it does if later work fails; standard error then has a traceback.
    pub fn load(
        &mut self,
        what: &str,
        files: &BTreeMap<String, String>,
        options: &Value,
        threads: usize,
    ) -> io::Result<Result<(), String>> {
        let request = json!({"do": "load", "what": what, "files": files, "options": options, "threads": threads});
        let Loaded { failed } = self.ask(&request)?;
        Ok(failed.map_or(Ok(()), Err))
    }

    /// Returns the seconds of the shortest of `n` runs.
    ///
    /// # Errors
    /// Those of [`Process::load`].
    pub fn run(&mut self, what: &str, phase: usize, n: u32) -> io::Result<f64> {
        let request = json!({"do": "run", "what": what, "phase": phase, "n": n});
        self.ask(&request).map(|Seconds { seconds }| seconds)
    }

    /// Returns the result of the last run.
    ///
    /// # Errors
    /// Those of [`Process::load`].
    pub fn answer(&mut self, what: &str) -> io::Result<Answer> {
        let folder = environment::folder().join("answers");
        fs::create_dir_all(&folder)?;
        let request = json!({"do": "answer", "what": what, "folder": folder});
        let files: BTreeMap<String, String> = self.ask(&request)?;
        let mut answer = Answer::default();
        for (name, file) in files {
            answer.0.insert(name, fs::read(file)?);
        }
        fs::remove_dir_all(folder)?;
        Ok(answer)
    }

    /// Lets it free its data.
    ///
    /// # Errors
    /// Those of [`Process::load`].
    pub fn drop_work(&mut self) -> io::Result<()> {
        self.ask::<Nothing>(&json!({"do": "drop"})).map(|_| ())
    }

    fn ask<T: DeserializeOwned>(&mut self, request: &Value) -> io::Result<T> {
        let ended = || io::Error::from(io::ErrorKind::BrokenPipe);
        writeln!(self.requests.as_mut().ok_or_else(ended)?, "{request}")?;
        read(&mut self.answers)
    }
}

/// Reads the next answer.
fn read<T: DeserializeOwned>(answers: &mut impl BufRead) -> io::Result<T> {
    let mut line = String::new();
    if answers.read_line(&mut line)? == 0 {
        let ended = "the peer's process ended";
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, ended));
    }
    Ok(serde_json::from_str(&line)?)
}

impl Drop for Process {
    fn drop(&mut self) {
        // The process ends when its input ends.
        self.requests = None;
        let _ = self.child.wait();
    }
}

impl Answer {
    /// Makes an answer of one array of raw bytes, from a peer of this process.
    pub fn of(name: &str, bytes: &[u8]) -> Self {
        Self(BTreeMap::from([(name.to_owned(), bytes.to_vec())]))
    }

    /// Makes an answer of one array of f32 in the same way.
    pub fn of_floats(name: &str, values: &[f32]) -> Self {
        let bytes: Vec<u8> = values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect();
        Self::of(name, &bytes)
    }

    /// Adds another array.
    #[must_use]
    pub fn and(mut self, name: &str, bytes: &[u8]) -> Self {
        self.0.insert(name.to_owned(), bytes.to_vec());
        self
    }

    /// Returns the bytes of an array.
    ///
    /// # Panics
    /// If the answer has no such array.
    pub fn bytes(&self, name: &str) -> &[u8] {
        let found = self.0.get(name);
        found.unwrap_or_else(|| panic!("the answer has no {name}"))
    }

    /// Returns an array of int8.
    pub fn i8(&self, name: &str) -> Vec<i8> {
        self.bytes(name).iter().map(|&byte| byte as i8).collect()
    }

    /// Returns an array of u32, or of an int32 that is not negative.
    pub fn u32(&self, name: &str) -> Vec<u32> {
        self.values(name, u32::from_le_bytes)
    }

    /// Returns an array of f32.
    pub fn f32(&self, name: &str) -> Vec<f32> {
        self.values(name, f32::from_le_bytes)
    }

    /// Returns an array of f64.
    pub fn f64(&self, name: &str) -> Vec<f64> {
        self.values(name, f64::from_le_bytes)
    }

    fn values<T, const N: usize>(&self, name: &str, value: fn([u8; N]) -> T) -> Vec<T> {
        let (values, _) = self.bytes(name).as_chunks::<N>();
        values.iter().map(|&bytes| value(bytes)).collect()
    }
}
