//! Folders as Hugging Face's `transformers` saves them, imported: the logits are those of NumPy's float64 in their
//! own layout, with RoPE's pairs half a head apart, in Tercet and in llama.cpp.

use std::path::{Path, PathBuf};

use tercet_core::block::Format;
use tercet_core::model::CacheType;
use tercet_host::convert::Target;
use tercet_host::language::{ImportOptions, import};
use tercet_host::parallel::Threads;
use tercet_host::{DType, QuantizeOptions, TensorFile, quantize};

use crate::reference_language::Peers;
use crate::reference_models::logits;
use crate::support;

/// Of the checkpoints.
const SEED: u64 = 1;
/// `<s>the cat and the dog`, and more of it than Llama 3's slowest pairs take to turn.
const TOKENS: &str = "256,116,104,101,32,99,97,116,32,97,110,100,32,116,104,101,32,100,111,103,32,111,110,32,116,104,101,32,115,104,105,112";
/// Float matrices, int16 keys and values: 4e-9 was found.
const FLOATS: f64 = 1e-5;
/// What f16 activations and an f16 cache round in llama.cpp: 9e-7 was found.
const HALVES: f64 = 1e-4;
/// Of random weights whose logits reach from -34 to 34: scales of f16 in place of f32 (6e-7 was found), and the
/// codes of master weights that these move (0.004 was found).
const SCALES: [(&str, f64); 2] = [("packed", 1e-5), ("bitnet", 0.02)];
/// int8 activations.
const EIGHT_BITS: f64 = 0.06;

fn peers() -> Option<Peers> {
    Peers::find(&["numpy", "gguf", "safetensors"])
}

/// A checkpoint of a kind, and the file of its logits.
fn checkpoint(peers: &Peers, kind: &str, seed: u64) -> (PathBuf, PathBuf) {
    let (folder, forward) = (peers.path(kind), peers.path("forward.npy"));
    let seed = seed.to_string();
    let arguments = [
        kind,
        &seed,
        Peers::text(&folder),
        TOKENS,
        Peers::text(&forward),
    ];
    support::run(peers.python(), "language_checkpoint.py", arguments);
    (folder, forward)
}

fn imported(peers: &Peers, folder: &Path, to: Option<DType>) -> PathBuf {
    let out = peers.path("imported.gguf");
    let options = ImportOptions {
        to,
        tokenizer: None,
        force: true,
    };
    import(folder, &options, &out, &()).unwrap();
    out
}

/// The model in blocks, with the embedding and the head in Q8_0 by rows.
fn quantized(peers: &Peers, model: &Path, format: Format) -> PathBuf {
    let out = peers.path(&format!("{}.gguf", format.name()));
    let options = QuantizeOptions {
        force: true,
        ..QuantizeOptions::new(Target::Blocks(format))
    };
    let model = TensorFile::open(model).unwrap();
    quantize(&mut Threads::alone(), &model, &options, &out, &()).unwrap();
    out
}

/// The divergence of Tercet's logits, with keys and values in int16.
fn ours(peers: &Peers, model: &Path, forward: &Path) -> f64 {
    let out = peers.path("ours.npy");
    let tokens: Vec<u32> = TOKENS.split(',').map(|id| id.parse().unwrap()).collect();
    logits(model, &tokens, CacheType::Int16, &out);
    peers.divergence("tercet", forward, &out)
}

#[test]
fn a_llama_computes_what_its_checkpoint_does() {
    let Some(peers) = peers() else {
        return;
    };
    let (folder, forward) = checkpoint(&peers, "llama", SEED);
    let model = imported(&peers, &folder, Some(DType::F32));
    let kl = ours(&peers, &model, &forward);
    assert!(kl < FLOATS, "{kl}");
    let kl = peers.kl(peers.library(), &model, TOKENS, &forward);
    assert!(kl < HALVES, "{kl}");
    let model = quantized(&peers, &model, Format::Q8_0);
    let kl = peers.kl(peers.library(), &model, TOKENS, &forward);
    assert!(kl < EIGHT_BITS, "{kl}");
}

#[test]
fn a_bitnet_computes_what_its_checkpoint_does_from_master_weights_and_from_codes() {
    let Some(peers) = peers() else {
        return;
    };
    for (kind, bound) in SCALES {
        let (folder, forward) = checkpoint(&peers, kind, SEED);
        let model = imported(&peers, &folder, Some(DType::F32));
        let kl = ours(&peers, &model, &forward);
        assert!(kl < bound, "{kind}: {kl}");
        let model = imported(&peers, &folder, None);
        let kl = peers.kl(peers.library(), &model, TOKENS, &forward);
        assert!(kl < EIGHT_BITS, "{kind}: {kl}");
        let kl = ours(&peers, &model, &forward);
        assert!(kl < EIGHT_BITS, "{kind}: {kl}");
    }
}
