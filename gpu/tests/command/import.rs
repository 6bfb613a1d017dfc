//! `tercet import`.

use std::fs;

use tercet_core::gguf::{Reader, Value};

use super::support::{Folder, fields, named, noise};

/// Width, feed-forward width, layers, heads, heads of keys, tokens, context.
const SIZES: [i32; 7] = [32, 64, 2, 4, 2, 264, 16];
const TOKENS: usize = 264;

/// A checkpoint to write: its tensors by kinds, each for all layers.
struct Checkpoint {
    tied: bool,
    /// Seven kinds of matrices of a layer in the order q, k, v, o, w1, w2, w3; then norms.
    kinds: [(&'static str, Vec<f32>); 9],
    embedding: Vec<f32>,
    norm: Vec<f32>,
    head: Vec<f32>,
}

impl Checkpoint {
    fn new(tied: bool) -> Self {
        let sizes = [1024, 512, 512, 1024, 2048, 2048, 2048, 32, 32];
        let names = [
            "attn_q",
            "attn_k",
            "attn_v",
            "attn_output",
            "ffn_gate",
            "ffn_down",
            "ffn_up",
            "attn_norm",
            "ffn_norm",
        ];
        let mut kinds = names.map(|name| (name, Vec::new()));
        for (seed, (kind, size)) in (1..).zip(kinds.iter_mut().zip(sizes)) {
            kind.1 = noise(seed, 2 * size);
        }
        Self {
            tied,
            kinds,
            embedding: noise(20, TOKENS * 32),
            norm: noise(21, 32),
            head: noise(22, TOKENS * 32),
        }
    }

    /// The bytes of a version of the format, with a header of `sizes`.
    fn bytes(&self, version: usize, mut sizes: [i32; 7]) -> Vec<u8> {
        let [q, k, v, o, w1, w2, w3, attention, feed] =
            self.kinds.each_ref().map(|(_, values)| values.as_slice());
        // Two tables of 16 positions and 4 pairs, which nobody reads.
        let tables = [f32::NAN; 128];
        let mut bytes = Vec::new();
        let mut parts: Vec<&[f32]> = Vec::new();
        if version == 0 {
            sizes[5] *= if self.tied { 1 } else { -1 };
            parts.extend([&self.embedding, attention, q, k, v, o, feed, w1, w2, w3]);
            parts.extend([&self.norm[..], &tables]);
        } else {
            bytes.extend(b"24ka");
            bytes.extend((version as i32).to_le_bytes());
            parts.extend([attention, feed, &self.norm, &self.embedding]);
            parts.extend([q, k, v, o, w1, w2, w3]);
        }
        bytes.extend(sizes.iter().flat_map(|size| size.to_le_bytes()));
        if version > 0 {
            bytes.push(self.tied.into());
            bytes.resize(256, 0);
        }
        if !self.tied {
            parts.push(&self.head);
        }
        let values = parts.into_iter().flatten();
        bytes.extend(values.flat_map(|value| value.to_le_bytes()));
        bytes
    }
}

/// The texts of a tokenizer.bin: three specials as llama2.c writes them, the bytes, and pieces with blanks.
fn texts() -> Vec<Vec<u8>> {
    let mut texts = ["<unk>", "\n<s>\n", "\n</s>\n"].map(Vec::from).to_vec();
    texts.extend((0..256).map(|byte| format!("<0x{byte:02X}>").into_bytes()));
    texts.extend([" ", "a", " a", "<0x41", "é"].map(Vec::from));
    texts
}

fn tokenizer(texts: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = 7u32.to_le_bytes().to_vec();
    for (index, text) in texts.iter().enumerate() {
        bytes.extend((-(index as f32)).to_le_bytes());
        bytes.extend((text.len() as u32).to_le_bytes());
        bytes.extend(text);
    }
    bytes
}

/// A folder with `model.bin` and `tokenizer.bin`.
fn folder(checkpoint: &[u8]) -> Folder {
    let folder = Folder::new();
    fs::write(folder.path("model.bin"), checkpoint).unwrap();
    fs::write(folder.path("tokenizer.bin"), tokenizer(&texts())).unwrap();
    folder
}

const IMPORT: [&str; 6] = [
    "import",
    "model.bin",
    "--tokenizer",
    "tokenizer.bin",
    "-o",
    "out.gguf",
];

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&IMPORT, more].concat()
}

