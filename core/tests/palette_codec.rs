//! Palettes of whole matrices: encode, decode, multiply.

use crate::support::{cases, normal, vectors};
use proptest::collection::vec;
use proptest::prelude::*;
use tercet_core::number::Random;
use tercet_core::palette::{
    self, Coder, Counts, Encoded, IndexMatrix, MAX_DOT, Output, Palette, PaletteError, Width,
};
use tercet_core::quant::{Codes, Groups, int8};
use tercet_core::scalar::Tensor;
use tercet_core::{bf16, f16};

/// An encoded matrix that owns its parts, which start as garbage.
#[derive(Clone, Debug, PartialEq)]
struct Made {
    layout: IndexMatrix,
    indices: Vec<u8>,
    codebooks: Vec<i8>,
    scales: Vec<f32>,
    done: Encoded,
}

impl Made {
    fn try_of<T: tercet_core::number::Element>(
        layout: IndexMatrix,
        values: &[T],
        importances: &[u32],
    ) -> Result<Self, PaletteError> {
        let mut made = Self {
            layout,
            indices: vec![0xA5; layout.index_bytes()],
            codebooks: vec![77; layout.codebook_len()],
            scales: vec![f32::NAN; layout.groups()],
            done: Encoded::default(),
        };
        let out = Output {
            indices: &mut made.indices,
            codebooks: &mut made.codebooks,
            scales: &mut made.scales,
        };
        let mut scratch = vec![u64::MAX; layout.scratch_len()];
        made.done = palette::encode(&layout, values, importances, out, &mut scratch)?;
        Ok(made)
    }

    fn of(layout: IndexMatrix, values: &[f32], importances: &[u32]) -> Self {
        Self::try_of(layout, values, importances).unwrap()
    }

    fn palette(&self) -> Palette<'_> {
        Palette {
            layout: self.layout,
            indices: &self.indices,
            codebooks: &self.codebooks,
            scales: &self.scales,
        }
    }

    fn decoded(&self) -> Vec<f32> {
        let mut out = vec![f32::NAN; self.layout.values()];
        palette::decode(&self.palette(), &mut out).unwrap();
        out
    }

    /// The entry of each value, read bit by bit.
    fn entries(&self) -> Vec<i8> {
        let bits = usize::from(self.layout.width().bits());
        let mut entries = Vec::new();
        for row in 0..self.layout.rows() {
            let book = row / self.layout.group_rows() * self.layout.width().entries();
            for col in 0..self.layout.cols() {
                let index = (0..bits).map(|bit| {
                    let at = row * self.layout.row_bytes() * 8 + col * bits + bit;
                    usize::from(self.indices[at / 8] >> (at % 8) & 1) << bit
                });
                entries.push(self.codebooks[book + index.sum::<usize>()]);
            }
        }
        entries
    }
}

fn width(bits: u8) -> Width {
    Width::new(bits).unwrap()
}

/// The int8 codes of each group, as the int8 quantizer gives them.
fn codes(layout: &IndexMatrix, values: &[f32]) -> Vec<i8> {
    let mut all = Vec::new();
    for group in values.chunks(layout.group_len()) {
        let mut codes = vec![0; group.len()];
        let groups = Groups::tensor(group.len()).unwrap();
        int8::symmetric(&mut Tensor::new(group, groups, &mut codes, &mut [0.0], &mut []).unwrap())
            .unwrap();
        all.extend(codes);
    }
    all
}

