//! Libraries under the names of the driver and of NCCL, compiled from a few lines of C.

use std::env;
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

/// The functions that the engine looks up, from its own table.
pub fn functions() -> Vec<&'static str> {
    let table = include_str!("../../src/engine/api.rs");
    let (_, table) = table.split_once("functions! {").unwrap();
    let lines = table.lines().map(str::trim_start);
    let names = lines
        .take_while(|line| *line != "}")
        .filter_map(|line| line.split_once('('));
    let names: Vec<_> = names
        .map(|(name, _)| name)
        .filter(|name| name.starts_with("cu"))
        .collect();
    assert!(names.len() > 30, "{names:?}");
    names
}

/// C in which every function of the driver gives `status`, but for those that `given` defines.
pub fn answering(status: u32, given: &str) -> String {
    let mut source = given.to_owned();
    for name in functions().into_iter().chain(["cuDriverGetVersion"]) {
        if !given.contains(&format!(" {name}(")) {
            source += &format!("unsigned {name}() {{ return {status}; }}\n");
        }
    }
    source
}

/// The driver's library, by the name that the engine asks for first.
pub const DRIVER: &str = "libcuda.so.1";

/// Compiles C into `folder` as the driver's library; `false` after a call of [`super::skip`] where there is no
/// compiler.
pub fn compile(folder: &Path, source: &str) -> bool {
    compile_as(folder, DRIVER, source)
}

/// As [`compile`], as a library of another name.
pub fn compile_as(folder: &Path, name: &str, source: &str) -> bool {
    let compiler = env::var_os("CC").unwrap_or_else(|| OsString::from("cc"));
    let file = folder.join("library.c");
    std::fs::write(&file, source).unwrap();
    let output = Command::new(&compiler)
        .args(["-shared", "-fPIC", "-w", "-o"])
        .arg(folder.join(name))
        .arg(&file)
        .output();
    match output {
        Ok(output) => {
            assert!(
                output.status.success(),
                "{}",
                String::from_utf8_lossy(&output.stderr)
            );
            true
        }
        Err(error) => {
            super::skip(&format!("no C compiler ({}): {error}", compiler.display()));
            false
        }
    }
}