#[test]
fn every_weight_is_where_llama_cpp_looks_for_it() {
    for (version, tied) in [(0, true), (0, false), (1, true), (1, false)] {
        let checkpoint = Checkpoint::new(tied);
        let folder = folder(&checkpoint.bytes(version, SIZES));
        let report = folder.json(&with(&["--json"]));
        assert_eq!(report["format"], format!("llama2.c version {version}"));
        assert_eq!(report["tied"], tied);
        let bytes = folder.written("out.gguf");
        let reader = Reader::new(&bytes).unwrap();
        let equal = |name: &str, values: &[f32], shape: &[u64]| {
            let tensor = reader.tensor(name).unwrap_or_else(|| panic!("no {name}"));
            assert_eq!(tensor.shape.dims(), shape, "{name}");
            let wanted: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
            assert!(tensor.data == wanted, "{name} of version {version}");
        };
        let tokens = TOKENS as u64;
        equal("token_embd.weight", &checkpoint.embedding, &[32, tokens]);
        equal("output_norm.weight", &checkpoint.norm, &[32]);
        for (kind, values) in &checkpoint.kinds {
            for (layer, values) in values.chunks(values.len() / 2).enumerate() {
                let shape: &[u64] = match *kind {
                    "attn_k" | "attn_v" => &[32, 16],
                    "ffn_gate" | "ffn_up" => &[32, 64],
                    "ffn_down" => &[64, 32],
                    "attn_norm" | "ffn_norm" => &[32],
                    _ => &[32, 32],
                };
                equal(&format!("blk.{layer}.{kind}.weight"), values, shape);
            }
        }
        if tied {
            assert!(reader.tensor("output.weight").is_none());
        } else {
            equal("output.weight", &checkpoint.head, &[32, tokens]);
        }
        assert_eq!(
            reader.tensors().len(),
            2 + 2 * 9 + usize::from(!tied),
            "one more is one that llama.cpp refuses"
        );
    }
}

#[test]
fn metadata_is_what_llama_cpp_reads() {
    let folder = folder(&Checkpoint::new(true).bytes(0, SIZES));
    let said = folder.ok(&IMPORT);
    assert!(
        said.contains("llama2.c version 0: width 32, feed-forward 64, 2 layers, heads 4:2, 264 tokens, context 16, the embedding"),
        "{said}"
    );
    let bytes = folder.written("out.gguf");
    let reader = Reader::new(&bytes).unwrap();
    for (key, value) in [
        ("general.architecture", Value::from("llama")),
        ("llama.context_length", 16u32.into()),
        ("llama.embedding_length", 32u32.into()),
        ("llama.block_count", 2u32.into()),
        ("llama.feed_forward_length", 64u32.into()),
        ("llama.attention.head_count", 4u32.into()),
        ("llama.attention.head_count_kv", 2u32.into()),
        ("llama.rope.dimension_count", 8u32.into()),
        ("llama.rope.freq_base", 10_000f32.into()),
        ("llama.attention.layer_norm_rms_epsilon", 1e-5f32.into()),
        ("llama.vocab_size", 264u32.into()),
        ("general.file_type", 0u32.into()),
        ("general.quantization_version", 2u32.into()),
        ("tokenizer.ggml.model", "llama".into()),
        ("tokenizer.ggml.unknown_token_id", 0u32.into()),
        ("tokenizer.ggml.bos_token_id", 1u32.into()),
        ("tokenizer.ggml.eos_token_id", 2u32.into()),
        ("tokenizer.ggml.add_bos_token", true.into()),
        ("tokenizer.ggml.add_space_prefix", true.into()),
    ] {
        assert_eq!(reader.get(key), Some(value), "{key}");
    }
    let list = |key: &str| reader.get(key).unwrap().as_array().unwrap();
    let tokens: Vec<&str> = list("tokenizer.ggml.tokens").strings().collect();
    assert_eq!(tokens[..4], ["<unk>", "<s>", "</s>", "<0x00>"]);
    assert_eq!(tokens[258..], ["<0xFF>", "▁", "a", "▁a", "<0x41", "é"]);
    let kinds: Vec<Value<'_>> = list("tokenizer.ggml.token_type").iter().collect();
    assert_eq!(kinds[..4], [2, 3, 3, 6].map(Value::I32));
    assert_eq!(kinds[258..], [6, 1, 1, 1, 1, 1].map(Value::I32));
    let scores = list("tokenizer.ggml.scores");
    assert_eq!(scores.iter().nth(263), Some(Value::F32(-263.0)));
}

#[test]
fn a_vocabulary_behind_the_weights_gives_the_same_file() {
    let folder = folder(&Checkpoint::new(true).bytes(0, SIZES));
    folder.ok(&IMPORT);
    let mut joined = fs::read(folder.path("model.bin")).unwrap();
    joined.extend(tokenizer(&texts()));
    fs::write(folder.path("joined.data"), joined).unwrap();
    folder.ok(&[
        "import",
        "joined.data",
        "-o",
        "joined.gguf",
        "--threads",
        "1",
    ]);
    assert!(folder.written("joined.gguf") == folder.written("out.gguf"));
    let line = folder.fails(&[
        "import",
        "joined.data",
        "--tokenizer",
        "tokenizer.bin",
        "-o",
        "again.gguf",
    ]);
    assert!(
        line.contains("bytes follow its weights, at offset "),
        "{line}"
    );
}

