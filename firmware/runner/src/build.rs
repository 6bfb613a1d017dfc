//! Builds images with cargo.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;

use crate::boards::Board;
use crate::programs::Program;

/// Returns the arguments of cargo after `build`, so that another compiler can get the same.
pub fn arguments(firmware: &Path, board: &Board, program: &Program) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = ["--locked", "--release", "--manifest-path"]
        .map(OsString::from)
        .to_vec();
    arguments.push(firmware.join("Cargo.toml").into());
    arguments.push("--config".into());
    arguments.push(board.config.clone().into());
    arguments.extend(["--bin", &program.name].map(OsString::from));
    let features: Vec<&str> = board
        .features
        .iter()
        .chain(&program.features)
        .map(String::as_str)
        .collect();
    if !features.is_empty() {
        arguments.push("--features".into());
        arguments.push(features.join(",").into());
    }
    arguments
}

/// Builds a program for a board and returns the path of its image.
///
/// # Errors
/// Cargo fails; it prints the reason itself.
pub fn build(firmware: &Path, board: &Board, program: &Program) -> Result<PathBuf, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(&cargo)
        .arg("build")
        .args(["--quiet", "--message-format=json-render-diagnostics"])
        .args(["--target", &board.target])
        .args(arguments(firmware, board, program))
        .current_dir(firmware)
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("{}: {error}", cargo.display()))?;
    if !output.status.success() {
        return Err(format!(
            "{} for {}: cargo build: {}",
            program.name, board.name, output.status
        ));
    }
    executable(&String::from_utf8_lossy(&output.stdout), &program.name)
        .ok_or_else(|| format!("cargo built no {}", program.name))
}

#[derive(Deserialize)]
struct Message {
    reason: String,
    target: Option<Target>,
    executable: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
}

fn executable(messages: &str, program: &str) -> Option<PathBuf> {
    messages.lines().find_map(|line| {
        let message: Message = serde_json::from_str(line).ok()?;
        let ours = message.reason == "compiler-artifact"
            && message.target.is_some_and(|target| target.name == program);
        message.executable.filter(|_| ours)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::programs::Rules;

    #[test]
    fn features_are_the_board_s_and_the_program_s() {
        let board = Board {
            name: "an505".to_owned(),
            about: String::new(),
            target: "thumbv8m.main-none-eabihf".to_owned(),
            features: vec!["dsp".to_owned()],
            runner: Vec::new(),
            config: "an505.toml".into(),
        };
        let program = Program {
            name: "motion".to_owned(),
            features: vec!["defmt".to_owned()],
            rules: Rules::default(),
        };
        let arguments = arguments(Path::new("firmware"), &board, &program);
        let tail: Vec<_> = arguments.iter().rev().take(4).rev().collect();
        assert_eq!(tail, ["--bin", "motion", "--features", "dsp,defmt"]);
    }

    #[test]
    fn the_image_is_the_program_s_and_not_the_build_script_s() {
        let messages = r#"{"reason":"compiler-artifact","target":{"name":"build-script-build"},"executable":"/no"}
{"reason":"compiler-artifact","target":{"name":"motion"},"executable":"/yes"}
{"reason":"build-finished","success":true}"#;
        assert_eq!(executable(messages, "motion"), Some("/yes".into()));
        assert_eq!(executable(messages, "pools"), None);
    }
}
