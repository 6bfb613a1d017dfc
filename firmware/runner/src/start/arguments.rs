//! Reads from the tool's arguments only what the run needs. The tool itself judges its arguments.

use std::ffi::OsString;

/// A request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// A request that neither builds nor runs a program, or that the tool will refuse.
    Nothing,
    /// A request to run a program.
    Run {
        /// The board that it runs on.
        board: String,
        /// True if its image is already built.
        built: bool,
    },
    /// A request to build the images of boards.
    Images {
        /// The boards; all boards if empty.
        boards: Vec<String>,
    },
}

/// The subcommands that need nothing.
const IDLE: [&str; 6] = ["list", "arguments", "describe", "table", "decode", "help"];

/// Options that take the next argument as their value.
const VALUED: [&str; 3] = ["--image", "--limit", "--snapshot"];

/// Returns the request of these arguments.
pub(crate) fn request(arguments: &[OsString]) -> Request {
    let mut arguments = arguments.iter().map(|argument| argument.to_string_lossy());
    let (mut words, mut built, mut options) = (Vec::new(), false, true);
    while let Some(argument) = arguments.next() {
        match &*argument {
            "--" if options => options = false,
            "-h" | "--help" if options => return Request::Nothing,
            option if options && option.starts_with('-') => {
                built |= option == "--image" || option.starts_with("--image=");
                if VALUED.contains(&option) {
                    arguments.next();
                }
            }
            word => words.push(word.to_owned()),
        }
    }
    match words.as_slice() {
        [command, ..] if IDLE.contains(&command.as_str()) => Request::Nothing,
        [command, _, boards @ ..] if command == "images" => Request::Images {
            boards: boards.to_vec(),
        },
        [board, _] => Request::Run {
            board: board.clone(),
            built,
        },
        _ => Request::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(line: &str) -> Request {
        let arguments: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        request(&arguments)
    }

    fn run(board: &str, built: bool) -> Request {
        let board = board.to_owned();
        Request::Run { board, built }
    }

    #[test]
    fn a_board_is_found_among_options() {
        assert_eq!(asked("an386 motion"), run("an386", false));
        let options = "--limit 5 --json an386 --snapshot file motion --budget";
        assert_eq!(asked(options), run("an386", false));
        assert_eq!(asked("--limit=5 -- an386 motion"), run("an386", false));
        assert_eq!(asked("an386 motion --image file"), run("an386", true));
        assert_eq!(asked("--image=file an386 motion"), run("an386", true));
    }

    #[test]
    fn images_are_for_the_boards_named() {
        let boards = |names: &[&str]| Request::Images {
            boards: names.iter().map(|&name| name.to_owned()).collect(),
        };
        assert_eq!(asked("images out"), boards(&[]));
        assert_eq!(asked("images out an386 an385"), boards(&["an386", "an385"]));
        assert_eq!(asked("images"), Request::Nothing);
    }

    #[test]
    fn what_neither_builds_nor_runs_needs_nothing() {
        let lines = [
            "",
            "list --json",
            "describe an386",
            "arguments an386 motion",
            "table",
        ];
        for line in lines
            .into_iter()
            .chain(["decode image", "an386 motion --help", "an386"])
        {
            assert_eq!(asked(line), Request::Nothing, "{line}");
        }
    }
}
