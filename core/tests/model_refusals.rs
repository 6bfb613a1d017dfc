//! Files of language models that lie: each is refused with the key or the tensor, or taken for what it says.

use std::convert::Infallible;

use tercet_core::gguf::{Reader, Sink, TensorSpec, TensorType, Value, Writer};
use tercet_core::model::{Config, DecoderLayer, Model, ModelError, Pattern};

const TERNARY: &[u8] = include_bytes!("../src/conformance/models/ternary.gguf");
const LLAMA: &[u8] = include_bytes!("../src/conformance/models/llama.gguf");

struct Bytes(Vec<u8>);

impl Sink for Bytes {
    type Error = Infallible;

    fn write(&mut self, bytes: &[u8]) -> Result<(), Infallible> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }
}

/// A file taken apart, without what is said of its tokenizer.
struct Draft<'a> {
    entries: Vec<(String, Value<'a>)>,
    tensors: Vec<(String, Vec<u64>, TensorType, Vec<u8>)>,
}

impl<'a> Draft<'a> {
    fn of(file: &'a [u8]) -> Self {
        let reader = Reader::new(file).unwrap();
        let entries = reader
            .metadata()
            .filter(|(key, _)| !key.starts_with("tokenizer"));
        let tensors = reader.tensors().map(|info| {
            let dims = info.shape.dims().to_vec();
            (info.name.to_owned(), dims, info.kind, info.data.to_vec())
        });
        Self {
            entries: entries
                .map(|(key, value)| (key.to_owned(), value))
                .collect(),
            tensors: tensors.collect(),
        }
    }

    /// With a value in place of what stood under the key, if anything did.
    fn with(mut self, key: &str, value: impl Into<Value<'a>>) -> Self {
        self.entries.retain(|(own, _)| own != key);
        self.entries.push((key.to_owned(), value.into()));
        self
    }

    fn without(mut self, key: &str) -> Self {
        let before = self.entries.len();
        self.entries.retain(|(own, _)| own != key);
        assert!(self.entries.len() < before, "{key}");
        self
    }

    /// With a tensor of f32 zeros in place of the one of that name, if there was one.
    fn with_zeros(mut self, name: &str, dims: &[u64]) -> Self {
        self.tensors.retain(|(own, ..)| own != name);
        let len = 4 * dims.iter().product::<u64>() as usize;
        let zeros = vec![0; len];
        self.tensors
            .push((name.to_owned(), dims.to_vec(), TensorType::F32, zeros));
        self
    }

    fn write(&self) -> Vec<u8> {
        let specs: Vec<TensorSpec<'_>> = self
            .tensors
            .iter()
            .map(|(name, dims, kind, _)| TensorSpec::new(name, dims, *kind).unwrap())
            .collect();
        let entries = self.entries.len() as u64;
        let mut writer = Writer::new(Bytes(Vec::new()), entries, &specs).unwrap();
        for (key, value) in &self.entries {
            writer.entry(key, *value).unwrap();
        }
        let mut writer = writer.into_data().unwrap();
        for (name, .., bytes) in &self.tensors {
            writer.begin(name).unwrap();
            writer.write(bytes).unwrap();
        }
        writer.finish().unwrap().0
    }

    /// What the model of it is refused with.
    fn refusal(&self) -> Option<ModelError> {
        refusal(&self.write())
    }

    fn said(&self) -> String {
        self.refusal()
            .map_or_else(String::new, |error| error.to_string())
    }

    /// The shape that is read from it.
    fn config(&self) -> Config {
        let file = self.write();
        let file = Reader::new(&file).unwrap();
        let (mut layers, mut steps) = ([DecoderLayer::EMPTY; 2], [0; 2]);
        let model = Model::new(&file, &mut layers, &mut steps).unwrap();
        *model.config()
    }
}

/// As whoever allocates does it: sizes first.
fn refusal(file: &[u8]) -> Option<ModelError> {
    let file = match Reader::new(file) {
        Ok(file) => file,
        Err(error) => return Some(ModelError::File { error }),
    };
    let (layers, steps) = match Model::lengths(&file) {
        Ok(lengths) => lengths,
        Err(error) => return Some(error),
    };
    // So that what is allocated for a file is no more than the file's size times some number.
    assert!(layers <= file.tensors().len() && steps <= 256);
    let (mut layers, mut steps) = (vec![DecoderLayer::EMPTY; layers], vec![0; steps]);
    Model::new(&file, &mut layers, &mut steps).err()
}

