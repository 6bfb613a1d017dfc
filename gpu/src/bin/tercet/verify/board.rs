//! Folders of board images, and the commands to run them: `DIR/BOARD/board.json`, as `cargo firmware images DIR` writes
//! it.
//!
//! A description contains a command. It is parsed as words of a small grammar, never by a shell. So a folder from
//! elsewhere can start only one of two emulators, with the options that boards have.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::image;
use crate::failure::Failure;

/// The file beside a board's images.
const FILE: &str = "board.json";
/// Maximum length of a description.
const LONGEST: u64 = 1 << 16;
/// Maximum number of boards in a folder, and of images of a board.
const MOST: usize = 64;
/// How such a folder is made.
const MADE_BY: &str = "`cargo firmware images DIR` makes such a folder";

/// A board with its images.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Board {
    /// Its name, and the target of its images.
    pub(super) name: String,
    /// Its processor.
    pub(super) processor: Processor,
    /// Its arguments before the image.
    pub(super) arguments: Vec<String>,
    /// The suite: all its images exist and are for this processor.
    pub(super) images: Vec<PathBuf>,
}

/// The processor of an image, which decides the emulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Processor {
    Arm,
    Riscv32,
}

impl Processor {
    pub(super) const ALL: [Self; 2] = [Self::Arm, Self::Riscv32];

