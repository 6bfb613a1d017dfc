//! scikit-learn and faiss, in a Python process that `peers/kmeans.py` runs.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::env;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// The process.
#[derive(Debug)]
pub struct Python {
    child: Child,
    /// `None` only once it is to end.
    requests: Option<BufWriter<ChildStdin>>,
    answers: BufReader<ChildStdout>,
    /// What it says of itself.
    pub here: Here,
}

/// What a Python has.
#[derive(Debug, Deserialize)]
pub struct Here {
    /// Of what takes part.
    pub versions: BTreeMap<String, String>,
    /// Peers that are absent, and why.
    pub missing: BTreeMap<String, String>,
    /// A safetensors file with the embeddings of 32,000 tokens, where the package `wordllama` is installed.
    pub embeddings: Option<PathBuf>,
}

/// A fit that is done.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Fit {
    /// What it took.
    pub seconds: f64,
    /// Steps of Lloyd's loop, fewer than asked for where it converged.
    pub steps: u32,
}

#[derive(Deserialize)]
struct Inertia {
    inertia: f64,
}

/// The interpreter that `TERCET_PYTHON` names, or `python3`.
pub fn interpreter() -> PathBuf {
    let named = env::var_os("TERCET_PYTHON").filter(|path| !path.is_empty());
    named.map_or_else(|| "python3".into(), PathBuf::from)
}

impl Python {
    /// Starts [`interpreter`]. Peers that it cannot import are [`Here::missing`].
    ///
    /// # Errors
    /// Where it does not start, or is no Python 3.
    pub fn start() -> io::Result<Self> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/kmeans.py");
        let mut child = Command::new(interpreter())
            .arg(script)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let requests = child.stdin.take().map(BufWriter::new);
        let mut answers = BufReader::new(child.stdout.take().expect("it is piped"));
        Ok(Self {
            here: read(&mut answers)?,
            child,
            requests,
            answers,
        })
    }

    /// Whether a peer (`scikit-learn`, `faiss`) takes part.
    pub fn has(&self, peer: &str) -> bool {
        self.here.versions.contains_key(peer)
    }

    /// Sends points, row-major, and the first centroids for the fits to come.
    ///
    /// # Errors
    /// Where the process ends.
    pub fn data(&mut self, values: &[f32], init: &[f32], dims: usize) -> io::Result<()> {
        let (n, k) = (values.len() / dims, init.len() / dims);
        self.send(&json!({"do": "data", "n": n, "d": dims, "k": k}))?;
        let requests = self.requests()?;
        for value in values.iter().chain(init) {
            requests.write_all(&value.to_le_bytes())?;
        }
        requests.flush()?;
        read::<BTreeMap<String, Value>>(&mut self.answers)?;
        Ok(())
    }

    /// Has a peer take `steps` steps on `threads` threads.
    ///
    /// # Errors
    /// Where the process ends; a traceback then stands on standard error.
    pub fn fit(&mut self, peer: &str, threads: usize, steps: u32) -> io::Result<Fit> {
        self.ask(&json!({"do": "fit", "peer": peer, "threads": threads, "steps": steps}))
    }

    /// Σ‖x − c‖² of the points to the centroids of the last fit.
    ///
    /// # Errors
    /// As [`Python::fit`].
    pub fn inertia(&mut self) -> io::Result<f64> {
        let Inertia { inertia } = self.ask(&json!({"do": "inertia"}))?;
        Ok(inertia)
    }

    fn requests(&mut self) -> io::Result<&mut BufWriter<ChildStdin>> {
        let ended = io::ErrorKind::BrokenPipe;
        self.requests.as_mut().ok_or_else(|| ended.into())
    }

    fn send(&mut self, request: &Value) -> io::Result<()> {
        let requests = self.requests()?;
        writeln!(requests, "{request}")?;
        requests.flush()
    }

    fn ask<T: DeserializeOwned>(&mut self, request: &Value) -> io::Result<T> {
        self.send(request)?;
        read(&mut self.answers)
    }
}

/// The next answer.
fn read<T: DeserializeOwned>(answers: &mut impl BufRead) -> io::Result<T> {
    let mut line = String::new();
    if answers.read_line(&mut line)? == 0 {
        let ended = "the Python process ended";
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, ended));
    }
    Ok(serde_json::from_str(&line)?)
}

impl Drop for Python {
    fn drop(&mut self) {
        // It ends with its input.
        self.requests = None;
        let _ = self.child.wait();
    }
}
