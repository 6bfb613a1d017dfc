//! Folders of images with a description of how to run them, for `tercet verify --firmware`.
//!
//! `DIR/BOARD/board.json` describes the board; the images of the conformance suite lie in the same folder.

use std::fs;
use std::path::Path;

use serde::Serialize;
use tercet_firmware_runner::needs::Search;

use crate::boards::Board;
use crate::build;
use crate::programs::{self, Program};

/// Prefix of the names of programs that are parts of the conformance suite.
const SUITE: &str = "conformance_";

/// The name of the file beside the images.
const FILE: &str = "board.json";

/// Description of a board in the file beside its images.
#[derive(Serialize)]
struct Description<'a> {
    board: &'a str,
    about: &'a str,
    target: &'a str,
    /// The command that runs an image. The image is its last argument.
    runner: &'a [String],
    /// The images of the whole suite.
    images: Vec<&'a str>,
}

/// Returns a board's description as JSON.
///
/// # Errors
/// The programs cannot be read.
pub fn describe(firmware: &Path, board: &Board) -> Result<String, String> {
    description(board, &suite(firmware)?)
}

fn description(board: &Board, suite: &[Program]) -> Result<String, String> {
    let description = Description {
        board: &board.name,
        about: &board.about,
        target: &board.target,
        runner: &board.runner,
        images: suite.iter().map(|program| program.name.as_str()).collect(),
    };
    let json = serde_json::to_string_pretty(&description).map_err(|error| error.to_string())?;
    Ok(json + "\n")
}

fn suite(firmware: &Path) -> Result<Vec<Program>, String> {
    let mut programs = programs::all(firmware)?;
    programs.retain(|program| program.name.starts_with(SUITE));
    Ok(programs)
}

/// Builds the suite for the boards with these names, or for all whose targets are installed, into one folder of `out`
/// per board. `tell` gets a line for each finished step.
///
/// # Errors
/// Something is missing for a named board, or for all boards; an image cannot be built; a file cannot be written.
pub fn images(
    firmware: &Path,
    out: &Path,
    names: &[String],
    mut tell: impl FnMut(&str),
) -> Result<(), String> {
    let boards = match names {
        [] => Board::all(firmware)?,
        names => {
            let boards = names.iter().map(|name| Board::read(firmware, name));
            boards.collect::<Result<_, _>>()?
        }
    };
    let suite = suite(firmware)?;
    let boards = complete(firmware, boards, !names.is_empty(), &mut tell)?;
    for board in &boards {
        let folder = out.join(board.name.replace(':', "-"));
        let wrong = |error: std::io::Error| format!("{}: {error}", folder.display());
        fs::create_dir_all(&folder).map_err(wrong)?;
        for program in &suite {
            let image = build::build(firmware, board, program)?;
            fs::copy(image, folder.join(&program.name)).map_err(wrong)?;
        }
        fs::write(folder.join(FILE), description(board, &suite)?).map_err(wrong)?;
        tell(&format!("built {}", folder.display()));
    }
    tell(&format!("tercet verify --firmware {}", out.display()));
    Ok(())
}

/// Returns the boards that can be built for. All are checked before the first is built. `tell` gets the boards that
/// are skipped.
///
/// All missing parts, if `all` is set and a board lacks something, or if every board does.
/// The parts missing for any board if `all` are required, or else for every board.
fn complete(
    firmware: &Path,
    boards: Vec<Board>,
    all: bool,
    tell: &mut impl FnMut(&str),
) -> Result<Vec<Board>, String> {
    let mut needs = Search::new(firmware);
    let (complete, left): (Vec<Board>, Vec<Board>) = boards
        .into_iter()
        .partition(|board| needs.target(&board.target, &board.config));
    if all || complete.is_empty() {
        needs.end()?;
    }
    if !left.is_empty() {
        let names: Vec<&str> = left.iter().map(|board| &*board.name).collect();
        tell(&format!(
            "left out {}, since this is missing:",
            names.join(", ")
        ));
        for lack in needs.missing() {
            tell(&format!("  {}\n      {}", lack.what, lack.how));
        }
    }
    Ok(complete)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_says_how_its_images_are_run() {
        let firmware = Path::new(env!("CARGO_MANIFEST_DIR"))
            .parent()
            .expect("a parent");
        let board = Board::read(firmware, "an386").expect("a board");
        let json = describe(firmware, &board).expect("a description");
        let found: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        assert_eq!(found["board"], "an386");
        assert_eq!(found["target"], "thumbv7em-none-eabihf");
        assert_eq!(found["runner"][0], "qemu-system-arm");
        let images = [
            "conformance_models",
            "conformance_points",
            "conformance_weights",
        ];
        assert_eq!(found["images"], serde_json::json!(images));
    }

    #[test]
    fn a_board_that_is_named_must_be_there() {
        let firmware = Path::new(env!("CARGO_MANIFEST_DIR"))
            .parent()
            .expect("a parent");
        let names = ["an999".to_owned()];
        let error = images(firmware, Path::new("nowhere"), &names, |_| ()).expect_err("no board");
        assert!(
            error.starts_with("no board an999; there are an385"),
            "{error}"
        );
    }
}
