//! Files of language models in llama.cpp and in ik_llama.cpp: they load, and the logits are those of NumPy's float64
//! within what their own int8 activations cost.

use crate::support;
use std::fs;
use std::path::{Path, PathBuf};

use tercet_core::block::Format;
use tercet_core::gguf::{Reader, SliceSink, TensorInfo, TensorSpec, Value, Writer};
use tercet_host::file::output::Output;
use tercet_host::language::{LanguageFile, PruneOptions, RunOptions, View, prune, run, tiny};
use tercet_host::parallel::Threads;
use tercet_host::{DType, DequantizeOptions, TensorFile, dequantize};

const SEEDS: [u64; 3] = [1, 2, 3];
const TEXT: &str = "the cat and the dog on the singing ship";
/// Float matrices leave what f16 activations and an f16 cache round: up to 9e-6 nats a token were found.
const FLOATS: f64 = 1e-4;
/// int8 activations of blocks of 32 and of 256 values: 0.004 and 0.017 were found. A matrix that is read wrongly
/// costs 1 and more.
const EIGHT_BITS: f64 = 0.06;

/// The programs of these tests, or `None` where one is missing.
pub(super) struct Peers {
    python: PathBuf,
    llama_cpp: PathBuf,
    folder: tempfile::TempDir,
}

impl Peers {
    pub(super) fn find(modules: &[&str]) -> Option<Self> {
        Some(Self {
            python: support::python_with(modules)?,
            llama_cpp: support::llama_cpp()?,
            folder: tempfile::tempdir().unwrap(),
        })
    }

