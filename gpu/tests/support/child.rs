//! Tests that need a process of their own: a process opens one driver, once.
//!
//! The test starts its own binary again, which runs the one test named, with a variable that tells it that it is the
//! child. What is the process's and stays (the driver, a device's memory, a recorder) is then nobody else's.

use std::env;
use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use super::emulator;

const VARIABLE: &str = "TERCET_CUDA_CHILD";

/// Whether this process is a child.
pub fn is_one() -> bool {
    env::var_os(VARIABLE).is_some()
}

/// Whether this process is the child that a test is to go on in; else has a child run the test, to its end.
///
/// The test is named by its `module_path!()` and its name.
pub fn alone(module: &str, name: &str, variables: &[(&str, &OsStr)]) -> bool {
    is_one() || {
        run(module, name, Path::new(""), variables);
        false
    }
}

/// Runs the test `name` of a module of this binary (`module_path!()`) in a child that looks for libraries in `folder`
/// first, and then where this process does, whose driver may be found only there; the lines that it told.
///
/// Panics where the child fails, a panic of the engine among the reasons.
pub fn run(module: &str, name: &str, folder: &Path, variables: &[(&str, &OsStr)]) -> Vec<String> {
    // The test runner's names begin behind the binary's.
    let name = match module.split_once("::") {
        Some((_, module)) => format!("{module}::{name}"),
        None => name.to_owned(),
    };
    let library = emulator::built_before();
    let library = library.map(|library| (emulator::BUILT_BEFORE, library));
    let folders = [folder.to_owned()].into_iter();
    let own = env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let folders = folders.chain(env::split_paths(&own));
    // An empty one would be the folder that the child runs in.
    let folders = folders.filter(|folder| !folder.as_os_str().is_empty());
    let folders = env::join_paths(folders).unwrap();
    let output = Command::new(env::current_exe().unwrap())
        .args(["--exact", &*name, "--nocapture", "--test-threads=1"])
        .env(VARIABLE, "1")
        .env("LD_LIBRARY_PATH", folders)
        .envs(library)
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    let (out, errors) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(
        output.status.success(),
        "{}\n{out}\n{errors}",
        output.status
    );
    assert!(out.contains("running 1 test\n"), "no test {name}: {out}");
    let told = out.lines().filter_map(|line| line.split_once("TOLD: "));
    told.map(|(_, line)| line.to_owned()).collect()
}

/// What the parent hears from [`run`].
pub fn tell(line: &str) {
    // On a line of its own, after what the test harness prints.
    println!("\nTOLD: {line}");
}
