//! Compares kernels with the plain loops: shapes around the kernels' tiles, random and extreme data, weights at any
//! address.

#![no_std]
#![no_main]

use semihosting::println;
use tercet_benches_mcu::memory::Memory;
use tercet_benches_mcu::program;
use tercet_benches_mcu::run::Bench;
use tercet_core::arch::plain::linear::for_each_sum;
use tercet_core::block::Format;
use tercet_core::linear::{I8Sym, Layer, Layout, Matrix, pack, sums};
use tercet_core::number::Random;

program!(main);

const ROWS: [usize; 12] = [1, 2, 3, 4, 5, 7, 8, 9, 17, 257, 262, 516];
const COLS: [usize; 10] = [1, 2, 3, 63, 64, 65, 256, 1024, 1025, 2050];
/// Columns for more than 17 rows, where the tiles of kernels end.
const FEW_COLS: [usize; 2] = [65, 1024];

/// The choice of weights and activations.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Data {
    /// Any, at an address with this distance from a multiple of 16.
    Any(usize),
    /// Any weights, with one scale for all blocks.
    OneScale,
    /// All bytes of the weights have this value, and all activations that; large scales.
    Same(u8, i8),
}

const DATA: [Data; 8] = [
    Data::Any(0),
    Data::Any(1),
    Data::Any(2),
    Data::OneScale,
    Data::Same(0, 127),
    Data::Same(0, -127),
    Data::Same(255, 127),
    Data::Same(255, -127),
];

fn main(_: &mut Bench, mut memory: Memory<'static>) {
    let mut random = Random::new(77);
    let mut cases = 0;
    for layout in Layout::ALL {
        for rows in ROWS {
            let cols = if rows > 17 {
                FEW_COLS.as_slice()
            } else {
                &COLS
            };
            for &cols in cols {
                let cols = match layout {
                    Layout::Block(format) => cols.next_multiple_of(format.len()),
                    _ => cols,
                };
                for data in DATA {
                    agree(layout, (rows, cols), data, &mut random, &mut memory);
                    cases += 1;
                }
            }
        }
    }
    println!("# {cases} products agree with the plain loops'");
}

/// # Panics
/// If a sum differs.
fn agree(
    layout: Layout,
    (rows, cols): (usize, usize),
    data: Data,
    random: &mut Random,
    memory: &mut Memory<'_>,
) {
    let mut memory = memory.fork();
    let offset = match data {
        Data::Any(offset) => offset,
        Data::OneScale | Data::Same(..) => 0,
    };
    let len = layout.bytes(rows, cols).expect("a legal shape");
    let bytes = &mut memory.slice::<u8>(offset + len)[offset..];
    match data {
        Data::Any(_) | Data::OneScale => bytes.fill_with(|| random.next_u64() as u8),
        Data::Same(byte, _) => bytes.fill(byte),
    }
    match layout {
        // In these layouts any bits are weights.
        Layout::Int8 | Layout::Int8Pairs | Layout::Int4 | Layout::FiveTrits => {}
        Layout::Block(format) => set_scales(format, data, random, bytes),
        _ => {
            let mut memory = memory.fork();
            let codes = memory.slice(rows * cols);
            codes.fill_with(|| match data {
                Data::Any(_) | Data::OneScale => random.below(3) as i8 - 1,
                Data::Same(byte, _) => (byte & 2) as i8 - 1,
            });
            pack::ternary_lanes(rows, cols, codes, bytes).expect("ternary codes");
        }
    }
    let x = memory.slice(cols);
    x.fill_with(|| match data {
        Data::Any(_) | Data::OneScale => (random.below(255) as i64 - 127) as i8,
        Data::Same(_, x) => x,
    });
    let x = I8Sym::new(x).expect("-127 to 127");
    let matrix = Matrix::new(layout, rows, cols, bytes).expect("legal weights");
    let out = memory.slice::<i64>(rows);
    let (needed, fast) = (matrix.scratch_len(), matrix.fast_scratch_len());
    let scratch = memory.slice(fast);
    let lengths = [needed, fast];
    // If both are the same, only once.
    for &words in &lengths[usize::from(needed == fast)..] {
        let scratch = &mut scratch[..words];
        // Callers need not clear scratch for kernels.
        scratch.fill_with(|| random.next_u64() as u32);
        out.fill(i64::MIN);
        sums(&Layer::new(matrix), x, out, scratch).expect("buffers that fit");
        for_each_sum(&matrix, x, |row, sum| {
            assert!(
                out[row] == sum,
                "{} {rows}x{cols} {data:?}, {words} words, row {row}: {} where {sum} is right",
                layout.name(),
                out[row]
            );
        });
    }
}

/// Writes scales of any sign, a quarter of them subnormal, or large scales of one sign.
fn set_scales(format: Format, data: Data, random: &mut Random, bytes: &mut [u8]) {
    let one = random.next_u64() as u16 & 0xDFFF;
    for block in bytes.chunks_exact_mut(format.bytes()) {
        for at in [Some(format.scale_offset()), format.min_offset()]
            .into_iter()
            .flatten()
        {
            let bits = match data {
                Data::Any(_) => match (random.next_u64() as u16, random.below(4)) {
                    (bits, 0) => bits & 0x83FF,
                    // Below 2⁹, so that no row's scales are refused.
                    (bits, _) => bits & 0xDFFF,
                },
                Data::OneScale => one,
                Data::Same(byte, _) => u16::from(byte & 0x80) << 8 | 0x5BFF,
            };
            block[at..at + 2].copy_from_slice(&bits.to_le_bytes());
        }
    }
}
