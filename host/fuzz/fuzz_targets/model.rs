//! Language models: a small one of any shape is taken and runs, the same in chunks as one token at a time; with
//! anything in its file changed it is refused with the key or the tensor, or runs in the memory that it asks for.
//!
//! The input is a shape, how it is run, and edits of the file.

#![no_main]

use std::convert::Infallible;

use libfuzzer_sys::fuzz_target;
use tercet_core::block::{self, Format};
use tercet_core::gguf::{Reader, Sink, TensorSpec, TensorType, Value, Writer};
use tercet_core::model::{
    Cache, CacheShape, CacheType, Codes, DecoderLayer, Memory, Model, ModelError, Needs, Pattern,
    Place, Row, Sampler, Sequence, decode, nll,
};
use tercet_core::number::Random;
use tercet_core::quant::{Rule, ScaleRule};
use tercet_core::scalar::Scalar;

/// Larger ones would only be slow.
const MOST: usize = 4 << 20;
/// Rows of a step.
const CHUNK: u32 = 3;

struct Bytes(Vec<u8>);

impl Sink for Bytes {
    type Error = Infallible;

    fn write(&mut self, bytes: &[u8]) -> Result<(), Infallible> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }
}

/// The input, zeros behind it.
struct Choices<'b>(&'b [u8]);

impl Choices<'_> {
    fn byte(&mut self) -> u8 {
        self.0.split_off_first().copied().unwrap_or(0)
    }

    /// One of so many.
    fn below(&mut self, count: usize) -> usize {
        usize::from(self.byte()) % count
    }

    fn among<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    fn u32(&mut self) -> u32 {
        u32::from_le_bytes([self.byte(), self.byte(), self.byte(), self.byte()])
    }
}

/// A tensor of the file: its dimensions, row first, its type and its bytes.
type Tensor = (String, Vec<u64>, TensorType, Vec<u8>);

fn floats(kind: TensorType, values: &[f32]) -> Vec<u8> {
    let bits = values.iter().map(|value| value.to_bits());
    match kind {
        TensorType::F32 => bits.flat_map(u32::to_le_bytes).collect(),
        TensorType::BF16 => bits
            .flat_map(|bits| ((bits >> 16) as u16).to_le_bytes())
            .collect(),
        // Halves within ±1/8, exact enough.
        _ => bits
            .map(|bits| match bits << 1 >> 24 {
                0..=112 => 0,
                _ => (bits >> 16 & 0x8000 | (bits << 1 >> 1).wrapping_sub(112 << 23) >> 13) as u16,
            })
            .flat_map(u16::to_le_bytes)
            .collect(),
    }
}

/// A matrix, in a type that its rows divide into.
fn matrix(
    choices: &mut Choices<'_>,
    random: &mut Random,
    name: String,
    shape: [usize; 2],
) -> Tensor {
    let [rows, cols] = shape;
    let floating = [TensorType::F32, TensorType::F16, TensorType::BF16];
    let fits = |format: &Format| cols.is_multiple_of(format.len());
    let formats: Vec<Format> = Format::ALL.into_iter().filter(fits).collect();
    let mut values: Vec<f32> = (0..rows * cols)
        .map(|_| random.unit_f32() / 4.0 - 0.125)
        .collect();
    let dims = vec![cols as u64, rows as u64];
    let Some(&format) = formats.get(choices.below(floating.len() + formats.len())) else {
        let kind = choices.among(&floating);
        return (name, dims, kind, floats(kind, &values));
    };
    let mut bytes = vec![0; format.encoded_len(values.len()).expect("whole blocks")];
    if format.is_ternary() {
        values
            .iter_mut()
            .for_each(|value| *value = value.signum() * 0.125);
    }
    if format.can_encode() {
        block::encode(
            format,
            Rule::default(),
            ScaleRule::default(),
            &values,
            &mut bytes,
        )
        .expect("values are finite");
    } else {
        for (byte, value) in bytes.iter_mut().zip(&values) {
            *byte = value.to_bits() as u8;
        }
        for block in bytes.chunks_exact_mut(format.bytes()) {
            for at in [Some(format.scale_offset()), format.min_offset()]
                .into_iter()
                .flatten()
            {
                // 2⁻¹⁰.
                block[at..][..2].copy_from_slice(&[0x00, 0x14]);
            }
        }
    }
    (name, dims, TensorType(format.gguf_type()), bytes)
}

/// What the file says, and its bytes, and where in them numbers stand.
struct File {
    bytes: Vec<u8>,
    numbers: Vec<usize>,
    header: usize,
}

