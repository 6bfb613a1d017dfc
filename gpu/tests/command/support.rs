//! Runs the command in a folder of its own, and makes its input files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use safetensors::tensor::{Dtype, TensorView};
use serde_json::Value;
use tempfile::TempDir;
use tercet_core::block::Format;
use tercet_core::number::Random;
use tercet_host::DType;
use tercet_host::language::tiny;

/// The beginning of *Moby Dick*.
const ENGLISH: &str = "Call me Ishmael. Some years ago, never mind how long precisely, having little or no money \
    in my purse, and nothing particular to interest me on shore, I thought I would sail about a little and see the \
    watery part of the world. ";

/// A folder that is removed at the end of a test; commands run inside it.
pub(crate) struct Folder(TempDir);

/// What a command did.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The command, ready to be given more than arguments.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tercet"));
        command.args(arguments).current_dir(self.0.path());
        // What this machine's user has tuned and asked for is not what is tested.
        command.env("TERCET_TUNING", self.path("tuning.json"));
        for variable in ["TERCET_PROFILE", "TERCET_EDGE_MEMORY", "TERCET_VERBOSE"] {
            command.env_remove(variable);
        }
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Run {
        finish(&mut self.command(arguments))
    }

    /// Runs a command that must succeed quietly; gives what it printed.
    pub(crate) fn ok(&self, arguments: &[&str]) -> String {
        let run = self.run(arguments);
        assert_eq!(run.code, Some(0), "{arguments:?}: {run:?}");
        assert_eq!(run.err, "", "{arguments:?}");
        run.out
    }

    /// Runs a command that must succeed and print JSON.
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.ok(arguments)).unwrap()
    }

    /// Runs a command that must fail with status 1 and one line, and leave the folder as it was. Gives the line.
    pub(crate) fn fails(&self, arguments: &[&str]) -> String {
        let before = self.files();
        let run = self.run(arguments);
        assert_eq!(run.code, Some(1), "{arguments:?}: {run:?}");
        assert_eq!(run.out, "", "{arguments:?}");
        assert_eq!(run.err.lines().count(), 1, "{arguments:?}: {}", run.err);
        assert!(run.err.starts_with("error: "), "{arguments:?}: {}", run.err);
        assert_eq!(self.files(), before, "{arguments:?}");
        run.err
    }

    /// Every file, with its content, sorted by name.
    pub(crate) fn files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut files: Vec<(PathBuf, Vec<u8>)> = fs::read_dir(self.0.path())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.is_file())
            .map(|path| (path.clone(), fs::read(&path).unwrap()))
            .collect();
        files.sort();
        files
    }

    /// Writes a safetensors file of f32 tensors.
    pub(crate) fn safetensors(&self, name: &str, tensors: &[(&str, &[usize], &[f32])]) -> PathBuf {
        let bytes: Vec<Vec<u8>> = tensors
            .iter()
            .map(|(_, _, values)| little_endian(values))
            .collect();
        let views = tensors.iter().zip(&bytes).map(|((name, shape, _), bytes)| {
            (
                *name,
                TensorView::new(Dtype::F32, shape.to_vec(), bytes).unwrap(),
            )
        });
        let path = self.path(name);
        fs::write(&path, safetensors::serialize(views, None).unwrap()).unwrap();
        path
    }

    /// Writes a safetensors file whose header is the given JSON, followed by so many zero bytes.
    pub(crate) fn safetensors_raw(&self, name: &str, header: &str, bytes: usize) {
        let mut file = (header.len() as u64).to_le_bytes().to_vec();
        file.extend(header.as_bytes());
        file.resize(file.len() + bytes, 0);
        fs::write(self.path(name), file).unwrap();
    }

    /// Writes an npy file of f32.
    pub(crate) fn npy(&self, name: &str, values: &[f32]) {
        let mut header = format!(
            "{{'descr': '<f4', 'fortran_order': False, 'shape': ({},), }}",
            values.len()
        );
        while (10 + header.len() + 1) % 64 != 0 {
            header.push(' ');
        }
        header.push('\n');
        let mut file = b"\x93NUMPY\x01\x00".to_vec();
        file.extend((header.len() as u16).to_le_bytes());
        file.extend(header.as_bytes());
        file.extend(little_endian(values));
        fs::write(self.path(name), file).unwrap();
    }

    /// [`Folder::model`] in blocks, `q.gguf`, and in int8 codes and palettes, `int8.safetensors` and `palette.safetensors`.
    pub(crate) fn quantized(&self) {
        self.model("in.safetensors");
        for (out, target) in [
            ("q.gguf", "tq2_0"),
            ("int8.safetensors", "int8"),
            ("palette.safetensors", "palette:3"),
        ] {
            self.ok(&["quantize", "in.safetensors", "-o", out, "--to", target]);
        }
    }

    /// Three language models of random weights, `bitnet.gguf`, `llama.gguf` and, with a template of conversations,
    /// `chat.gguf`, and 700 bytes of English, `text`.
    pub(crate) fn languages(&self) {
        let (bitnet, llama) = (self.path("bitnet.gguf"), self.path("llama.gguf"));
        let format = DType::Block(Format::Q2_0);
        tiny::bitnet(&bitnet, tiny::BITNET_64, 1, format, false).unwrap();
        tiny::llama(&llama, tiny::LLAMA_32, 1, false).unwrap();
        tiny::chat(&self.path("chat.gguf"), tiny::CHAT, 1, false).unwrap();
        let text: String = ENGLISH.chars().cycle().take(700).collect();
        fs::write(self.path("text"), text).unwrap();
    }

    /// A file with the first place of `old` replaced by as many bytes.
    pub(crate) fn edited(&self, from: &str, to: &str, old: &[u8], new: &[u8]) {
        assert_eq!(old.len(), new.len());
        let mut bytes = fs::read(self.path(from)).unwrap();
        let at = bytes.windows(old.len()).position(|part| part == old);
        let at = at.unwrap_or_else(|| panic!("{from} has no {old:?}"));
        bytes[at..at + new.len()].copy_from_slice(new);
        fs::write(self.path(to), bytes).unwrap();
    }

    /// What a command that was told to write `output` wrote; nothing where that is empty.
    pub(crate) fn written(&self, output: &str) -> Vec<u8> {
        match output {
            "" => Vec::new(),
            output => fs::read(self.path(output)).unwrap(),
        }
    }

    /// A model of three tensors: two matrices, of which only the first has rows of whole blocks of 256, and a bias.
    pub(crate) fn model(&self, name: &str) -> PathBuf {
        let (wide, narrow, bias) = (noise(1, 8 * 512), noise(2, 6 * 64), noise(3, 8));
        self.safetensors(
            name,
            &[
                ("bias", &[8], &bias),
                ("narrow.weight", &[6, 64], &narrow),
                ("wide.weight", &[8, 512], &wide),
            ],
        )
    }
}