#[test]
fn bytes_may_be_written_as_characters() {
    let folder = folder(&Checkpoint::new(true).bytes(0, SIZES));
    folder.ok(&IMPORT);
    let wanted = folder.written("out.gguf");
    let mut older = texts();
    for byte in 0..=255u8 {
        older[3 + usize::from(byte)] = char::from(byte).to_string().into_bytes();
    }
    fs::write(folder.path("tokenizer.bin"), tokenizer(&older)).unwrap();
    folder.ok(&with(&["--force"]));
    assert!(folder.written("out.gguf") == wanted);
}

#[test]
fn matrices_take_the_type_and_norms_do_not() {
    let folder = folder(&Checkpoint::new(false).bytes(1, SIZES));
    for (name, file_type) in [("f16", 1), ("bf16", 32), ("q8_0", 7), ("q4_1", 3)] {
        let report = folder.json(&with(&["--to", name, "--json", "--force"]));
        let matrices = [
            "token_embd.weight",
            "blk.1.ffn_down.weight",
            "output.weight",
        ];
        for tensor in matrices {
            assert_eq!(named(&report["tensors"], tensor)["to"], name, "{tensor}");
        }
        for tensor in ["blk.0.attn_norm.weight", "output_norm.weight"] {
            assert_eq!(named(&report["tensors"], tensor)["to"], "f32", "{tensor}");
        }
        let bytes = folder.written("out.gguf");
        let kind = Reader::new(&bytes).unwrap().get("general.file_type");
        assert_eq!(kind, Some(Value::U32(file_type)));
    }
    fs::remove_file(folder.path("out.gguf")).unwrap();
    let line = folder.fails(&with(&["--to", "tq2_0"]));
    for part in ["tensor `token_embd.weight`", "32 elements", "256"] {
        assert!(line.contains(part), "{line}");
    }
}

#[test]
fn the_report_is_complete() {
    let folder = folder(&Checkpoint::new(true).bytes(0, SIZES));
    let report = folder.json(&with(&["--json"]));
    assert_eq!(
        fields(&report),
        [
            "auto",
            "bits_per_weight",
            "bytes_after",
            "bytes_before",
            "engine",
            "engine_note",
            "format",
            "megabytes_per_second",
            "parameters",
            "seconds",
            "tensors",
            "tied"
        ]
    );
    assert_eq!(
        fields(&report["parameters"]),
        [
            "architecture",
            "block_count",
            "context_length",
            "embedding_length",
            "feed_forward_length",
            "head_count",
            "head_count_kv",
            "head_length",
            "rms_epsilon",
            "rope_base",
            "rope_factor",
            "vocab_size"
        ]
    );
    assert_eq!(report["parameters"]["architecture"], "llama");
}

#[test]
fn nothing_is_overwritten_unasked() {
    let folder = folder(&Checkpoint::new(true).bytes(0, SIZES));
    folder.ok(&IMPORT);
    let line = folder.fails(&IMPORT);
    assert!(line.contains("out.gguf: exists already (--force"), "{line}");
    folder.ok(&with(&["--force"]));
    fs::rename(folder.path("model.bin"), folder.path("model.gguf")).unwrap();
    fs::rename(folder.path("tokenizer.bin"), folder.path("words.gguf")).unwrap();
    for out in ["model.gguf", "words.gguf"] {
        let arguments = [
            "import",
            "model.gguf",
            "--tokenizer",
            "words.gguf",
            "--force",
        ];
        let line = folder.fails(&[&arguments[..], &["-o", out]].concat());
        assert!(line.contains("are the same file"), "{line}");
    }
    let arguments = ["import", "model.gguf", "--tokenizer", "words.gguf"];
    let line = folder.fails(&[&arguments[..], &["-o", "out.safetensors"]].concat());
    assert!(line.contains("name the output *.gguf"), "{line}");
}

/// The header of version 0 with another size, and what the refusal says of it.
const HEADERS: [(usize, i32, &str); 15] = [
    (0, 0, "its width is 0"),
    (0, -32, "its width is -32"),
    (1, 0, "its feed-forward width is 0"),
    (2, i32::MAX, "its number of layers is 2147483647"),
    (2, 3, "bytes, but the file has "),
    (3, 0, "its number of heads is 0"),
    (3, 5, "does not divide into 5 heads"),
    (3, 32, "a head of 1 values has no pairs"),
    (4, 0, "its number of heads of keys is 0"),
    (4, 3, "4 heads do not divide among 3 heads of keys"),
    (5, 0, "its number of tokens is 0"),
    (5, i32::MIN, "its number of tokens is "),
    (5, i32::MAX, "bytes, but the file has "),
    (6, -1, "its context is -1"),
    (6, i32::MAX, "bytes, but the file has "),
];

