//! Models with random weights from a seed: files of a few hundred kilobytes for tests, without training.
//!
//! The weights of a seed are the same in every type that [`bitnet`] writes, each exact in it, so that programs that
//! read different types can be compared.

use std::path::Path;

use half::f16;
use tercet_core::block::Format;
use tercet_core::number::Random;

use super::parameters::{Architecture, Parameters};
use super::tensors::{Extras, Role, Slot};
use super::vocabulary::{Merging, TokenKind, Vocabulary};
use super::writer::{Description, Writer, specs};
use super::{byte_rows, ternary};
use crate::dtype::DType;
use crate::file::output::Output;
use crate::{Error, Result};

/// Pieces of words in the `llama` vocabulary, the first to merge first.
const PIECES: [&str; 11] = [
    "th", "the", "▁the", "an", "and", "▁and", "in", "ing", "▁a", "er", "on",
];

/// A `bitnet`: width 256, feed-forward 512, 2 layers, heads 4:2, the 259 tokens of [`Vocabulary::bytes`], context 640.
pub const BITNET: Parameters = Parameters {
    architecture: Architecture::Bitnet,
    context_length: 640,
    embedding_length: 256,
    block_count: 2,
    feed_forward_length: 512,
    head_count: 4,
    head_count_kv: 2,
    head_length: 64,
    vocab_size: 259,
    rms_epsilon: 1e-5,
    rope_base: 10_000.0,
    rope_factor: None,
};

/// A smaller `bitnet`, for machines with 16 KiB: width and feed-forward 64, 2 layers, heads 16:1, the same tokens and
/// context.
pub const BITNET_64: Parameters = Parameters {
    embedding_length: 64,
    feed_forward_length: 64,
    head_count: 16,
    head_count_kv: 1,
    head_length: 4,
    ..BITNET
};

/// A `llama`: width 96, feed-forward 160, 2 layers, heads 4:2, 297 SentencePiece tokens, context 640.
pub const LLAMA: Parameters = Parameters {
    architecture: Architecture::Llama,
    context_length: 640,
    embedding_length: 96,
    block_count: 2,
    feed_forward_length: 160,
    head_count: 4,
    head_count_kv: 2,
    head_length: 24,
    vocab_size: 259 + 27 + PIECES.len() as u32,
    rms_epsilon: 1e-5,
    rope_base: 10_000.0,
    rope_factor: None,
};

/// A smaller `llama`, for machines with 16 KiB: width 32, feed-forward 64, one layer, heads 8:2, the same tokens and
/// context.
pub const LLAMA_32: Parameters = Parameters {
    embedding_length: 32,
    block_count: 1,
    feed_forward_length: 64,
    head_count: 8,
    head_length: 4,
    ..LLAMA
};

/// [`LLAMA_32`] with the two tokens of ChatML.
pub const CHAT: Parameters = Parameters {
    vocab_size: LLAMA_32.vocab_size + 2,
    ..LLAMA_32
};

/// The template of ChatML, as in SmolLM2 without its own system message.
pub const CHAT_TEMPLATE: &str = "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] \
    + '<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