/// A model that is to be taken.
fn whole(choices: &mut Choices<'_>) -> File {
    let name = choices.among(&["bitnet", "llama", "bitnet-b1.58", "bitnet-25"]);
    let is_llama = name == "llama";
    let mut random = Random::new(choices.byte().into());
    // Of 256 there are blocks of every type.
    let sizes = [(32, 32), (6, 10), (64, 6), (10, 64), (256, 6), (6, 256)];
    let (width, hidden) = choices.among(&sizes);
    let head = choices.among(&[4, 2, 8, 32]);
    let kv_heads = 1 + choices.below(2);
    let heads = kv_heads * (1 + choices.below(2));
    let layers = 1 + choices.below(2);
    let vocabulary = 1 + choices.below(9);
    let (queries, keys) = (heads * head, kv_heads * head);
    let options = choices.byte();
    let mut tensors = Vec::new();
    let vector = |random: &mut Random, name: String, len: usize| -> Tensor {
        let values: Vec<f32> = (0..len).map(|_| 0.5 + random.unit_f32()).collect();
        (
            name,
            vec![len as u64],
            TensorType::F32,
            floats(TensorType::F32, &values),
        )
    };
    let embedding = "token_embd.weight".to_owned();
    tensors.push(matrix(choices, &mut random, embedding, [vocabulary, width]));
    if is_llama && options & 1 == 1 {
        let head = "output.weight".to_owned();
        tensors.push(matrix(choices, &mut random, head, [vocabulary, width]));
    }
    if is_llama && options & 2 == 2 {
        tensors.push(vector(&mut random, "rope_freqs.weight".into(), head / 2));
    }
    for layer in 0..layers {
        let of = |part: &str, end: &str| format!("blk.{layer}.{part}.{end}");
        for (part, shape) in [
            ("attn_q", [queries, width]),
            ("attn_k", [keys, width]),
            ("attn_v", [keys, width]),
            ("attn_output", [width, queries]),
            ("ffn_gate", [hidden, width]),
            ("ffn_up", [hidden, width]),
            ("ffn_down", [width, hidden]),
        ] {
            tensors.push(matrix(choices, &mut random, of(part, "weight"), shape));
            if is_llama && options & 4 == 4 {
                tensors.push(vector(&mut random, of(part, "bias"), shape[0]));
            }
            if options & 8 == 8 {
                tensors.push(vector(&mut random, of(part, "scale"), 1));
            }
        }
        let norms = [("attn_norm", width), ("ffn_norm", width)];
        let below = [("attn_sub_norm", queries), ("ffn_sub_norm", hidden)];
        let below = below.into_iter().filter(|_| !is_llama);
        for (part, len) in norms.into_iter().chain(below) {
            tensors.push(vector(&mut random, of(part, "weight"), len));
        }
    }
    tensors.push(vector(&mut random, "output_norm.weight".into(), width));
    let count = |number: usize| Value::U32(number as u32);
    let (window, sinks, stride) = (1 + choices.below(80), choices.below(3), choices.below(3));
    let scaling = choices.among(&["none", "linear"]);
    let own = [
        ("block_count", count(layers)),
        ("embedding_length", count(width)),
        ("feed_forward_length", count(hidden)),
        ("attention.head_count", count(heads)),
        ("attention.head_count_kv", count(kv_heads)),
        ("attention.key_length", count(head)),
        ("attention.value_length", count(head)),
        ("rope.dimension_count", count(head)),
        ("context_length", count(100)),
        ("attention.sliding_window", count(window)),
        ("expert_count", count(0)),
        ("attention.layer_norm_rms_epsilon", Value::F32(1e-5)),
        ("rope.freq_base", Value::F32(10_000.0)),
        ("rope.scaling.factor", Value::F32(2.0)),
        ("rope.scaling.type", Value::String(scaling)),
        (
            "hidden_activation",
            Value::String(choices.among(&["silu", "relu2"])),
        ),
    ];
    let kind = CacheType::ALL[choices.below(4)].name();
    let others = [
        ("general.architecture", Value::String(name)),
        ("tercet.cache", Value::String(kind)),
        ("tercet.attention.sinks", count(sinks)),
        ("tercet.attention.stride", count(stride)),
    ];
    let own = own.map(|(key, value)| (format!("{name}.{key}"), value));
    let mut entries: Vec<(String, Value<'_>)> = own.into();
    entries.extend(others.map(|(key, value)| (key.to_owned(), value)));
    write(&entries, &tensors)
}

fn write(entries: &[(String, Value<'_>)], tensors: &[Tensor]) -> File {
    fn of<'t>((name, dims, kind, _): &'t Tensor) -> TensorSpec<'t> {
        TensorSpec::new(name, dims, *kind).expect("a tensor of whole blocks")
    }
    let specs: Vec<TensorSpec<'_>> = tensors.iter().map(of).collect();
    let mut writer =
        Writer::new(Bytes(Vec::new()), entries.len() as u64, &specs).expect("names are short");
    for (key, value) in entries {
        writer.entry(key, *value).expect("a plain entry");
    }
    let mut writer = writer.into_data().expect("all entries");
    for (name, _, _, bytes) in tensors {
        writer.begin(name).expect("the next one");
        writer.write(bytes).expect("as long as it says");
    }
    let bytes = writer.finish().expect("all tensors").0;
    let header = bytes.len() - Reader::new(&bytes).expect("a whole file").data().len();
    // In the order in which they were written.
    let mut last = 0;
    let mut behind = |name: &str| {
        let mut places = bytes[last..header].windows(name.len());
        let at = places.position(|part| part == name.as_bytes());
        last += at.expect("a name that was written") + name.len();
        last
    };
    // The counts of tensors and entries; values and their types; dimensions, types and offsets.
    let mut numbers = vec![8, 16];
    for (key, _) in entries {
        let at = behind(key);
        numbers.extend([at, at + 4]);
    }
    for (name, dims, ..) in tensors {
        let at = behind(name);
        numbers.extend((0..dims.len() + 1).map(|dim| at + 4 + 8 * dim));
        numbers.extend([at, at + 4 + 8 * dims.len() + 4]);
    }
    File {
        bytes,
        numbers,
        header,
    }
}

/// Changes the file as the input says; whether it did.
fn edit(choices: &mut Choices<'_>, file: &mut File) -> bool {
    // Counts; of f32 NaN, infinity, −1, the largest, 1 and 2⁴⁰.
    const TELLING: [u32; 15] = [
        0,
        1,
        2,
        3,
        u32::MAX,
        i32::MAX as u32,
        1 << 31,
        1 << 20,
        640,
        0x7FC0_0000,
        0x7F80_0000,
        0xBF80_0000,
        0x7F7F_FFFF,
        0x3F80_0000,
        0x5380_0000,
    ];
    let is_any = !choices.0.is_empty();
    while !choices.0.is_empty() && !file.bytes.is_empty() {
        let how = choices.byte();
        let len = file.bytes.len();
        let (at, bytes) = match how % 4 {
            0 => (
                choices.among(&file.numbers),
                choices.among(&TELLING).to_le_bytes().to_vec(),
            ),
            1 => (
                choices.among(&file.numbers),
                choices.u32().to_le_bytes().to_vec(),
            ),
            2 => {
                let end = if how & 4 == 4 { file.header } else { len };
                (choices.u32() as usize % end, vec![choices.byte()])
            }
            _ => {
                file.bytes.truncate(choices.u32() as usize % len);
                continue;
            }
        };
        if let Some(place) = file.bytes.get_mut(at..at + bytes.len()) {
            place.copy_from_slice(&bytes);
        }
    }
    is_any
}

/// Takes the tokens in, so many rows a step, of two sequences; gives all logits, or nothing where the memory is too
/// large or a step is refused.
fn run(model: &Model<'_, '_>, tokens: &[u32], rows: usize, pattern: Pattern) -> Option<Vec<f32>> {
    let config = model.config();
    let context = config.context;
    let shape = CacheShape::new(config, config.cache);
    let own = Sequence::pages(pattern, context, CHUNK);
    let bytes = own.saturating_mul(2).saturating_mul(shape.bytes());
    let needs = Needs::of(&Scalar, model, pattern, context, rows).ok()?;
    if bytes.saturating_add(needs.total_bytes()) > MOST {
        return None;
    }
    let codes = 2 * own * shape.codes();
    let (mut k8, mut k16) = (vec![7; codes], vec![7; codes]);
    let (mut v8, mut v16) = (vec![7; codes], vec![7; codes]);
    let mut scales = vec![f32::NAN; 4 * own * shape.scales()];
    let mut free = vec![9; 2 * own];
    let keys = match config.cache.wide_keys() {
        true => Codes::Wide(&mut k16),
        false => Codes::Narrow(&mut k8),
    };
    let values = match config.cache.wide_values() {
        true => Codes::Wide(&mut v16),
        false => Codes::Narrow(&mut v8),
    };
    let mut cache = Cache::new(shape, keys, values, &mut scales, &mut free).expect("its own sizes");
    let mut tables = vec![5; 2 * own];
    let sequences: Result<Vec<Sequence<'_>>, ModelError> = tables
        .chunks_mut(own)
        .map(|table| Sequence::new(pattern, config.cache, context, CHUNK, table))
        .collect();
    let mut sequences = match sequences {
        Ok(sequences) => sequences,
        Err(error) => {
            assert!(matches!(error, ModelError::CacheRange { .. }), "{error}");
            return None;
        }
    };
    let mut memory = Memory {
        places: &mut vec![Place::default(); needs.places],
        floats: &mut vec![f32::NAN; needs.floats],
        bytes: &mut vec![-128; needs.bytes],
        halves: &mut vec![-1; needs.halves],
        longs: &mut vec![-1; needs.least_longs],
        words: &mut vec![u32::MAX; needs.words],
    };
    let mut all = Vec::new();
    let mut logits = vec![f32::NAN; rows * config.vocabulary];
    for tokens in tokens.chunks(rows) {
        let step: Vec<Row> = tokens
            .iter()
            .map(|&token| Row {
                token: token % config.vocabulary as u32,
                sequence: 1,
                logits: true,
            })
            .collect();
        let mut fault = None;
        let sequences = (&mut cache, &mut sequences[..]);
        let done = decode(
            &mut Scalar,
            model,
            sequences,
            &step,
            &mut memory,
            &mut logits,
            &mut |error| fault = Some(error),
        );
        match (done, fault) {
            (Ok(()), None) => all.extend_from_slice(&logits[..tokens.len() * config.vocabulary]),
            (Ok(()), Some(fault)) => {
                assert!(
                    matches!(fault, ModelError::NotFinite { sequence: 1, .. }),
                    "{fault}"
                );
                return None;
            }
            // A context of few positions ends.
            (Err(error), _) => {
                assert!(matches!(error, ModelError::Context { .. }), "{error}");
                return None;
            }
        }
    }
    Some(all)
}

/// Draws by all that a sampler knows, and scores.
fn draw(logits: &[f32], how: u8) {
    let sampler = Sampler {
        temperature: f32::from(how & 3) / 2.0,
        top_k: usize::from(how >> 2 & 3),
        top_p: f32::from(how >> 4 & 3) / 3.0,
        min_p: f32::from(how >> 6) / 3.0,
        penalty: 1.25,
        ..Sampler::GREEDY
    };
    let mut scratch = vec![0; logits.len()];
    let drawn = sampler.draw(&mut logits.to_vec(), &[0, 1, 0], 5, &mut scratch);
    let is_number = logits.iter().any(|logit| !logit.is_nan());
    assert_eq!(drawn.is_some(), is_number);
    if let Some(token) = drawn {
        assert!((token as usize) < logits.len());
        let cost = nll(logits, token as usize);
        assert_eq!(cost.is_some(), logits.iter().all(|logit| logit.is_finite()));
    }
}

fuzz_target!(|bytes: &[u8]| {
    let mut choices = Choices(bytes);
    let mut file = whole(&mut choices);
    let how = choices.byte();
    let tokens: Vec<u32> = (0..1 + choices.below(6))
        .map(|_| choices.byte().into())
        .collect();
    let was_edited = edit(&mut choices, &mut file);
    let Ok(reader) = Reader::new(&file.bytes) else {
        assert!(was_edited);
        return;
    };
    let refuse = |error: ModelError| {
        assert!(was_edited, "{error}");
        assert!(
            !matches!(error, ModelError::Room { .. } | ModelError::Layers { .. }),
            "{error}"
        );
        assert!(!error.to_string().is_empty());
    };
    let (layers, steps) = match Model::lengths(&reader) {
        Ok(lengths) => lengths,
        Err(error) => return refuse(error),
    };
    // What is allocated for a file is bounded by it.
    assert!(layers <= reader.tensors().len() && steps <= 256);
    let (mut layers, mut steps) = (vec![DecoderLayer::EMPTY; layers], vec![0; steps]);
    let model = match Model::new(&reader, &mut layers, &mut steps) {
        Ok(model) => model,
        Err(error) => return refuse(error),
    };
    let pattern = model.config().pattern;
    let needs = Needs::of(
        &Scalar,
        &model,
        Pattern {
            window: 1,
            sinks: 0,
            stride: 0,
        },
        1,
        1,
    )
    .expect("a small model");
    assert!(needs.total_bytes() < 4096 + 256 * file.bytes.len());
    let chunks = run(&model, &tokens, CHUNK as usize, pattern);
    let ones = run(&model, &tokens, 1, pattern);
    let bits = |logits: &Vec<f32>| {
        logits
            .iter()
            .map(|logit| logit.to_bits())
            .collect::<Vec<_>>()
    };
    assert_eq!(chunks.as_ref().map(bits), ones.as_ref().map(bits));
    assert!(was_edited || ones.is_some());
    if let Some(logits) = ones {
        logits
            .chunks(model.config().vocabulary)
            .for_each(|logits| draw(logits, how));
    }
});