#[test]
fn a_header_that_contradicts_its_file_is_refused() {
    let checkpoint = Checkpoint::new(true);
    let whole = checkpoint.bytes(0, SIZES);
    let folder = folder(&whole);
    let refused = |bytes: &[u8], said: &str| {
        fs::write(folder.path("model.bin"), bytes).unwrap();
        let line = folder.fails(&IMPORT);
        assert!(line.contains("model.bin") && line.contains(said), "{line}");
    };
    for (place, size, said) in HEADERS {
        let mut bytes = whole.clone();
        bytes[place * 4..][..4].copy_from_slice(&size.to_le_bytes());
        refused(&bytes, said);
    }
    // All sizes at their largest overflow 64 bits.
    let mut bytes = whole.clone();
    for (place, size) in [
        (0, 1 << 30),
        (1, 1 << 30),
        (2, 4096),
        (3, 1),
        (4, 1),
        (6, 1),
    ] {
        bytes[place * 4..][..4].copy_from_slice(&i32::to_le_bytes(size));
    }
    refused(&bytes, "more than 2^64 bytes");
    refused(&whole[..27], "it ends inside its header, after 27 bytes");
    refused(&whole[..whole.len() - 1], "bytes, but the file has ");
    refused(b"", "it ends inside its header, after 0 bytes");
    let marked = checkpoint.bytes(1, SIZES);
    refused(&marked[..36], "it ends inside its header, after 36 bytes");
    refused(&marked[..200], "bytes, but the file has 200");
    let mut bytes = marked.clone();
    bytes[4] = 2;
    refused(&bytes, "version 2 is not supported; versions 0 and 1 are");
    let mut bytes = marked;
    bytes[36] = 7;
    refused(&bytes, "its byte 36 is 7 instead of 0 or 1");
}

#[test]
fn a_weight_that_is_not_finite_is_named() {
    let mut checkpoint = Checkpoint::new(true);
    checkpoint.kinds[8].1[32 + 5] = f32::NAN;
    let folder = folder(&checkpoint.bytes(0, SIZES));
    let line = folder.fails(&IMPORT);
    assert!(
        line.contains("tensor `blk.1.ffn_norm.weight`: value 5 is not finite"),
        "{line}"
    );
}

#[test]
fn a_vocabulary_that_contradicts_itself_is_refused() {
    let folder = folder(&Checkpoint::new(true).bytes(0, SIZES));
    let refused = |bytes: &[u8], said: &str| {
        fs::write(folder.path("tokenizer.bin"), bytes).unwrap();
        let line = folder.fails(&IMPORT);
        assert!(
            line.contains("tokenizer.bin") && line.contains(said),
            "{line}"
        );
    };
    let whole = tokenizer(&texts());
    refused(b"", "it ends inside its first number at offset 0");
    refused(&whole[..6], "it ends in token 0 of 264, at offset 4");
    refused(
        &whole[..whole.len() - 1],
        "it ends in token 263 of 264, at offset ",
    );
    refused(
        &[&whole[..], b"more"].concat(),
        "4 bytes follow its 264 tokens, at offset ",
    );
    let edited = |index: usize, text: &[u8]| {
        let mut texts = texts();
        texts[index] = text.to_vec();
        tokenizer(&texts)
    };
    refused(&edited(260, b"\xff"), "token 260 at offset ");
    refused(&edited(260, b"\xff"), "is not UTF-8");
    refused(
        &edited(260, b"too long."),
        "has 9 bytes, but the longest may have 7",
    );
    refused(
        &edited(260, " ".as_bytes()),
        "tokens 259 and 260 are both `▁`",
    );
    let mut bytes = whole.clone();
    bytes[4..8].copy_from_slice(&f32::NAN.to_le_bytes());
    refused(&bytes, "the score of token 0 at offset 4 is not finite");
    let mut bytes = whole;
    bytes[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
    refused(&bytes, "token 0 at offset 4 has 4294967295 bytes");
    let line = folder.fails(&["import", "model.bin", "-o", "out.gguf"]);
    assert!(line.contains("name its tokenizer file"), "{line}");
}

/// A model of floats alone has no sums of blocks, and its memory no room for them.
#[test]
fn what_is_imported_continues_a_text() {
    let folder = folder(&Checkpoint::new(true).bytes(0, SIZES));
    for to in ["f32", "f16", "q8_0"] {
        folder.ok(&with(&["--to", to, "--force"]));
        let generate = ["generate", "out.gguf", "-p", "a a", "-n", "6"];
        let digests = ["1", "2"].map(|threads| {
            let more = ["--digest", "--threads", threads];
            folder.ok(&[&generate[..], &more].concat())
        });
        assert_eq!(digests[0], digests[1], "{to}");
    }
}