/// Writes a model with the parameters of [`BITNET`] or [`BITNET_64`] and returns the file's size.
///
/// Matrices are ternary with one scale each, which f16 represents exactly; the embedding has codes within ±127 and one
/// scale per row. With a ternary block type the embedding is Q8_0; with a float type its values are floats too.
///
/// # Errors
/// [`Error::Options`] for any other type; [`Error::OutputExists`]; [`Error::Io`].
pub fn bitnet(
    path: &Path,
    parameters: Parameters,
    seed: u64,
    to: DType,
    force: bool,
) -> Result<u64> {
    let (matrices, embedding) = match to {
        DType::Block(format) if format.is_ternary() => (to, DType::Block(Format::Q8_0)),
        DType::F32 | DType::F16 => (to, to),
        _ => {
            let name = to.name();
            return Err(Error::options(format!(
                "a ternary model is not written as {name}"
            )));
        }
    };
    let slots = parameters.tensors(Extras::default());
    let types = typed(&slots, |slot| match slot.role {
        Role::Embedding => embedding,
        Role::Matrix => matrices,
        _ => DType::F32,
    });
    let specs = specs(path, &types)?;
    let description = Description {
        parameters,
        vocabulary: Vocabulary::bytes(),
        extras: Vec::new(),
        dtype: to,
    };
    let output = Output::create(path, [], force)?;
    let mut writer = Writer::new(output, &description, &specs)?;
    let mut random = Random::new(seed);
    let refuse = |slot: &Slot, error| Error::tensor(path, &slot.name, error);
    for slot in &slots {
        match slot.role {
            Role::Embedding => {
                let row = slot.shape[1];
                let (codes, scales) = rows(&mut random, slot.shape[0], row);
                if let DType::Block(_) = embedding {
                    let bytes = byte_rows(row, &codes, &scales);
                    writer.bytes(&bytes.map_err(|error| refuse(slot, error))?)?;
                } else {
                    let values = codes.chunks_exact(row).zip(&scales);
                    let values = values.flat_map(|(codes, scale)| scaled(codes, *scale));
                    writer.values(&values.collect::<Vec<_>>())?;
                }
            }
            Role::Matrix => {
                let digit = |_| random.below(3) as i8 - 1;
                let codes: Vec<i8> = (0..slot.values()).map(digit).collect();
                // In [1/16, 1/8), a multiple of 2⁻¹⁴.
                let scale = f16::from_f32((1024 + random.below(1024)) as f32 / 16_384.0);
                if let DType::Block(format) = matrices {
                    let bytes = ternary(format, &codes, scale);
                    writer.bytes(&bytes.map_err(|error| refuse(slot, error))?)?;
                } else {
                    writer.values(&scaled(&codes, scale).collect::<Vec<_>>())?;
                }
            }
            _ => writer.values(&gains(&mut random, slot.values()))?,
        }
    }
    writer.finish()
}

/// Writes a model with the parameters of [`LLAMA`] or [`LLAMA_32`] in several types, with a separate head, biases and
/// frequency factors; returns the file's size.
///
/// # Errors
/// [`Error::OutputExists`]; [`Error::Io`].
pub fn llama(path: &Path, parameters: Parameters, seed: u64, force: bool) -> Result<u64> {
    written(path, parameters, pieces(&[]), seed, force)
}

/// Writes a model with the parameters of [`CHAT`], as [`llama`] does, with ChatML's control tokens and
/// [`CHAT_TEMPLATE`]; returns the file's size.
///
/// # Errors
/// Those of [`llama`].
pub fn chat(path: &Path, parameters: Parameters, seed: u64, force: bool) -> Result<u64> {
    let vocabulary = Vocabulary {
        chat_template: Some(CHAT_TEMPLATE.into()),
        ..pieces(&["<|im_start|>", "<|im_end|>"])
    };
    written(path, parameters, vocabulary, seed, force)
}

fn written(
    path: &Path,
    parameters: Parameters,
    vocabulary: Vocabulary,
    seed: u64,
    force: bool,
) -> Result<u64> {
    let extras = Extras {
        head: true,
        attention_biases: true,
        feed_forward_biases: true,
        frequencies: true,
    };
    let slots = parameters.tensors(extras);
    let types = typed(&slots, |slot| {
        let name = slot.name.split('.').rev().nth(1).unwrap_or_default();
        match name {
            _ if !slot.role.is_matrix() => DType::F32,
            "attn_q" | "ffn_gate" | "output" => DType::Block(Format::Q8_0),
            "attn_k" => DType::Block(Format::Q4_1),
            "attn_output" => DType::Block(Format::Q5_0),
            "ffn_up" => DType::Block(Format::Q5_1),
            "attn_v" => DType::Bf16,
            "token_embd" => DType::F16,
            _ => DType::F32,
        }
    });
    let specs = specs(path, &types)?;
    let description = Description {
        parameters,
        vocabulary,
        extras: Vec::new(),
        dtype: DType::Block(Format::Q8_0),
    };
    let output = Output::create(path, [], force)?;
    let mut writer = Writer::new(output, &description, &specs)?;
    let mut random = Random::new(seed);
    for slot in &slots {
        let mut normal = |deviation: f32| -> Vec<f32> {
            (0..slot.values())
                .map(|_| random.normal() * deviation)
                .collect()
        };
        let values = match slot.role {
            Role::Embedding => normal(0.5),
            Role::Matrix | Role::Bias => normal(0.125),
            Role::Head => normal(0.25),
            Role::Norm => gains(&mut random, slot.values()),
            // From 1 for high frequencies to 4.
            Role::Frequencies => (0..slot.values())
                .map(|_| 1.0 + random.unit_f32() * 3.0)
                .collect(),
        };
        writer.values(&values)?;
    }
    writer.finish()
}

