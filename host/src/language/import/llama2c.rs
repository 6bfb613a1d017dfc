//! Checkpoints of llama2.c (`export.py`): a header, then the weights as `f32`, with the weights of one kind for all
//! layers side by side.
//!
//! | version | header | then |
//! |---|---|---|
//! | 0 | seven i32: width, feed-forward width, layers, heads, key heads, tokens (negative: a separate head), context | weights in the order of use, norms of a kind with its matrices; two tables of RoPE before the head |
//! | 1 | `ak42`, 1, the same seven, one byte (1: the embedding is the head), zeros up to 256 bytes | all norms, then all matrices |
//!
//! Version 2 holds int8 codes and is refused.

use std::path::Path;

use super::Checkpoint;
use super::tokenizer::read as read_tokenizer;
use crate::Error;
use crate::dtype::DType;
use crate::file::map::Map;
use crate::language::parameters::{Architecture, Parameters};
use crate::language::tensors::Extras;
use crate::tensor_file::{Container, Contents, Entry, TensorFile};

const FORMAT: &str = "llama2.c";
/// `ak42` as the number that the file stores.
const MARK: [u8; 4] = 0x616b_3432u32.to_le_bytes();
/// Start of the weights in versions 0 and 1.
const STARTS: [u64; 2] = [28, 256];
/// More layers than any model has; each has a dozen tensors to describe.
const MOST_LAYERS: i32 = 4096;
/// Not stored in a checkpoint; the constant of llama2.c.
const EPSILON: f32 = 1e-5;
const ROPE_BASE: f32 = 10_000.0;

/// Reads a checkpoint's header, and the vocabulary from a separate file or from the data after the weights.
pub(super) fn read(path: &Path, tokenizer: Option<&Path>) -> Result<Checkpoint, Error> {
    let map = Map::open(path)?;
    let bad = |reason: String| Error::bad(path, FORMAT, reason);
    let header = Header::read(map.bytes()).map_err(bad)?;
    let parameters = header.parameters().map_err(bad)?;
    let length = map.bytes().len();
    let places = header.places(&parameters);
    let fits = |places: &Places| places.end <= length as u64;
    let Some(places) = places.as_ref().filter(|places| fits(places)) else {
        let needed = places.map_or("more than 2^64".to_owned(), |places| places.end.to_string());
        return Err(bad(format!(
            "by its header ({}) it has {needed} bytes, but the file has {length}",
            header.sizes()
        )));
    };
    let (end, count) = (places.end as usize, parameters.vocab_size as usize);
    let vocabulary = match tokenizer {
        Some(_) if end < length => {
            return Err(bad(format!(
                "{} bytes follow its weights, at offset {end}; a vocabulary that is joined to them is read without a tokenizer file",
                length - end
            )));
        }
        Some(path) => read_tokenizer(path, Map::open(path)?.bytes(), 0, count)?,
        None if end == length => {
            let reason = "a checkpoint has no vocabulary: name its tokenizer file";
            return Err(Error::unsupported(path, reason));
        }
        None => read_tokenizer(path, &map.bytes()[end..], end, count)?,
    };
    let tied = header.tied;
    let extras = Extras {
        head: !tied,
        ..Extras::default()
    };
    let entries = parameters.tensors(extras).into_iter();
    let entries = entries.map(|slot| {
        let start = places.start(&slot.name);
        Entry {
            // Inside the file, which is mapped.
            start: start.expect("a checkpoint has every tensor of a llama") as usize,
            len: slot.values() * 4,
            name: slot.name,
            shape: slot.shape,
            dtype: DType::F32,
            file: 0,
        }
    });
    let contents = Contents {
        container: Container::Llama2c,
        entries: entries.collect(),
        maps: vec![map],
        metadata: Vec::new(),
    };
    Ok(Checkpoint {
        model: TensorFile::of(path, contents)?,
        format: format!("{FORMAT} version {}", header.version),
        parameters,
        extras,
        is_ternary: false,
        has_halves: false,
        vocabulary,
        beside: tokenizer.map(Path::to_path_buf).into_iter().collect(),
        theirs: str::to_owned,
        default: DType::F32,
    })
}

/// The content of a header.
struct Header {
    version: usize,
    /// Width, feed-forward width, layers, heads, key heads, tokens and context; not negative.
    sizes: [u32; 7],
    tied: bool,
}

/// The place of the weights of one kind, for all layers side by side.
struct Stack {
    /// Its name in GGUF, without `.weight`; with a dot before it if each layer has one, empty if it is skipped.
    name: &'static str,
    start: u64,
    /// Bytes per layer.
    bytes: u64,
}

/// All places, and their end.
struct Places {
    stacks: Vec<Stack>,
    end: u64,
}

impl Places {
    /// Returns the start of a tensor, by its name in GGUF.
    fn start(&self, name: &str) -> Option<u64> {
        let name = name.strip_suffix(".weight")?;
        let (layer, name) = match name.strip_prefix("blk.") {
            None => (0, name),
            Some(rest) => {
                let dot = rest.find('.')?;
                (rest[..dot].parse::<u64>().ok()?, &rest[dot..])
            }
        };
        let stack = self.stacks.iter().find(|stack| stack.name == name)?;
        Some(stack.start + layer * stack.bytes)
    }
}

