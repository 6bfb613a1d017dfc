//! Finds the outside references that tests compare with, and says what is missing.
//!
//! | variable | meaning |
//! |---|---|
//! | `TERCET_PYTHON` | a Python with `gguf`, `numpy`, `onnxruntime`, `safetensors`; else `python3` |
//! | `TERCET_GGML` | path of ggml's compiled base library (`libggml-base.so`), with llama.cpp's beside it |
//! | `TERCET_VOCABULARIES` | a folder of llama.cpp's vocabularies, `ggml-vocab-*.gguf`, with `.inp` and `.out` beside them |
//! | `TERCET_MODELS` | a folder of `stories15M.bin` (its vocabulary behind it), `SmolLM2-135M-Instruct.Q4_1.gguf` and `moby-dick.txt` |
//! | `TERCET_SKIPS` | a file that gets one line for each skipped test |
//! | `TERCET_REQUIRE` | `all`: a missing tool fails the test instead of skipping it |
//!
//! A test starts with `let Some(python) = support::python_with(&["numpy"]) else { return };`.

// Each test binary compiles its own copy of this module and uses a part of it.
#![allow(dead_code, unreachable_pub)]

pub mod data;
mod server;

use std::env;
use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Python modules the references need, as `pip install` names.
const MODULES: &str = "numpy gguf onnxruntime onnx ml_dtypes safetensors";

/// The Python interpreter of the references, or `None` after a call of [`skip`].
pub fn python() -> Option<PathBuf> {
    python_with(&[])
}

/// A Python interpreter that has every one of `modules`, or `None` after a call of [`skip`]. They are not imported,
/// which for some takes longer than what is asked of them.
pub fn python_with(modules: &[&str]) -> Option<PathBuf> {
    let path = env::var_os("TERCET_PYTHON")
        .filter(|value| !value.is_empty())
        .map_or_else(|| PathBuf::from("python3"), PathBuf::from);
    let code = "import importlib.util as u, sys; sys.exit(not all(map(u.find_spec, sys.argv[1:])))";
    let found = Command::new(&path)
        .args(["-c", code])
        .args(modules)
        .stdin(Stdio::null())
        .output();
    match found {
        Ok(output) if output.status.success() => Some(path),
        Ok(_) => {
            skip(&format!(
                "{} has not all of {}; `pip install {MODULES}` and set TERCET_PYTHON",
                path.display(),
                modules.join(", ")
            ));
            None
        }
        Err(error) => {
            skip(&format!(
                "no Python at {}: {error}; install Python 3, `pip install {MODULES}` and set TERCET_PYTHON",
                path.display()
            ));
            None
        }
    }
}

/// ggml's base library, or `None` after a call of [`skip`].
pub fn ggml() -> Option<PathBuf> {
    match env::var_os("TERCET_GGML").filter(|value| !value.is_empty()) {
        Some(path) if Path::new(&path).is_file() => Some(PathBuf::from(path)),
        Some(path) => {
            skip(&format!(
                "TERCET_GGML names no file: {}",
                Path::new(&path).display()
            ));
            None
        }
        None => {
            skip(
                "no ggml library; `npm pack @node-llama-cpp/linux-x64@3.22.1` holds package/bins/linux-x64/libggml-base.so: \
                 set TERCET_GGML to it",
            );
            None
        }
    }
}

/// llama.cpp's library, which lies beside ggml's, or `None` after a call of [`skip`].
pub fn llama_cpp() -> Option<PathBuf> {
    let folder = ggml()?.parent()?.to_path_buf();
    let entries = std::fs::read_dir(&folder).ok()?;
    let found = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with("libllama.") && name.ends_with(".so")
        });
    if found.is_none() {
        let folder = folder.display();
        skip(&format!(
            "no libllama.*.so in {folder}, where ggml's library is"
        ));
    }
    found
}

/// The folder of llama.cpp's vocabularies, or `None` after a call of [`skip`].
pub fn vocabularies() -> Option<PathBuf> {
    folder(
        "TERCET_VOCABULARIES",
        "no vocabularies; `npm pack llama-cpp-qbnn@0.0.1` holds package/models/ggml-vocab-*.gguf: \
         set TERCET_VOCABULARIES to that folder",
    )
}

/// The folder of language models and prose, or `None` after a call of [`skip`].
pub fn models() -> Option<PathBuf> {
    folder(
        "TERCET_MODELS",
        "no language models; .ci/references gathers them: set TERCET_MODELS to target/references/models",
    )
}

/// The folder that a variable names, or `None` after a call of [`skip`] with what to do where it is not set.
fn folder(variable: &str, absent: &str) -> Option<PathBuf> {
    let Some(path) = env::var_os(variable).filter(|value| !value.is_empty()) else {
        skip(absent);
        return None;
    };
    let path = PathBuf::from(path);
    if !path.is_dir() {
        skip(&format!("{variable} names no folder: {}", path.display()));
        return None;
    }
    Some(path)
}

/// Says that the running test is skipped and why; panics when `TERCET_REQUIRE=all`.
pub fn skip(reason: &str) {
    let test = std::thread::current().name().unwrap_or("test").to_owned();
    let line = format!("skipped: {test}: {reason}");
    assert!(
        env::var("TERCET_REQUIRE").as_deref() != Ok("all"),
        "TERCET_REQUIRE=all, yet {line}"
    );
    println!("{line}");
    if let Some(path) = env::var_os("TERCET_SKIPS").filter(|value| !value.is_empty()) {
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .unwrap_or_else(|error| panic!("TERCET_SKIPS {}: {error}", Path::new(&path).display()));
        // One write call, so that lines of tests that run at once do not mix.
        file.write_all(format!("{line}\n").as_bytes())
            .expect("TERCET_SKIPS is writable");
    }
}

/// Path of a script in `host/tests/reference/`.
pub fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/reference")
        .join(name)
}

/// Runs a script of `tests/reference/` of the crate and gives its standard output; panics with its standard error when
/// it fails.
pub fn run<A: Into<OsString>>(
    python: &Path,
    name: &str,
    args: impl IntoIterator<Item = A>,
) -> String {
    server::run(python, &script(name), args.into_iter().map(Into::into))
        .unwrap_or_else(|error| panic!("{name} {error}"))
}
