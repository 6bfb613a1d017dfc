//! The boards that QEMU emulates: `firmware/boards/BOARD.toml`, which cargo also reads.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// An emulated board.
#[derive(Debug)]
pub struct Board {
    /// The name of its file.
    pub name: String,
    /// The first line of its file's comment.
    pub about: String,
    /// The target that cargo compiles for.
    pub target: String,
    /// The features of `tercet-firmware` for its processor.
    pub features: Vec<String>,
    /// The command that runs an image. The image is its last argument.
    pub runner: Vec<String>,
    /// The file: a configuration for cargo.
    pub config: PathBuf,
}

#[derive(Deserialize)]
struct Config {
    build: Build,
    #[serde(default)]
    env: BTreeMap<String, String>,
    target: BTreeMap<String, toml::Value>,
}

#[derive(Deserialize)]
struct Build {
    target: String,
}

#[derive(Deserialize)]
struct Target {
    runner: Vec<String>,
}

impl Board {
    /// Reads the board with this name; `firmware` is the folder. `BOARD:TARGET` is a board with another target than
    /// its own, without the features of its processor.
    ///
    /// # Errors
    /// No board has this name (the error lists all names), or its file lacks a target or a runner.
    pub fn read(firmware: &Path, name: &str) -> Result<Self, String> {
        if let Some((name, target)) = name.split_once(':') {
            let mut board = Self::read(firmware, name)?;
            board.name = format!("{name}:{target}");
            board.target = target.to_owned();
            board.features.clear();
            return Ok(board);
        }
        let config = firmware.join("boards").join(format!("{name}.toml"));
        let Ok(text) = fs::read_to_string(&config) else {
            return Err(format!(
                "no board {name}; there are {}",
                names(firmware)?.join(", ")
            ));
        };
        Self::parse(name, &text, config)
    }

    /// Returns all boards, by name.
    ///
    /// # Errors
    /// Those of [`Board::read`].
    pub fn all(firmware: &Path) -> Result<Vec<Self>, String> {
        names(firmware)?
            .iter()
            .map(|name| Self::read(firmware, name))
            .collect()
    }

    fn parse(name: &str, text: &str, file: PathBuf) -> Result<Self, String> {
        let wrong = |what: &str| format!("{}: {what}", file.display());
        let config: Config = toml::from_str(text).map_err(|error| wrong(&error.to_string()))?;
        let target = config.build.target;
        let runner = runner(&config.target, &target)
            .filter(|runner| !runner.is_empty())
            .ok_or_else(|| wrong(&format!("no [target.{target}] with a runner")))?;
        let features = config.env.get("TERCET_FEATURES");
        let first = text.lines().next().unwrap_or_default();
        Ok(Self {
            name: name.to_owned(),
            about: first.trim_start_matches("# ").to_owned(),
            features: features
                .map(|list| list.split_whitespace().map(str::to_owned).collect())
                .unwrap_or_default(),
            target,
            runner,
            config: file,
        })
    }
}

/// Returns the runner for a target. It is in the table with the target's name, which cargo wants unquoted, so that a
/// dot in it nests a table; or in a `cfg(…)` table. That is assumed to hold, because boards write one for all their
/// targets.
fn runner(tables: &BTreeMap<String, toml::Value>, target: &str) -> Option<Vec<String>> {
    let mut names = target.split('.');
    let first = tables.get(names.next()?);
    let named = first.and_then(|first| names.try_fold(first, |table, name| table.get(name)));
    let mut any = tables.iter().filter(|(name, _)| name.starts_with("cfg("));
    let runner = |table: &toml::Value| {
        let table: Target = table.clone().try_into().ok()?;
        Some(table.runner)
    };
    named
        .and_then(runner)
        .or_else(|| any.find_map(|(_, table)| runner(table)))
}

fn names(firmware: &Path) -> Result<Vec<String>, String> {
    let folder = firmware.join("boards");
    let entries =
        fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut names: Vec<String> = entries
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let toml = path.extension().is_some_and(|ending| ending == "toml");
            toml.then(|| Some(path.file_stem()?.to_str()?.to_owned()))?
        })
        .collect();
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    const AN505: &str = r#"# MPS2 AN505: Cortex-M33.
[build]
target = "thumbv8m.main-none-eabihf"

[env]
TERCET_BOARD = "an505"
TERCET_FEATURES = "dsp mve"

[target.thumbv8m.main-none-eabihf]
rustflags = ["-Ctarget-cpu=cortex-m33"]
runner = ["qemu-system-arm", "-kernel"]
"#;

    #[test]
    fn a_target_with_a_dot_is_found_where_cargo_finds_it() {
        let board = Board::parse("an505", AN505, PathBuf::from("an505.toml")).expect("a board");
        assert_eq!(board.target, "thumbv8m.main-none-eabihf");
        assert_eq!(board.runner, ["qemu-system-arm", "-kernel"]);
        assert_eq!(board.features, ["dsp", "mve"]);
        assert_eq!(board.about, "MPS2 AN505: Cortex-M33.");
    }

    #[test]
    fn a_runner_for_all_targets_is_found() {
        let text = AN505.replace(
            "[target.thumbv8m.main-none-eabihf]",
            "[target.'cfg(target_os = \"none\")']",
        );
        // With another table, which is for the target and has no runner.
        let more = format!("{text}\n[target.thumbv8m.main-none-eabihf]\nrustflags = []\n");
        for text in [text, more] {
            let board = Board::parse("an505", &text, PathBuf::from("an505.toml")).expect("a board");
            assert_eq!(board.runner, ["qemu-system-arm", "-kernel"]);
        }
    }

    #[test]
    fn a_board_without_a_runner_is_refused_by_its_target() {
        let text = AN505.replace("runner", "walker");
        let error = Board::parse("an505", &text, PathBuf::from("an505.toml")).map(|_| ());
        assert_eq!(
            error,
            Err("an505.toml: no [target.thumbv8m.main-none-eabihf] with a runner".to_owned())
        );
    }
}