/// A matrix of values with a layout that fits.
fn matrices() -> impl Strategy<Value = (IndexMatrix, Vec<f32>)> {
    (1u8..=8, 1usize..7, 1usize..40, 1usize..7).prop_flat_map(|(bits, rows, cols, group_rows)| {
        let layout = IndexMatrix::with_rows(width(bits), rows, cols, group_rows).unwrap();
        (Just(layout), vectors(rows * cols))
    })
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn every_value_gets_its_nearest_entry_and_comes_back_as_entry_times_scale((layout, values) in matrices()) {
        let made = Made::of(layout, &values, &[]);
        let codes = codes(&layout, &values);
        let entries = made.entries();
        for (at, (&code, &entry)) in codes.iter().zip(&entries).enumerate() {
            let group = at / layout.group_len();
            let book = &made.codebooks[group * layout.width().entries()..][..layout.width().entries()];
            let distance = |entry: i8| (i16::from(code) - i16::from(entry)).abs();
            let nearest = book.iter().copied().min_by_key(|&entry| distance(entry)).unwrap();
            prop_assert_eq!(entry, nearest);
        }
        let scale = |at: usize| made.scales[at / layout.group_len()];
        let expected: Vec<u32> =
            (entries.iter().enumerate()).map(|(at, &entry)| (f32::from(entry) * scale(at)).to_bits()).collect();
        let found: Vec<u32> = made.decoded().iter().map(|x| x.to_bits()).collect();
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn scales_are_those_of_int8((layout, values) in matrices()) {
        let made = Made::of(layout, &values, &[]);
        let scales = values.chunks(layout.group_len()).map(|group| {
            group.iter().fold(0f32, |max, x| max.max(x.abs())) / 127.0
        });
        prop_assert_eq!(made.scales, scales.collect::<Vec<_>>());
    }

    #[test]
    fn no_other_palette_has_less_error(
        (layout, values) in matrices(),
        seed in any::<u64>(),
        weighted in any::<bool>(),
    ) {
        let mut random = Random::new(seed);
        let importances: Vec<u32> = match weighted {
            true => values.iter().map(|_| 1 + random.below(9) as u32).collect(),
            false => Vec::new(),
        };
        let made = Made::of(layout, &values, &importances);
        let codes = codes(&layout, &values);
        let entries = layout.width().entries();
        let weight = |at: usize| importances.get(at).map_or(1, |&w| u64::from(w));
        for group in 0..layout.groups() {
            let first = group * layout.group_len();
            let own = &codes[first..codes.len().min(first + layout.group_len())];
            let cost = |book: &[i8]| -> u64 {
                own.iter().enumerate().map(|(i, &code)| {
                    let nearest = book.iter().map(|&e| u64::from(code.abs_diff(e)).pow(2)).min();
                    weight(first + i) * nearest.unwrap()
                }).sum()
            };
            let chosen = &made.codebooks[group * entries..][..entries];
            let least = cost(chosen);
            for round in 0..20 {
                let mut other = chosen.to_vec();
                if round % 2 == 0 {
                    let slot = random.below(entries as u64) as usize;
                    other[slot] = other[slot].wrapping_add(random.below(5) as i8 - 2);
                } else {
                    other.fill_with(|| own[random.below(own.len() as u64) as usize]);
                }
                prop_assert!(least <= cost(&other), "{chosen:?} {other:?}");
            }
        }
    }

    #[test]
    fn importances_w_equal_w_copies(values in vectors(1..30), bits in 1u8..5, seed in any::<u64>()) {
        let mut random = Random::new(seed);
        let importances: Vec<u32> = values.iter().map(|_| 1 + random.below(4) as u32).collect();
        let copies: Vec<f32> = (values.iter().zip(&importances))
            .flat_map(|(&x, &w)| std::iter::repeat_n(x, w as usize))
            .collect();
        let one = |len| IndexMatrix::new(width(bits), 1, len, 1).unwrap();
        let weighted = Made::of(one(values.len()), &values, &importances);
        let copied = Made::of(one(copies.len()), &copies, &[]);
        prop_assert_eq!(weighted.codebooks, copied.codebooks);
        prop_assert_eq!(weighted.scales, copied.scales);
    }

    #[test]
    fn products_are_those_of_the_decoded_entries((layout, values) in matrices(), seed in any::<u64>(), x_scale in -2f32..2.0) {
        let made = Made::of(layout, &values, &[]);
        let mut random = Random::new(seed);
        let x: Vec<i8> = (0..layout.cols()).map(|_| random.next_u64() as i8).collect();
        let mut y = vec![f32::NAN; layout.rows()];
        palette::matvec(&made.palette(), &x, x_scale, &mut y).unwrap();
        let entries = made.entries();
        for (row, y) in y.iter().enumerate() {
            let codes = &entries[row * layout.cols()..][..layout.cols()];
            let sum: i64 = codes.iter().zip(&x).map(|(&a, &b)| i64::from(a) * i64::from(b)).sum();
            let book = &made.codebooks[row / layout.group_rows() * layout.width().entries()..][..layout.width().entries()];
            let row_bytes = &made.indices[row * layout.row_bytes()..][..layout.row_bytes()];
            prop_assert_eq!(i64::from(palette::dot(layout.width(), row_bytes, book, &x).unwrap()), sum);
            let scaled = sum as f32 * made.scales[row / layout.group_rows()] * x_scale;
            prop_assert_eq!(y.to_bits(), scaled.to_bits());
        }
    }

    #[test]
    fn any_part_of_a_row_decodes_alone(
        bits in 1u8..=8,
        row in vec(any::<u8>(), 1..40),
        book in vec(any::<i8>(), 256),
        from in 0usize..40,
        len in 0usize..40,
    ) {
        let width = width(bits);
        let cols = row.len() * 8 / usize::from(bits);
        let book = &book[..width.entries()];
        let mut whole = vec![f32::NAN; cols];
        palette::decode_row(width, &row, book, 0.5, 0, &mut whole).unwrap();
        let from = from.min(cols);
        let mut part = vec![f32::NAN; len.min(cols - from)];
        palette::decode_row(width, &row, book, 0.5, from, &mut part).unwrap();
        prop_assert_eq!(&whole[from..from + part.len()], &part[..]);
    }

    #[test]
    fn halves_give_the_bits_of_their_widened_copy(values in vec(-4f32..4.0, 24), bits in 1u8..=8) {
        let layout = IndexMatrix::new(width(bits), 3, 8, 3).unwrap();
        let halves: Vec<f16> = values.iter().map(|&x| f16::from_f32(x)).collect();
        let brains: Vec<bf16> = values.iter().map(|&x| bf16::from_f32(x)).collect();
        let widened = |all: Vec<f32>| Made::of(layout, &all, &[]);
        prop_assert_eq!(Made::try_of(layout, &halves, &[]).unwrap(), widened(halves.iter().map(|x| x.to_f32()).collect()));
        prop_assert_eq!(Made::try_of(layout, &brains, &[]).unwrap(), widened(brains.iter().map(|x| x.to_f32()).collect()));
    }
}

#[test]
fn golden_three_bits() {
    // max|x| = 127, so codes are the values; nine distinct ones in eight entries.
    let values = [
        -127f32, -60.0, -20.0, -3.0, 0.0, 1.0, 30.0, 64.0, 127.0, 0.0,
    ];
    let made = Made::of(IndexMatrix::new(width(3), 1, 10, 1).unwrap(), &values, &[]);
    // 0, 0 and 1 share an entry: a cost of 1, less than 9·2·1/3 for −3 with 0 and 0.
    assert_eq!(made.codebooks, [-127, -60, -20, -3, 0, 30, 64, 127]);
    // Indices 0 1 2 3 4 4 5 6 | 7 4, the first in the lowest bits.
    let word: u32 = [0, 1, 2, 3, 4, 4, 5, 6, 7, 4]
        .iter()
        .rev()
        .fold(0, |w, i| w << 3 | i);
    assert_eq!(made.indices, word.to_le_bytes());
    assert_eq!(
        made.decoded(),
        [
            -127f32, -60.0, -20.0, -3.0, 0.0, 0.0, 30.0, 64.0, 127.0, 0.0
        ]
    );
}

#[test]
fn eight_bits_lose_nothing_against_int8() {
    let values = normal(5 * 333);
    let layout = IndexMatrix::new(width(8), 5, 333, 5).unwrap();
    let made = Made::of(layout, &values, &[]);
    let codes = codes(&layout, &values);
    let mut expected = vec![0.0; values.len()];
    let coded = Codes {
        groups: Groups::rows(5, 333).unwrap(),
        codes: &codes,
        scales: &made.scales,
        zero_points: &[],
    };
    int8::dequantize(coded, &mut expected).unwrap();
    assert_eq!(made.decoded(), expected);
}

#[test]
fn zeros_and_scales_that_underflow_become_zeros() {
    let tiny = f32::from_bits(40);
    let values = [0.0, -0.0, tiny, -tiny, 3.0, -1.0];
    let made = Made::of(IndexMatrix::new(width(2), 3, 2, 3).unwrap(), &values, &[]);
    assert_eq!(
        made.done,
        Encoded {
            groups: 3,
            zero: 1,
            flushed: 1
        }
    );
    assert_eq!(made.scales, [0.0, 0.0, 3.0 / 127.0]);
    assert_eq!(made.decoded()[..4], [0.0; 4]);
    assert_eq!(made.codebooks[..8], [0; 8]);
    assert_eq!(made.codebooks[8..], [-42, 127, 127, 127]);
}

#[test]
fn importances_of_all_zero_count_each_value_once() {
    let values = normal(60);
    let layout = IndexMatrix::new(width(2), 2, 30, 2).unwrap();
    let mut importances = vec![0; 60];
    importances[30..].fill(7);
    assert_eq!(
        Made::of(layout, &values, &importances),
        Made::of(layout, &values, &[])
    );
    // Of one value only: it becomes an entry.
    importances[..30].fill(0);
    importances[4] = 1;
    let made = Made::of(layout, &values, &importances);
    assert_eq!(made.codebooks[..4], [codes(&layout, &values)[4]; 4]);
}

#[test]
fn wrong_inputs_are_refused() {
    assert_eq!(Width::new(0), Err(PaletteError::Width { bits: 0 }));
    assert_eq!(Width::new(9), Err(PaletteError::Width { bits: 9 }));
    let four = width(4);
    assert_eq!(IndexMatrix::new(four, 0, 3, 1), Err(PaletteError::Empty));
    assert_eq!(IndexMatrix::new(four, 3, 0, 1), Err(PaletteError::Empty));
    for groups in [0, 4, 6] {
        // Groups of ⌈5 / 4⌉ = 2 rows are three.
        assert_eq!(
            IndexMatrix::new(four, 5, 2, groups),
            Err(PaletteError::Groups { rows: 5, groups })
        );
    }
    assert_eq!(
        IndexMatrix::with_rows(four, 5, 2, 0),
        Err(PaletteError::Groups { rows: 5, groups: 0 })
    );
    assert_eq!(
        IndexMatrix::new(four, usize::MAX, 2, 1),
        Err(PaletteError::TooLarge)
    );
    assert_eq!(
        IndexMatrix::new(width(8), usize::MAX / 8, 1, usize::MAX / 8),
        Err(PaletteError::TooLarge)
    );

    let layout = IndexMatrix::new(four, 2, 5, 1).unwrap();
    let mut values = normal(10);
    let mut scratch = vec![0; layout.scratch_len()];
    let encode =
        |values: &[f32], importances: &[u32], bytes: usize, books: usize, scratch: &mut [u64]| {
            let (mut indices, mut codebooks) = (vec![0; bytes], vec![0; books]);
            let out = Output {
                indices: &mut indices,
                codebooks: &mut codebooks,
                scales: &mut [0.0],
            };
            palette::encode(&layout, values, importances, out, scratch).map(|_| ())
        };
    let length = |expected, found| Err(PaletteError::Length { expected, found });
    assert_eq!(
        encode(&values[1..], &[], 6, 16, &mut scratch),
        length(10, 9)
    );
    assert_eq!(encode(&values, &[1; 9], 6, 16, &mut scratch), length(10, 9));
    assert_eq!(encode(&values, &[], 5, 16, &mut scratch), length(6, 5));
    assert_eq!(encode(&values, &[], 6, 17, &mut scratch), length(16, 17));
    assert!(encode(&values, &[], 6, 16, &mut scratch).is_ok());
    values[7] = f32::INFINITY;
    values[8] = f32::NAN;
    assert_eq!(
        encode(&values, &[], 6, 16, &mut scratch),
        Err(PaletteError::NotFinite { index: 7 })
    );
    let wide = IndexMatrix::new(width(1), 1, 40, 1).unwrap();
    let out = Output {
        indices: &mut [0; 5],
        codebooks: &mut [0; 2],
        scales: &mut [0.0],
    };
    let refused = palette::encode(&wide, &normal(40), &[], out, &mut []);
    assert_eq!(
        refused,
        Err(PaletteError::Scratch {
            needed: wide.scratch_len()
        })
    );
    // The second group is named by the matrix's index.
    let split = IndexMatrix::new(four, 2, 5, 2).unwrap();
    let refused = Made::try_of(split, &values, &[]);
    assert_eq!(refused, Err(PaletteError::NotFinite { index: 7 }));

    let damaged = Palette {
        layout,
        indices: &[0; 6],
        codebooks: &[0; 16],
        scales: &[f32::NAN],
    };
    let error = Err(PaletteError::ScaleNotFinite { group: 0 });
    assert_eq!(palette::decode(&damaged, &mut [0.0; 10]), error);
    assert_eq!(
        palette::matvec(&damaged, &[0; 5], 1.0, &mut [0.0; 2]),
        error
    );
    let sound = Palette {
        scales: &[1.0],
        ..damaged
    };
    assert_eq!(palette::decode(&sound, &mut [0.0; 9]), length(10, 9));
    assert_eq!(
        palette::matvec(&sound, &[0; 4], 1.0, &mut [0.0; 2]),
        length(5, 4)
    );
    assert_eq!(
        palette::matvec(&sound, &[0; 5], 1.0, &mut [0.0; 3]),
        length(2, 3)
    );
    assert_eq!(
        palette::decode_row(four, &[0; 2], &[0; 16], 1.0, 2, &mut [0.0; 3]),
        length(3, 2)
    );
    assert_eq!(
        palette::decode_row(four, &[0; 2], &[0; 8], 1.0, 0, &mut [0.0; 3]),
        length(16, 8)
    );
    let refused = palette::decode_row(four, &[0; 2], &[0; 16], 1.0, usize::MAX, &mut [0.0]);
    assert_eq!(refused, Err(PaletteError::TooLarge));
}

#[test]
fn the_longest_dot_product_stays_within_32_bits_and_one_more_is_refused() {
    let x = vec![-128i8; MAX_DOT + 1];
    let row = vec![0u8; (MAX_DOT + 1) / 8];
    let sum = palette::dot(width(1), &row, &[-128, 0], &x[..MAX_DOT]).unwrap();
    assert_eq!(i64::from(sum), MAX_DOT as i64 * 16_384);
    let refused = Err(PaletteError::DotLength {
        len: MAX_DOT + 1,
        max: MAX_DOT,
    });
    assert_eq!(palette::dot(width(1), &row, &[-128, 0], &x), refused);
    assert!(palette::dot(width(1), &[], &[0, 0], &[]).is_ok_and(|sum| sum == 0));
}

#[test]
fn bytes_that_fill_up_a_row_do_not_matter() {
    let book = [-3, 7, 9, -128];
    let x = [1, 2, 3, 4, 5];
    let clean = palette::dot(width(2), &[0b11_10_01_00, 0b10], &book, &x).unwrap();
    let filled = palette::dot(width(2), &[0b11_10_01_00, 0b1111_1110], &book, &x).unwrap();
    assert_eq!((clean, filled), (-3 + 14 + 27 - 512 + 45, clean));
}

#[test]
fn counts_of_no_values_choose_zeros() {
    let mut book = [9; 4];
    let best = Counts::EMPTY.choose(&mut book, &mut []).unwrap();
    assert_eq!(
        (book, best.entries, Counts::EMPTY.is_empty()),
        ([0; 4], 0, true)
    );
}

#[test]
fn a_coder_finds_the_nearest_entry_of_any_book_and_the_first_of_equals() {
    let mut random = Random::new(17);
    for round in 0..400 {
        let width = Width::ALL[round % 8];
        // Few values, so that entries repeat and lie far from codes, or all of them.
        let step = [1, 13, 100, 255][round / 8 % 4];
        let codebook: Vec<i8> = (0..width.entries())
            .map(|_| (random.below(256 / step + 1) * step) as i64 - 128)
            .map(|entry| entry.min(127) as i8)
            .collect();
        let coder = Coder::new(width, &codebook).unwrap();
        for (code, &index) in (-128i16..).zip(coder.indices()) {
            let distance = |entry: i8| (code - i16::from(entry)).abs();
            let nearest = codebook.iter().map(|&entry| distance(entry)).min();
            let first = codebook
                .iter()
                .position(|&entry| Some(distance(entry)) == nearest);
            assert_eq!(Some(usize::from(index)), first, "{code} in {codebook:?}");
        }
    }
}
