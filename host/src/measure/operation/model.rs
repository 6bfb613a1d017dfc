//! A ternary language model: a prompt, a token, a token of each of many texts.

use half::f16;
use tercet_core::block::Format;
use tercet_core::gguf::Reader;
use tercet_core::model::Row;

use super::{Bits, Operation, legal};
use crate::DType;
use crate::engine::FlowEngine;
use crate::language::{
    Decoder, Description, Extras, LanguageFile, Parameters, Role, RunOptions, TokenKind, View,
    Vocabulary, byte_rows, run, specs, ternary,
};
use crate::measure::clock::Clock;
use crate::measure::contender::{Contender, with_engine};
use crate::measure::work::{Arithmetic, LeastWork};
use crate::measure::{Traffic, input};

/// Positions of each text before the measured token.
const BEFORE: usize = 32;

/// What is measured of a model.
#[derive(Clone, Copy, Debug)]
pub(in crate::measure) enum Part {
    /// The tokens of a prompt, and the logits after the last.
    Prompt(usize),
    /// The next token of so many texts, with its logits.
    Decode(usize),
}

/// A `bitnet` with random ternary weights in TQ2_0 and an embedding, which is the head, in Q8_0.
pub(in crate::measure) struct Model {
    file: LanguageFile,
    part: Part,
}

impl Model {
    pub(in crate::measure) fn new(parameters: Parameters, part: Part) -> (LeastWork, Self) {
        let (texts, tokens) = match part {
            Part::Prompt(tokens) => (1, tokens),
            Part::Decode(texts) => (texts, texts),
        };
        let (mut bytes, mut products, mut values) = (0, 0, 0);
        for slot in parameters.tensors(Extras::default()) {
            let (format, rows) = match slot.role {
                Role::Matrix => (Format::Tq2_0, tokens),
                Role::Embedding => (Format::Q8_0, texts),
                _ => continue,
            };
            values += slot.values();
            bytes += legal(format.encoded_len(slot.values()));
            products += (slot.values() * rows) as u64;
        }
        let work = LeastWork::pass(values, Traffic::Read, bytes)
            .with_products(products, Arithmetic::Ternary);
        let file = file(parameters);
        (work, Self { file, part })
    }
}

/// Returns a model's file in memory.
fn file(parameters: Parameters) -> LanguageFile {
    let mut vocabulary = Vocabulary::bytes();
    let tokens = vocabulary.tokens.len()..parameters.vocab_size as usize;
    vocabulary
        .kinds
        .extend(tokens.clone().map(|_| TokenKind::Unused));
    vocabulary
        .tokens
        .extend(tokens.map(|number| format!("<{number}>")));
    let dtype = DType::Block(Format::Tq2_0);
    let description = Description {
        parameters,
        vocabulary,
        extras: Vec::new(),
        dtype,
    };
    let slots = parameters.tensors(Extras::default());
    let types: Vec<_> = (slots.iter())
        .map(|slot| match slot.role {
            Role::Matrix => (slot, dtype),
            Role::Embedding => (slot, DType::Block(Format::Q8_0)),
            _ => (slot, DType::F32),
        })
        .collect();
    let path = "a made model".as_ref();
    let specs = legal(specs(path, &types));
    let mut bytes = legal(description.zeros(Format::Tq2_0.gguf_file_type(), &specs));
    for slot in &slots {
        let values = slot.values();
        let made = match slot.role {
            Role::Matrix => {
                let codes = input::codes_between(-1, 1, values);
                legal(ternary(Format::Tq2_0, &codes, f16::from_f32(1.0 / 32.0)))
            }
            Role::Embedding => {
                let (rows, row) = (slot.shape[0], slot.shape[1]);
                let scales = vec![f16::from_f32(1.0 / 256.0); rows];
                legal(byte_rows(row, &input::codes(values), &scales))
            }
            _ => 1.0f32.to_le_bytes().repeat(values),
        };
        let start = {
            let tensor = Reader::new(&bytes).ok();
            let tensor = tensor.and_then(|reader| reader.tensor(&slot.name));
            tensor.map(|tensor| tensor.data.as_ptr().addr() - bytes.as_ptr().addr())
        };
        let start = start.expect("every slot is in the file");
        bytes[start..start + made.len()].copy_from_slice(&made);
    }
    LanguageFile::made(path, bytes)
}

impl Operation for Model {
    fn run(&self, by: Contender, clock: &mut dyn Clock) -> u64 {
        let mut view = legal(View::of(&self.file));
        let model = legal(view.model(&self.file));
        let (sequences, positions) = match self.part {
            Part::Prompt(tokens) => (1, tokens),
            Part::Decode(texts) => (texts, BEFORE + 1),
        };
        let options = RunOptions {
            context: Some(positions as u32),
            sequences,
            ..RunOptions::default()
        };
        let (bits, _) = with_engine!(by, engine => legal(run(
            &mut engine,
            &self.file,
            &model,
            &options,
            |decoder| Ok(match self.part {
                Part::Prompt(tokens) => prompt(decoder, tokens, clock),
                Part::Decode(texts) => decode(decoder, texts, clock),
            }),
        )));
        bits
    }
}

/// Returns a text's tokens, bytes of the vocabulary.
fn tokens(text: usize, count: usize) -> Vec<u32> {
    let token = |at: usize| (at * 31 + text * 57) as u32 % 256;
    (0..count).map(token).collect()
}

/// Times a prompt from the start of a text.
fn prompt<E: FlowEngine>(
    decoder: &mut Decoder<'_, '_, E>,
    count: usize,
    clock: &mut dyn Clock,
) -> u64 {
    let tokens = tokens(0, count);
    let mut logits = Vec::new();
    clock.time(&mut || {
        decoder.reset(0);
        let found = legal(decoder.prompt(0, &tokens, &mut |_| {}));
        logits.clear();
        logits.extend_from_slice(found);
    });
    Bits::default().with_floats(&logits).finish()
}

/// Times the next token of each text.
fn decode<E: FlowEngine>(
    decoder: &mut Decoder<'_, '_, E>,
    texts: usize,
    clock: &mut dyn Clock,
) -> u64 {
    for text in 0..texts {
        legal(decoder.prompt(text, &tokens(text, BEFORE), &mut |_| {}));
    }
    let row = |sequence| Row {
        token: sequence as u32 % 256,
        sequence,
        logits: true,
    };
    let rows: Vec<Row> = (0..texts).map(row).collect();
    let mut logits = Vec::new();
    clock.time(&mut || {
        for text in 0..texts {
            decoder.cut(text, BEFORE as u32);
        }
        let found = legal(decoder.step(&rows));
        logits.clear();
        logits.extend_from_slice(found);
    });
    Bits::default().with_floats(&logits).finish()
}
