//! One Rust peer of Tercet: `tercet-peers linfa` or `tercet-peers candle`.
//!
//! It uses the protocol of `benches/peers/serve.py`, which describes it: first a line that describes the peer, then a
//! line of JSON as the answer to each line of JSON.
//! line of JSON.

mod candle;
mod linfa;

use npyz::NpyFile;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::error::Error;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::time::Instant;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The fields of requests of all kinds.
#[derive(Deserialize)]
struct Request {
    r#do: String,
    #[serde(default)]
    what: String,
    #[serde(default)]
    files: BTreeMap<String, String>,
    #[serde(default)]
    options: Value,
    #[serde(default)]
    threads: usize,
    #[serde(default)]
    n: u32,
    #[serde(default)]
    phase: usize,
    #[serde(default)]
    folder: String,
}

/// An array of a file.
struct Array {
    values: Vec<f32>,
    shape: Vec<usize>,
}

/// Work of a peer.
trait TimedWork: Send {
    /// Does the work once; `phase` is for work that is timed at two lengths.
    fn run(&mut self, phase: usize) -> Result<()>;

    /// Returns the result of the last run, as raw little-endian values.
    fn answer(&self) -> Result<BTreeMap<&'static str, Vec<u8>>>;
}

/// Makes work from files and options.
type Make = fn(&BTreeMap<String, Array>, &Value) -> Result<Box<dyn TimedWork>>;

/// A peer: its name, its version, and the work that it can do.
struct Peer {
    name: &'static str,
    version: &'static str,
    work: &'static [(&'static str, Make)],
}

fn main() -> Result<()> {
    let name = std::env::args().nth(1).unwrap_or_default();
    let peer = match name.as_str() {
        "linfa" => linfa::PEER,
        "candle" => candle::PEER,
        _ => {
            eprintln!("usage: tercet-peers linfa|candle");
            std::process::exit(2);
        }
    };
    let work: Vec<_> = peer.work.iter().map(|(what, _)| what).collect();
    answer(&json!({"name": peer.name, "version": peer.version, "work": work}))?;

    let mut works: BTreeMap<String, Box<dyn TimedWork>> = BTreeMap::new();
    let mut pool = pool(1)?;
    for line in io::stdin().lock().lines() {
        let request: Request = serde_json::from_str(&line?)?;
        let unknown = || format!("{name} does no {}", request.what);
        match request.r#do.as_str() {
            "load" => {
                pool = self::pool(request.threads)?;
                let files = request.files.iter();
                let arrays = files.map(|(name, path)| Ok((name.clone(), read(path)?)));
                let arrays = arrays.collect::<Result<_>>()?;
                let made = peer.work.iter().find(|(what, _)| *what == request.what);
                let mut work = made.ok_or_else(unknown)?.1(&arrays, &request.options)?;
                pool.install(|| work.run(0).map_err(|error| error.to_string()))?;
                works.insert(request.what, work);
                answer(&json!({}))?;
            }
            "run" => {
                let work = works.get_mut(&request.what).ok_or_else(unknown)?;
                let mut best = f64::INFINITY;
                for _ in 0..request.n {
                    let start = Instant::now();
                    pool.install(|| work.run(request.phase).map_err(|error| error.to_string()))?;
                    best = best.min(start.elapsed().as_secs_f64());
                }
                answer(&json!({"seconds": best}))?;
            }
            "answer" => {
                let work = works.get(&request.what).ok_or_else(unknown)?;
                let mut files = BTreeMap::new();
                for (name, bytes) in work.answer()? {
                    let path = Path::new(&request.folder).join(name);
                    fs::write(&path, bytes)?;
                    files.insert(name, path);
                }
                answer(&json!(files))?;
            }
            _ => {
                works.clear();
                answer(&json!({}))?;
            }
        }
    }
    Ok(())
}

fn pool(threads: usize) -> Result<rayon::ThreadPool> {
    Ok(rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()?)
}

fn answer(value: &Value) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{value}")?;
    out.flush()
}

/// Reads an `.npy` file of f32, or of u32, which the peers here need only as floats.
fn read(path: &str) -> Result<Array> {
    let file = NpyFile::new(BufReader::new(File::open(path)?))?;
    let shape = file.shape().iter().map(|&len| len as usize).collect();
    let values = if file.dtype().descr() == "'<u4'" {
        let values = file.into_vec::<u32>()?;
        values.into_iter().map(|value| value as f32).collect()
    } else {
        file.into_vec()?
    };
    Ok(Array { values, shape })
}

/// Returns an array that the work needs.
fn array<'a>(arrays: &'a BTreeMap<String, Array>, name: &str) -> Result<&'a Array> {
    Ok(arrays.get(name).ok_or_else(|| format!("no array {name}"))?)
}