    /// Returns the name of its emulator on the search path.
    pub(super) const fn emulator(self) -> &'static str {
        match self {
            Self::Arm => "qemu-system-arm",
            Self::Riscv32 => "qemu-system-riscv32",
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Description {
    board: String,
    #[serde(rename = "about")]
    _about: String,
    target: String,
    runner: Vec<String>,
    images: Vec<String>,
}

/// Returns the boards in a folder, by name: each is a subfolder with a description, or the folder itself.
pub(super) fn all(folder: &Path) -> Result<Vec<Board>, Failure> {
    if folder.join(FILE).exists() {
        return Ok(vec![read(folder)?]);
    }
    let wrong = |error| Failure::io(folder, "read", &error);
    let mut folders = Vec::new();
    for entry in fs::read_dir(folder).map_err(wrong)? {
        let path = entry.map_err(wrong)?.path();
        if path.join(FILE).exists() {
            folders.push(path);
        }
    }
    folders.sort();
    match folders.len() {
        0 => Err(Failure::new(format_args!(
            "{}: no board here: neither the folder nor a folder in it has a {FILE}; {MADE_BY}",
            folder.display()
        ))),
        1..=MOST => folders.iter().map(|folder| read(folder)).collect(),
        many => Err(Failure::new(format_args!(
            "{}: there are {many} boards, but at most {MOST} can run",
            folder.display()
        ))),
    }
}

/// Reads the board of a folder, and checks its images.
fn read(folder: &Path) -> Result<Board, Failure> {
    let path = folder.join(FILE);
    let mut text = String::new();
    File::open(&path)
        .and_then(|file| file.take(LONGEST + 1).read_to_string(&mut text))
        .map_err(|error| Failure::io(&path, "read", &error))?;
    let wrong = |reason: &str| Failure::new(format_args!("{}: {reason}", path.display()));
    if text.len() as u64 > LONGEST {
        return Err(wrong("it is too long for the description of a board"));
    }
    let mut board = parse(&text).map_err(|reason| wrong(&reason))?;
    // An emulator would read a path that begins with a dash as an option.
    let folder = folder
        .canonicalize()
        .map_err(|error| Failure::io(folder, "read", &error))?;
    for image in &mut board.images {
        *image = folder.join(&image);
        image::check(image, board.processor).map_err(|reason| {
            Failure::new(format_args!("{}: {reason}; {MADE_BY}", image.display()))
        })?;
    }
    Ok(board)
}

fn parse(text: &str) -> Result<Board, String> {
    let told: Description = serde_json::from_str(text)
        .map_err(|error| format!("it is not the description of a board: {error}"))?;
    // `an386:thumbv7em-none-eabi` is a board with another target than its own.
    let name = told.board.split(':').next().unwrap_or_default();
    for (what, word) in [("board", name), ("target", &*told.target)] {
        if !is_word(word, "._-") {
            return Err(format!("{what}: {word:?} is not a name"));
        }
    }
    let images = &told.images;
    if images.is_empty() || images.len() > MOST {
        return Err(format!(
            "images: there are {} names; there must be 1 to {MOST}",
            images.len()
        ));
    }
    if let Some(image) = images.iter().find(|image| !is_word(image, "_-")) {
        return Err(format!("images: {image:?} is not the name of a file"));
    }
    let (processor, arguments) = runner(&told.runner)?;
    Ok(Board {
        name: format!("{name} ({})", told.target),
        processor,
        arguments,
        images: images.iter().map(PathBuf::from).collect(),
    })
}

/// True for a short word of letters, digits and these signs that does not begin with a sign.
fn is_word(word: &str, signs: &str) -> bool {
    let starts = word.starts_with(|c: char| c.is_ascii_alphanumeric());
    let mut rest = word.chars();
    starts && word.len() <= 64 && rest.all(|c| c.is_ascii_alphanumeric() || signs.contains(c))
}

/// Parses a command of a board: the emulator, its options, and `-kernel` at the end.
fn runner(words: &[String]) -> Result<(Processor, Vec<String>), String> {
    let Some((program, options)) = words.split_first() else {
        return Err("runner: the command is empty".to_owned());
    };
    let all = Processor::ALL.into_iter();
    let processor = all
        .clone()
        .find(|it| it.emulator() == program)
        .ok_or_else(|| {
            let names: Vec<_> = all.map(Processor::emulator).collect();
            format!("runner: {program:?} is not one of {}", names.join(", "))
        })?;
    let Some((kernel, mut rest)) = options.split_last().filter(|(last, _)| *last == "-kernel")
    else {
        return Err(
            "runner: the command must end in -kernel, after which the image's path is added"
                .to_owned(),
        );
    };
    while let Some((option, more)) = rest.split_first() {
        let value = more.first().map(String::as_str);
        let taken = match (option.as_str(), value) {
            ("-nographic", _) => 1,
            ("-M", Some(machine)) if is_word(machine, "-") => 2,
            ("-cpu", Some(processor)) if is_word(processor, "-.,=") => 2,
            ("-bios" | "-monitor", Some("none")) => 2,
            ("-semihosting-config", Some("enable=on,target=native")) => 2,
            _ => {
                let value = value.unwrap_or_default();
                return Err(format!(
                    "runner: {option:?} {value:?} is not an option that a board may have"
                ));
            }
        };
        rest = &rest[taken..];
    }
    let arguments = options.len() - 1;
    let mut arguments = options[..arguments].to_vec();
    arguments.push(kernel.clone());
    Ok((processor, arguments))
}

#[cfg(test)]
mod tests {
    use super::*;

    const AN386: &str = r#"{"board": "an386", "about": "MPS2 AN386: Cortex-M4F.", "target": "thumbv7em-none-eabihf",
        "runner": ["qemu-system-arm", "-M", "mps2-an386", "-nographic", "-monitor", "none", "-semihosting-config",
        "enable=on,target=native", "-kernel"], "images": ["conformance_points", "conformance_weights"]}"#;

    #[test]
    fn a_description_as_the_firmware_s_tool_writes_it() {
        let board = parse(AN386).unwrap();
        assert_eq!(board.name, "an386 (thumbv7em-none-eabihf)");
        assert_eq!(board.processor, Processor::Arm);
        assert_eq!(board.arguments.len(), 8);
        assert_eq!(board.arguments.last().unwrap(), "-kernel");
        assert_eq!(board.images.len(), 2);
        let riscv = AN386.replace("-arm\"", "-riscv32\"").replace(
            r#""-nographic""#,
            r#""-cpu", "rv32,f=false,d=false", "-bios", "none", "-nographic""#,
        );
        assert_eq!(parse(&riscv).unwrap().processor, Processor::Riscv32);
    }

    #[test]
    fn what_could_start_anything_else_is_refused_by_its_word() {
        for (word, hostile, named) in [
            (
                "qemu-system-arm",
                "sh",
                "\"sh\" is not one of qemu-system-arm",
            ),
            ("qemu-system-arm", "./qemu-system-arm", "is not one of"),
            (
                "\"-nographic\"",
                "\"-drive\", \"file=/etc/passwd\"",
                "\"-drive\" \"file=/etc/passwd\"",
            ),
            (
                "\"-nographic\"",
                "\"-chardev\"",
                "\"-chardev\" \"-monitor\"",
            ),
            ("mps2-an386", "-serial", "\"-M\" \"-serial\""),
            (
                "mps2-an386",
                "mps2-an386,dumpdtb=x",
                "\"-M\" \"mps2-an386,dumpdtb=x\"",
            ),
            ("\"none\"", "\"stdio\"", "\"-monitor\" \"stdio\""),
            (
                "enable=on,target=native",
                "enable=on,target=gdb",
                "\"-semihosting-config\"",
            ),
            ("\"-kernel\"", "\"-nographic\"", "must end in -kernel"),
            (
                "\"conformance_points\"",
                "\"../points\"",
                "\"../points\" is not the name of a file",
            ),
            (
                "\"conformance_points\"",
                "\"/bin/sh\"",
                "\"/bin/sh\" is not the name of a file",
            ),
            (
                "\"conformance_points\"",
                "\"\"",
                "is not the name of a file",
            ),
            (
                "\"an386\"",
                "\"an\\u001b386\"",
                "board: \"an\\u{1b}386\" is not a name",
            ),
            ("thumbv7em-none-eabihf", "", "target: \"\" is not a name"),
            (
                "\"board\"",
                "\"shell\": \"x\", \"board\"",
                "unknown field `shell`",
            ),
        ] {
            let text = AN386.replace(word, hostile);
            assert_ne!(text, AN386, "{word}");
            let error = parse(&text).unwrap_err();
            assert!(error.contains(named), "{hostile}: {error}");
        }
        let none = AN386.replace("\"conformance_points\", \"conformance_weights\"", "");
        assert!(
            parse(&none)
                .unwrap_err()
                .starts_with("images: there are 0 names")
        );
    }
}