#[test]
fn a_file_taken_apart_is_the_same_model() {
    for file in [TERNARY, LLAMA] {
        assert_eq!(Draft::of(file).refusal(), None);
    }
}

#[test]
fn a_value_that_is_none_is_refused_with_its_key() {
    let nan = f32::NAN;
    let many = [4u32, 4];
    let refused: [(&str, Value<'_>, &str); 41] = [
        ("block_count", 0u32.into(), "at least 1"),
        ("block_count", 25u32.into(), "number of tensors"),
        ("block_count", (1u32 << 30).into(), "number of tensors"),
        ("block_count", u32::MAX.into(), "below 2^31"),
        ("block_count", (1u64 << 40).into(), "below 2^31"),
        ("block_count", (-2i32).into(), "below 2^31"),
        ("embedding_length", 0u32.into(), "at least 1"),
        ("feed_forward_length", 0u32.into(), "at least 1"),
        ("feed_forward_length", (&many[..]).into(), "below 2^31"),
        ("attention.head_count", 0u32.into(), "at least 1"),
        ("attention.head_count", 24u32.into(), "a divisor"),
        ("attention.head_count", (&many[..]).into(), "below 2^31"),
        ("attention.head_count", "16".into(), "below 2^31"),
        ("attention.head_count_kv", 0u32.into(), "at least 1"),
        ("attention.head_count_kv", 3u32.into(), "a divisor"),
        ("attention.head_count_kv", 32u32.into(), "a divisor"),
        ("attention.head_count_kv", (&many[..]).into(), "below 2^31"),
        ("attention.key_length", 5u32.into(), "even"),
        ("attention.key_length", 0u32.into(), "even"),
        ("attention.key_length", 514u32.into(), "at most 512"),
        ("attention.value_length", 8u32.into(), "length of a head"),
        ("rope.dimension_count", 3u32.into(), "length of a head"),
        ("rope.dimension_count", 2u32.into(), "length of a head"),
        ("rope.dimension_count", 128u32.into(), "length of a head"),
        ("context_length", 0u32.into(), "at least 1"),
        ("context_length", 640f32.into(), "below 2^31"),
        ("context_length", u32::MAX.into(), "below 2^31"),
        ("attention.sliding_window", (1u64 << 31).into(), "below"),
        ("attention.layer_norm_rms_epsilon", nan.into(), "finite"),
        (
            "attention.layer_norm_rms_epsilon",
            (-1f32).into(),
            "least 0",
        ),
        ("attention.layer_norm_rms_epsilon", 1e-5f64.into(), "an f32"),
        ("rope.freq_base", 0.5f32.into(), "at least 1"),
        ("rope.freq_base", f32::INFINITY.into(), "finite"),
        ("rope.scaling.factor", (-2f32).into(), "at least 1"),
        ("rope.scaling.factor", nan.into(), "finite"),
        ("rope.scaling.factor", 3e12f32.into(), "at most 2^40"),
        ("rope.scaling.type", "yarn".into(), "yarn"),
        ("rope.scaling.type", 2u32.into(), "`none` or `linear`"),
        ("rope.scaling.attn_factor", 0.5f32.into(), "1; scores"),
        ("hidden_activation", "gelu".into(), "`silu` or `relu2`"),
        ("expert_count", 8u32.into(), "experts"),
    ];
    for (key, value, said) in refused {
        // Which it would contradict.
        let others = [
            "rope.dimension_count",
            "attention.key_length",
            "attention.value_length",
        ];
        let draft = others.into_iter().fold(Draft::of(TERNARY), |draft, key| {
            draft.without(&format!("bitnet.{key}"))
        });
        let found = draft.with(&format!("bitnet.{key}"), value).said();
        let named = found.contains(&format!("key <architecture>.{key} is "));
        assert!(named && found.contains(said), "{key} {value:?}: {found}");
    }
    for key in [
        "block_count",
        "embedding_length",
        "feed_forward_length",
        "attention.head_count",
        "context_length",
        "attention.layer_norm_rms_epsilon",
    ] {
        let found = Draft::of(TERNARY).without(&format!("bitnet.{key}")).said();
        assert!(
            found.contains(&format!("<architecture>.{key} is missing")),
            "{found}"
        );
    }
    for (key, value) in [
        ("tercet.cache", Value::from("int4")),
        ("tercet.cache", 8u32.into()),
        ("tercet.attention.sinks", (-1i32).into()),
        ("tercet.attention.stride", "2".into()),
    ] {
        let found = Draft::of(TERNARY).with(key, value).said();
        assert!(found.starts_with(&format!("key {key} is not ")), "{found}");
    }
}

#[test]
fn sizes_that_no_tensor_has_are_refused_with_the_tensor() {
    for (key, value, tensor) in [
        ("embedding_length", 1u32 << 30, "token_embd.weight"),
        ("feed_forward_length", 1 << 30, "blk.0.ffn_gate.weight"),
    ] {
        let draft = Draft::of(TERNARY).with(&format!("bitnet.{key}"), value);
        let draft = draft.with("bitnet.attention.key_length", 4u32);
        let found = draft.said();
        assert!(found.contains(tensor), "{key}: {found}");
    }
    // 2³⁹ rows, which 32 bits do not count.
    let heads = Draft::of(TERNARY)
        .with("bitnet.attention.head_count", 1u32 << 30)
        .with("bitnet.attention.key_length", 512u32)
        .with("bitnet.attention.value_length", 512u32)
        .with("bitnet.rope.dimension_count", 512u32);
    let found = heads.said();
    let expected = match size_of::<usize>() {
        4 => "too large",
        _ => "blk.0.attn_q.weight",
    };
    assert!(found.contains(expected), "{found}");
}

#[test]
fn a_tensor_that_is_missing_or_of_another_shape_is_named() {
    for file in [TERNARY, LLAMA] {
        let whole = Draft::of(file);
        for number in 0..whole.tensors.len() {
            let mut draft = Draft::of(file);
            let (name, dims, ..) = draft.tensors.remove(number);
            let optional = ["bias", "rope_freqs", "output.weight"];
            if optional
                .iter()
                .any(|part| name == *part || name.contains(part))
                && !name.contains("attn_output.weight")
            {
                assert_eq!(draft.refusal(), None, "{name}");
            } else {
                let found = draft.said();
                assert!(
                    found.contains(&name) && found.contains("missing"),
                    "{found}"
                );
            }
            let mut longer = dims.clone();
            *longer.last_mut().unwrap() += 1;
            let found = Draft::of(file).with_zeros(&name, &longer).said();
            // Another number of tokens is another's fault where there are two that count them.
            let counted = found.contains("output.weight") && name == "token_embd.weight";
            let free = name == "token_embd.weight" && found.is_empty();
            assert!(found.contains(&name) || counted || free, "{name}: {found}");
        }
    }
}

#[test]
fn what_an_architecture_lacks_is_refused_by_its_place() {
    let bitnet = |name: &str, dims: &[u64]| Draft::of(TERNARY).with_zeros(name, dims).said();
    let has_no_place = |found: String| assert!(found.contains("no place"), "{found}");
    assert!(bitnet("output.weight", &[64, 259]).contains("output.weight"));
    has_no_place(bitnet("rope_freqs.weight", &[2]));
    has_no_place(bitnet("blk.0.attn_q.bias", &[64]));
    has_no_place(bitnet("blk.2.attn_q.weight", &[64, 64]));
    has_no_place(bitnet("blk.00.attn_q.weight", &[64, 64]));
    has_no_place(bitnet("blk.18446744073709551616.attn_q.weight", &[64, 64]));
    has_no_place(bitnet("blk.-1.attn_q.weight", &[64, 64]));
    has_no_place(bitnet("rope_factors_long.weight", &[2]));
    let found = Draft::of(LLAMA)
        .with_zeros("blk.0.attn_sub_norm.weight", &[32])
        .said();
    has_no_place(found);
    let found = Draft::of(LLAMA)
        .with_zeros("rope_freqs.weight", &[2])
        .said();
    assert!(found.contains("rope_freqs.weight"), "{found}");
    let found = Draft::of(LLAMA)
        .with_zeros("output.weight", &[32, 296])
        .said();
    assert!(
        found.contains("output.weight") && found.contains("rows"),
        "{found}"
    );
    // A scale of another type, or one that is no number.
    let nan = f32::NAN.to_le_bytes();
    let mut draft = Draft::of(TERNARY).with_zeros("blk.1.ffn_up.scale", &[1]);
    draft.tensors.last_mut().unwrap().3.copy_from_slice(&nan);
    let found = draft.said();
    assert!(
        found.contains("blk.1.ffn_up.scale") && found.contains("finite"),
        "{found}"
    );
}

#[test]
fn a_window_is_the_file_s_unless_it_reaches_past_the_context() {
    let window = |value: u32| Draft::of(TERNARY).with("bitnet.attention.sliding_window", value);
    let pattern = |window| Pattern {
        window,
        ..Pattern::FULL
    };
    assert_eq!(window(0).config().pattern, Pattern::FULL);
    assert_eq!(window(640).config().pattern, pattern(640));
    assert_eq!(window(641).config().pattern, Pattern::FULL);
    assert_eq!(window(i32::MAX as u32).config().pattern, Pattern::FULL);
    let sinks = |of: u32, count: u32| window(of).with("tercet.attention.sinks", count);
    assert_eq!(
        sinks(600, 40).config().pattern,
        Pattern {
            sinks: 40,
            ..pattern(600)
        }
    );
    for (of, count) in [(600, 41), (1, 640), (1, i32::MAX as u32)] {
        let found = sinks(of, count).said();
        assert!(found.contains("key tercet.attention.sinks"), "{found}");
    }
    // Without a window they are attended to anyway.
    assert_eq!(sinks(0, 700).refusal(), None);
}

#[test]
fn a_rotation_is_scaled_as_llama_cpp_does() {
    const FACTOR: &str = "bitnet.rope.scaling.factor";
    const TYPE: &str = "bitnet.rope.scaling.type";
    const OLD: &str = "bitnet.rope.scale_linear";
    let plain = || Draft::of(TERNARY);
    let factor = |draft: Draft<'_>| draft.config().rope_factor;
    assert_eq!(factor(plain()), 1.0);
    // Without a type it is linear; with none the factor does not count, wherever the type stands.
    assert_eq!(factor(plain().with(FACTOR, 4f32)), 4.0);
    assert_eq!(factor(plain().with(FACTOR, 4f32).with(TYPE, "linear")), 4.0);
    assert_eq!(factor(plain().with(FACTOR, 4f32).with(TYPE, "none")), 1.0);
    assert_eq!(factor(plain().with(TYPE, "none").with(FACTOR, 4f32)), 1.0);
    assert_eq!(factor(plain().with(FACTOR, 0f32)), 1.0);
    assert_eq!(factor(plain().with(OLD, 4f32)), 4.0);
    assert_eq!(factor(plain().with(OLD, 4f32).with(FACTOR, 2f32)), 2.0);
    assert_eq!(
        plain()
            .with("bitnet.rope.scaling.attn_factor", 1f32)
            .refusal(),
        None
    );
}

/// A file with a part of it written over; the first of its kind.
fn with_bytes(file: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let at = file
        .windows(from.len())
        .position(|part| part == from)
        .unwrap();
    let mut file = file.to_vec();
    file[at..][..to.len()].copy_from_slice(to);
    file
}

#[test]
fn hostile_files_are_refused_with_the_key_or_the_tensor() {
    assert_eq!(refusal(TERNARY), None);
    let said = |from: &str, to: &str| {
        refusal(&with_bytes(TERNARY, from.as_bytes(), to.as_bytes()))
            .unwrap()
            .to_string()
    };
    assert_eq!(
        said("general.architecture", "general.architekture"),
        "general.architecture is missing or none of bitnet, bitnet-b1.58, bitnet-25 and llama"
    );
    assert_eq!(
        said("bitnet.block_count", "bitnet.block_mount"),
        "key <architecture>.block_count is missing or not an integer of at least 1"
    );
    assert_eq!(
        said("output_norm.weight", "output_morm.weight"),
        "tensor number 23 has no place in this architecture, or comes twice"
    );
    assert!(said("blk.1.ffn_up.weight", "blk.1.ffn_xp.weight").contains("has no place"));
    assert!(said("blk.1.attn_q.weight", "blk.0.attn_q.weight").contains("comes twice"));
}

#[test]
fn a_file_with_any_byte_changed_is_taken_or_refused() {
    let header = TERNARY.len() - Reader::new(TERNARY).unwrap().data().len();
    for at in 0..header {
        let mut file = TERNARY.to_vec();
        for to in [0, 0xFF, file[at] ^ 1] {
            file[at] = to;
            if let Some(error) = refusal(&file) {
                assert!(
                    !matches!(error, ModelError::Room { .. } | ModelError::Layers { .. }),
                    "{error}"
                );
            }
        }
    }
    for len in 0..TERNARY.len() {
        let refused = refusal(&TERNARY[..len]);
        assert!(matches!(refused, Some(ModelError::File { .. })), "{len}");
    }
}
