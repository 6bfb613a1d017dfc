//! Tests that need a process of their own: a process opens one driver, once.
//!
//! The test starts its own binary again, which runs the one test named, with a variable that tells it that it is the child.

use std::env;
use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

const VARIABLE: &str = "TERCET_CUDA_CHILD";

/// Whether this process is a child.
pub fn is_one() -> bool {
    env::var_os(VARIABLE).is_some()
}

/// Runs the test `name` of this binary in a child that looks for libraries in `folder` first; the lines that it told.
///
/// Panics where the child fails, a panic of the engine among the reasons.
pub fn run(name: &str, folder: &Path, variables: &[(&str, &OsStr)]) -> Vec<String> {
    let output = Command::new(env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(VARIABLE, "1")
        .env("LD_LIBRARY_PATH", folder)
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
    let told = out.lines().filter_map(|line| line.split_once("TOLD: "));
    told.map(|(_, line)| line.to_owned()).collect()
}

/// What the parent hears from [`run`].
pub fn tell(line: &str) {
    // On a line of its own, after what the test harness prints.
    println!("\nTOLD: {line}");
}