impl Header {
    fn read(bytes: &[u8]) -> Result<Self, String> {
        let short = || format!("it ends inside its header, after {} bytes", bytes.len());
        let word = |index: usize| {
            let word = bytes.get(index * 4..).and_then(<[u8]>::first_chunk);
            word.map(|&word| i32::from_le_bytes(word)).ok_or_else(short)
        };
        let version = match bytes.starts_with(&MARK) {
            false => 0,
            true => match word(1)? {
                1 => 1,
                other => {
                    return Err(format!(
                        "version {other} is not supported; versions 0 and 1 are"
                    ));
                }
            },
        };
        let first = version * 2;
        let mut signed = [0; 7];
        for (index, size) in signed.iter_mut().enumerate() {
            *size = word(first + index)?;
        }
        let tied = match version {
            0 => signed[5] > 0,
            _ => match bytes.get((first + 7) * 4).ok_or_else(short)? {
                0 => false,
                1 => true,
                other => return Err(format!("its byte 36 is {other} instead of 0 or 1")),
            },
        };
        if version == 0 {
            signed[5] = signed[5].checked_abs().unwrap_or(0);
        }
        let names = [
            "width",
            "feed-forward width",
            "number of layers",
            "number of heads",
            "number of heads of keys",
            "number of tokens",
            "context",
        ];
        let names = names.iter();
        if let Some((name, size)) = names.zip(signed).find(|(_, size)| *size <= 0) {
            return Err(format!("its {name} is {size}"));
        }
        if signed[2] > MOST_LAYERS {
            return Err(format!(
                "its number of layers is {}, above {MOST_LAYERS}",
                signed[2]
            ));
        }
        Ok(Self {
            version,
            sizes: signed.map(i32::unsigned_abs),
            tied,
        })
    }

    fn sizes(&self) -> String {
        let [width, feed, layers, heads, kv, tokens, context] = self.sizes;
        format!(
            "width {width}, feed-forward {feed}, layers {layers}, heads {heads}:{kv}, tokens {tokens}, context {context}"
        )
    }

    fn parameters(&self) -> Result<Parameters, String> {
        let [width, feed, layers, heads, kv, tokens, context] = self.sizes;
        if !width.is_multiple_of(heads) {
            return Err(format!(
                "its width of {width} does not divide into {heads} heads"
            ));
        }
        let parameters = Parameters {
            architecture: Architecture::Llama,
            context_length: context,
            embedding_length: width,
            block_count: layers,
            feed_forward_length: feed,
            head_count: heads,
            head_count_kv: kv,
            head_length: width / heads,
            vocab_size: tokens,
            rms_epsilon: EPSILON,
            rope_base: ROPE_BASE,
            rope_factor: None,
        };
        match parameters.refusal() {
            Some(reason) => Err(reason),
            None => Ok(parameters),
        }
    }

    /// Computes the places of the weights, by kinds; `None` if their bytes exceed 64 bits.
    fn places(&self, parameters: &Parameters) -> Option<Places> {
        let [width, feed, layers, _, _, tokens, context] = self.sizes.map(u64::from);
        let (queries, keys) = (parameters.query_length(), parameters.key_length());
        let table = context.checked_mul(u64::from(parameters.head_length) / 2)?;
        let (queries, keys) = (queries.checked_mul(width)?, keys.checked_mul(width)?);
        let (feed, tokens) = (feed.checked_mul(width)?, tokens.checked_mul(width)?);
        let embedding = ("token_embd", tokens);
        let (attention_norm, feed_norm) = ((".attn_norm", width), (".ffn_norm", width));
        let norm = ("output_norm", width);
        let attention = [
            (".attn_q", queries),
            (".attn_k", keys),
            (".attn_v", keys),
            (".attn_output", queries),
        ];
        // w1, w2 and w3.
        let feed = [(".ffn_gate", feed), (".ffn_down", feed), (".ffn_up", feed)];
        let mut kinds = Vec::new();
        if self.version == 0 {
            kinds.extend([embedding, attention_norm]);
            kinds.extend(attention);
            kinds.push(feed_norm);
            kinds.extend(feed);
            kinds.extend([norm, ("", table), ("", table)]);
        } else {
            kinds.extend([attention_norm, feed_norm, norm, embedding]);
            kinds.extend(attention);
            kinds.extend(feed);
        }
        if !self.tied {
            kinds.push(("output", tokens));
        }
        let (mut stacks, mut end) = (Vec::new(), STARTS[self.version]);
        for (name, values) in kinds {
            let count = if name.starts_with('.') { layers } else { 1 };
            let (start, bytes) = (end, values.checked_mul(4)?);
            stacks.push(Stack { name, start, bytes });
            end = bytes.checked_mul(count)?.checked_add(end)?;
        }
        Some(Places { stacks, end })
    }
}