/// Arguments without `--force` for a command that writes no file and takes none.
pub(crate) fn forced<'a>(output: &str, arguments: &[&'a str]) -> Vec<&'a str> {
    let kept = |word: &&&str| !(output.is_empty() && **word == "--force");
    arguments.iter().filter(kept).copied().collect()
}

/// A report that is to be the same whoever made it: without engines, times and what is made of them.
pub(crate) fn lasting(report: &Value) -> Value {
    const PASSING: [&str; 4] = ["engine", "engine_note", "seconds", "megabytes_per_second"];
    let mut report = report.clone();
    let fields = report.as_object_mut().unwrap();
    fields.retain(|name, _| !PASSING.contains(&name.as_str()));
    if let Some(Value::Array(tensors)) = fields.get_mut("tensors") {
        for tensor in tensors {
            tensor.as_object_mut().unwrap().remove("engine");
        }
    }
    report
}

/// Runs a command to its end.
pub(crate) fn finish(command: &mut Command) -> Run {
    // The tests' own threads setting must not leak in.
    let output = command.env_remove("RAYON_NUM_THREADS").output().unwrap();
    Run {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Values like a layer's weights: sums of four uniform draws, about ±0.1.
pub(crate) fn noise(seed: u64, len: usize) -> Vec<f32> {
    let mut random = Random::new(seed);
    let mut uniform = || random.below(2001) as f32 / 1000.0 - 1.0;
    (0..len)
        .map(|_| (uniform() + uniform() + uniform() + uniform()) * 0.1)
        .collect()
}

/// The object of that name in an array of reports.
pub(crate) fn named<'a>(reports: &'a Value, name: &str) -> &'a Value {
    reports
        .as_array()
        .unwrap()
        .iter()
        .find(|report| report["name"] == name)
        .unwrap()
}

/// The sorted field names of an object.
pub(crate) fn fields(object: &Value) -> Vec<&str> {
    let mut fields: Vec<&str> = object
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    fields.sort_unstable();
    fields
}

/// The size of a file.
pub(crate) fn size(path: &Path) -> u64 {
    fs::metadata(path).unwrap().len()
}

fn little_endian(values: &[f32]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect()
}