    pub(super) fn python(&self) -> &Path {
        &self.python
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(super) fn text(path: &Path) -> &str {
        path.to_str()
            .expect("temporary folders have names in UTF-8")
    }

    pub(super) fn llama(&self, arguments: &[&str]) -> String {
        let said = support::run(&self.python, "language_llama.py", arguments);
        said.trim_end().to_owned()
    }

    fn tokens(&self, model: &Path, text: &str) -> String {
        self.llama(&["tokens", self.library(), Self::text(model), text])
    }

    /// NumPy's logits of a model.
    pub(super) fn forward(&self, model: &Path, tokens: &str) -> PathBuf {
        let out = self.path("forward.npy");
        let arguments = [Self::text(model), tokens, Self::text(&out)];
        support::run(&self.python, "language_forward.py", arguments);
        out
    }

    /// llama.cpp's library.
    pub(super) fn library(&self) -> &str {
        Self::text(&self.llama_cpp)
    }

    /// The divergence, in nats a token, of the logits in the file `other`, which are those of `what`, from those in
    /// `reference`.
    pub(super) fn divergence(&self, what: &str, reference: &Path, other: &Path) -> f64 {
        let arguments = [Self::text(reference), Self::text(other)];
        let said = support::run(&self.python, "language_kl.py", arguments);
        println!("{what}: {}", said.trim_end().replace('\n', ", "));
        let mut lines = said.lines().filter_map(|line| line.split_once(' '));
        let (_, kl) = lines.find(|(name, _)| *name == "kl").unwrap();
        kl.parse().unwrap()
    }

    /// The divergence, in nats a token, of a model's logits in `library` from those of `forward`.
    pub(super) fn kl(&self, library: &str, model: &Path, tokens: &str, forward: &Path) -> f64 {
        let out = self.path("logits.npy");
        self.llama(&[
            "logits",
            library,
            Self::text(model),
            tokens,
            Self::text(&out),
        ]);
        let what = format!("{library} {}", model.display());
        self.divergence(&what, forward, &out)
    }
}

/// The tokens of a text in a vocabulary of bytes.
fn bytes_of(text: &str) -> String {
    let bytes = text.bytes().map(|byte| byte.to_string());
    let all: Vec<String> = std::iter::once("256".to_owned()).chain(bytes).collect();
    all.join(",")
}

#[test]
fn llama_cpp_runs_ternary_files() {
    let Some(peers) = Peers::find(&["numpy", "gguf"]) else {
        return;
    };
    let library = peers.library();
    for seed in SEEDS {
        let floats = peers.path("f32.gguf");
        tiny::bitnet(&floats, tiny::BITNET, seed, DType::F32, true).unwrap();
        let tokens = peers.tokens(&floats, TEXT);
        assert_eq!(tokens, bytes_of(TEXT));
        let forward = peers.forward(&floats, &tokens);
        let kl = peers.kl(library, &floats, &tokens, &forward);
        assert!(kl < FLOATS, "{kl}");
        for format in [Format::Tq1_0, Format::Tq2_0, Format::Q2_0] {
            let model = peers.path(&format!("{}.gguf", format.name()));
            tiny::bitnet(&model, tiny::BITNET, seed, DType::Block(format), true).unwrap();
            let kl = peers.kl(library, &model, &tokens, &forward);
            assert!(kl < EIGHT_BITS, "{}: {kl}", format.name());
        }
    }
}

fn spec(tensor: TensorInfo<'_>) -> TensorSpec<'_> {
    TensorSpec {
        name: tensor.name,
        shape: tensor.shape,
        kind: tensor.kind,
    }
}

/// A microcontroller keeps what it learned so: `tercet_firmware::motion::Adapter::write`.
#[test]
fn llama_cpp_passes_over_an_array_that_it_does_not_know() {
    let Some(peers) = Peers::find(&["numpy", "gguf"]) else {
        return;
    };
    let model = peers.path("model.gguf");
    tiny::bitnet(&model, tiny::BITNET, 4, DType::Block(Format::Tq1_0), true).unwrap();
    let bytes = fs::read(&model).unwrap();
    let file = Reader::new(&bytes).unwrap();
    let specs: Vec<TensorSpec<'_>> = file.tensors().map(spec).collect();
    let mut room = vec![0; 2 * bytes.len()];
    let sink = SliceSink::new(&mut room);
    let entries = file.metadata().len() as u64 + 1;
    let mut writer = Writer::new(sink, entries, &specs).unwrap();
    for (key, value) in file.metadata() {
        writer.entry(key, value).unwrap();
    }
    let learned: Vec<i16> = (-2112..2112).collect();
    writer
        .entry("motion.adapter", Value::Array((&learned[..]).into()))
        .unwrap();
    let mut data = writer.into_data().unwrap();
    for tensor in file.tensors() {
        data.begin(tensor.name).unwrap();
        data.write(tensor.data).unwrap();
    }
    let with_array = peers.path("array.gguf");
    fs::write(&with_array, data.finish().unwrap().written()).unwrap();

    let tokens = peers.tokens(&model, TEXT);
    let [plain, other] = [&model, &with_array].map(|model| {
        let logits = peers.path("logits.npy");
        let [path, out] = [model, &logits].map(|path| Peers::text(path));
        peers.llama(&["logits", peers.library(), path, &tokens, out]);
        fs::read(&logits).unwrap()
    });
    assert!(plain == other);
}

#[test]
fn numpy_reads_the_ternary_files_as_the_floats_they_are() {
    let Some(peers) = Peers::find(&["numpy", "gguf"]) else {
        return;
    };
    let floats = peers.path("f32.gguf");
    tiny::bitnet(&floats, tiny::BITNET, 4, DType::F32, true).unwrap();
    let tokens = bytes_of(TEXT);
    let wanted = fs::read(peers.forward(&floats, &tokens)).unwrap();
    // gguf 0.19 has no Q2_0.
    for dtype in [
        DType::F16,
        DType::Block(Format::Tq1_0),
        DType::Block(Format::Tq2_0),
    ] {
        let model = peers.path("other.gguf");
        tiny::bitnet(&model, tiny::BITNET, 4, dtype, true).unwrap();
        let found = fs::read(peers.forward(&model, &tokens)).unwrap();
        assert!(found == wanted, "{}", dtype.name());
    }
}

#[test]
fn llama_cpp_runs_a_llama_of_several_types() {
    let Some(peers) = Peers::find(&["numpy", "gguf"]) else {
        return;
    };
    for seed in SEEDS {
        let model = peers.path("llama.gguf");
        tiny::llama(&model, tiny::LLAMA, seed, true).unwrap();
        let tokens = peers.tokens(&model, TEXT);
        assert!(tokens.starts_with("1,261,"), "<s>, then `▁the`: {tokens}");
        let forward = peers.forward(&model, &tokens);
        let library = peers.library();
        let kl = peers.kl(library, &model, &tokens, &forward);
        assert!(kl < EIGHT_BITS, "{kl}");
    }
}

/// Writes what a model's matrices receive on some tokens.
fn record(model: &Path, out: &Path) {
    let file = LanguageFile::open(model).unwrap();
    let mut view = View::of(&file).unwrap();
    let model = view.model(&file).unwrap();
    let engine = &mut Threads::default();
    let recorded = run(engine, &file, &model, &RunOptions::default(), |decoder| {
        decoder.record()?;
        let tokens: Vec<u32> = (0..60).collect();
        decoder.prompt(0, &tokens, &mut |_| {})?;
        Ok(decoder.recorded().cloned().unwrap())
    });
    let output = Output::create(out, [], true).unwrap();
    recorded
        .unwrap()
        .0
        .write(output, "tokens", (1, 60))
        .unwrap();
}

#[test]
fn llama_cpp_runs_pruned_files() {
    let Some(peers) = Peers::find(&["numpy", "gguf"]) else {
        return;
    };
    let (floats, inputs) = (peers.path("f32.gguf"), peers.path("inputs.gguf"));
    let pruned = peers.path("pruned.gguf");
    for (heads, channels) in [(None, 256), (Some(1), 100)] {
        if heads.is_none() {
            tiny::bitnet(&floats, tiny::BITNET, 1, DType::F32, true).unwrap();
        } else {
            let mixed = peers.path("llama.gguf");
            tiny::llama(&mixed, tiny::LLAMA, 1, true).unwrap();
            let mixed = TensorFile::open(&mixed).unwrap();
            let options = DequantizeOptions {
                force: true,
                ..DequantizeOptions::default()
            };
            dequantize(&mut Threads::default(), &mixed, &options, &floats, &()).unwrap();
        }
        record(&floats, &inputs);
        let options = PruneOptions {
            heads,
            feed_forward: Some(channels),
            importance: Some(inputs.clone()),
            force: true,
            ..PruneOptions::default()
        };
        let report = prune(&floats, &options, &pruned, &()).unwrap();
        assert_eq!(report.feed_forward_length, channels);
        let tokens = peers.tokens(&pruned, TEXT);
        let forward = peers.forward(&pruned, &tokens);
        let kl = peers.kl(peers.library(), &pruned, &tokens, &forward);
        assert!(kl < FLOATS, "{kl}");
    }
}

#[test]
fn ik_llama_cpp_runs_a_bitnet_in_floats() {
    let Some(peers) = Peers::find(&["numpy", "gguf", "ik_llama_cpp"]) else {
        return;
    };
    let tokens = bytes_of(TEXT);
    for seed in SEEDS {
        let model = peers.path("f16.gguf");
        tiny::bitnet(&model, tiny::BITNET, seed, DType::F16, true).unwrap();
        let forward = peers.forward(&model, &tokens);
        let kl = peers.kl("ik", &model, &tokens, &forward);
        assert!(kl < FLOATS, "{kl}");
    }
}