fn typed(slots: &[Slot], dtype: impl Fn(&Slot) -> DType) -> Vec<(&Slot, DType)> {
    slots.iter().map(|slot| (slot, dtype(slot))).collect()
}

/// Returns gains of a norm, in [0.5, 1.5).
fn gains(random: &mut Random, count: usize) -> Vec<f32> {
    (0..count).map(|_| 0.5 + random.unit_f32()).collect()
}

fn scaled(codes: &[i8], scale: f16) -> impl Iterator<Item = f32> {
    codes
        .iter()
        .map(move |&code| f32::from(code) * scale.to_f32())
}

/// Returns rows of codes, with one of each row 127 or −127, and a scale of four bits for each row, so that f16
/// represents their product.
fn rows(random: &mut Random, count: usize, row: usize) -> (Vec<i8>, Vec<f16>) {
    let (mut codes, mut scales) = (Vec::with_capacity(count * row), Vec::with_capacity(count));
    for _ in 0..count {
        let start = codes.len();
        // Below 127 and above −127: a draw is within ±6.
        codes.extend((0..row).map(|_| (random.normal() * 21.0) as i8));
        let largest = start + random.below(row as u64) as usize;
        codes[largest] = if random.below(2) == 0 { 127 } else { -127 };
        scales.push(f16::from_f32((8 + random.below(8)) as f32 / 1024.0));
    }
    (codes, scales)
}

/// Returns SentencePiece tokens: three specials, the bytes, the blank, letters and [`PIECES`], then control tokens.
fn pieces(controls: &[&str]) -> Vocabulary {
    let specials = [
        ("<unk>", TokenKind::Unknown),
        ("<s>", TokenKind::Control),
        ("</s>", TokenKind::Control),
    ];
    let mut all: Vec<(String, TokenKind, f32)> = Vec::new();
    all.extend(specials.map(|(text, kind)| (text.into(), kind, 0.0)));
    all.extend((0..256).map(|byte| (format!("<0x{byte:02X}>"), TokenKind::Byte, 0.0)));
    let merged = (0..).zip(PIECES);
    all.extend(merged.map(|(rank, text)| (text.into(), TokenKind::Normal, -(rank as f32))));
    let letters = (0..).zip(std::iter::once('▁').chain('a'..='z'));
    let score = |rank: i32| -(100 + rank) as f32;
    all.extend(letters.map(|(rank, c)| (c.into(), TokenKind::Normal, score(rank))));
    let controls = controls.iter();
    all.extend(controls.map(|&text| (text.into(), TokenKind::Control, 0.0)));
    Vocabulary {
        tokens: all.iter().map(|(text, ..)| text.clone()).collect(),
        kinds: all.iter().map(|(_, kind, _)| *kind).collect(),
        merging: Merging::Spm {
            scores: all.iter().map(|(.., score)| *score).collect(),
            add_space_prefix: true,
        },
        bos: Some(1),
        eos: Some(2),
        eot: None,
        eom: None,
        unknown: Some(0),
        padding: None,
        add_bos: true,
        add_eos: false,
        chat_template: None,
    }
}
