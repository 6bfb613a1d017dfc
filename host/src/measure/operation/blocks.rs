//! GGUF blocks: encode, decode, multiply.

use std::sync::Arc;

use half::f16;
use tercet_core::block::{self, BlockError, Encoded, Format};
use tercet_core::engine::BlockEngine;
use tercet_core::quant::{Rule, ScaleRule};

use super::{Bits, Operation, legal};
use crate::measure::clock::Clock;
use crate::measure::contender::{Contender, with_engine};
use crate::measure::task::Task;
use crate::measure::work::{Arithmetic, LeastWork};
use crate::measure::{Traffic, input};

/// Returns the type of the products of a format's codes.
pub(super) fn arithmetic(format: Format) -> Arithmetic {
    if format.is_ternary() {
        Arithmetic::Ternary
    } else {
        Arithmetic::Int8
    }
}

/// Returns a pass over f32 values and their blocks. Blocks with about two bits per value are so small that they pass at
/// the same time: then only the values take time, as `alone` says.
fn pass(format: Format, values: usize, bytes: usize, beside: Traffic, alone: Traffic) -> LeastWork {
    let set = values * 4 + bytes;
    let mut work = LeastWork::pass(values, beside, set);
    if format.is_ternary() {
        work = LeastWork::pass(values, alone, values * 4);
        work.set = set;
    }
    work
}

/// Blocks of values.
pub(in crate::measure) struct Encode {
    values: Arc<[f32]>,
    format: Format,
    rule: Rule,
}

impl Encode {
    /// Over `values` values in whole blocks.
    pub(in crate::measure) fn new(values: usize, format: Format, rule: Rule) -> (LeastWork, Self) {
        let bytes = legal(format.encoded_len(values));
        let work = pass(format, values, bytes, Traffic::Narrow, Traffic::Read);
        let values = input::normals(values);
        (
            work,
            Self {
                values,
                format,
                rule,
            },
        )
    }
}

impl Operation for Encode {
    fn run(&self, by: Contender, clock: &mut dyn Clock) -> u64 {
        let mut out = vec![0; legal(self.format.encoded_len(self.values.len()))];
        clock.time(&mut || {
            with_engine!(by, engine => encode(&mut engine, self.format, self.rule, &self.values, &mut out));
        });
        Bits::default().with(&out).finish()
    }

    fn task(&self) -> Option<Task<'_>> {
        Some(Task::Encode {
            values: &self.values,
            format: self.format,
            rule: self.rule,
        })
    }
}

fn encode(
    engine: &mut impl BlockEngine<Error = BlockError>,
    format: Format,
    rule: Rule,
    values: &[f32],
    out: &mut [u8],
) -> Encoded {
    legal(engine.encode_blocks(format, rule, ScaleRule::Rule, values, out))
}

/// Values after which blocks are repeated: a matrix of a GiB of weights does not need 4 GiB of floats.
const DISTINCT: usize = 1 << 24;

/// Returns the blocks of normal values, with a fixed rule; for formats that can only be read, arbitrary codes with one
/// scale.
pub(super) fn encoded(values: usize, format: Format) -> Vec<u8> {
    let distinct = values.min(DISTINCT);
    let mut bytes = vec![0; legal(format.encoded_len(distinct))];
    if !format.can_encode() {
        let codes = input::codes(bytes.len());
        for (byte, code) in bytes.iter_mut().zip(codes) {
            *byte = code.cast_unsigned();
        }
        for block in bytes.chunks_exact_mut(format.bytes()) {
            for at in [Some(format.scale_offset()), format.min_offset()]
                .into_iter()
                .flatten()
            {
                block[at..at + 2].copy_from_slice(&f16::from_f32(0.001).to_le_bytes());
            }
        }
        return repeated(&bytes, values, format);
    }
    let input = input::normals(distinct);
    let (rule, scale) = (Rule::AbsMax, ScaleRule::Rule);
    legal(block::encode(format, rule, scale, &input, &mut bytes));
    repeated(&bytes, values, format)
}

/// Repeats blocks up to so many values.
fn repeated(bytes: &[u8], values: usize, format: Format) -> Vec<u8> {
    let len = legal(format.encoded_len(values));
    bytes.iter().copied().cycle().take(len).collect()
}

/// Values of blocks.
pub(in crate::measure) struct Decode {
    bytes: Vec<u8>,
    values: usize,
    format: Format,
}

impl Decode {
    /// Over `values` values in whole blocks.
    pub(in crate::measure) fn new(values: usize, format: Format) -> (LeastWork, Self) {
        let bytes = encoded(values, format);
        let work = pass(format, values, bytes.len(), Traffic::Widen, Traffic::Write);
        (
            work,
            Self {
                bytes,
                values,
                format,
            },
        )
    }
}

impl Operation for Decode {
    fn run(&self, by: Contender, clock: &mut dyn Clock) -> u64 {
        let mut out = vec![0.0; self.values];
        clock.time(&mut || {
            with_engine!(by, engine => legal(engine.decode_blocks(self.format, &self.bytes, &mut out)));
        });
        Bits::default().with_floats(&out).finish()
    }

    fn task(&self) -> Option<Task<'_>> {
        Some(Task::Decode {
            bytes: &self.bytes,
            values: self.values,
            format: self.format,
        })
    }
}

/// The scale of activations.
const SCALE: f32 = 0.01;

/// A row of blocks times int8 activations.
pub(in crate::measure) struct Dot {
    bytes: Vec<u8>,
    x: Vec<i8>,
    format: Format,
}

impl Dot {
    /// Over `values` values in whole blocks.
    pub(in crate::measure) fn new(values: usize, format: Format) -> (LeastWork, Self) {
        let bytes = encoded(values, format);
        let work = LeastWork::pass(values, Traffic::Read, values + bytes.len())
            .with_products(values as u64, arithmetic(format))
            .on_one_thread();
        let x = input::codes(values);
        (work, Self { bytes, x, format })
    }
}

impl Operation for Dot {
    fn run(&self, by: Contender, clock: &mut dyn Clock) -> u64 {
        let mut out = 0.0;
        clock.time(&mut || {
            out = with_engine!(by, engine => legal(engine.dot_blocks(self.format, &self.bytes, &self.x, SCALE)));
        });
        Bits::default().with_floats(&[out]).finish()
    }

    fn task(&self) -> Option<Task<'_>> {
        Some(Task::Dot {
            bytes: &self.bytes,
            x: &self.x,
            x_scale: SCALE,
            format: self.format,
        })
    }
}
