//! Counts of magnitudes by bit pattern, in one word per bin.
//!
//! All values of a bin share an exponent, and so their mantissas are the bin's first one and the pattern's low bits,
//! which are fewer than 24 bits. A word holds the sum of the low bits in its lower 41 bits and the count above them.
//! The sum of up to 2¹⁷ values stays below 2⁴⁰. So a value takes one addition, in half the memory of a
//! [`MagnitudeBin`].

use tercet_core::engine::{MagnitudeBin, MagnitudeSpan};
use tercet_core::number::{Element, bits};

/// Position of the count.
const COUNT: u32 = 41;
/// Values between two unpackings.
const PART: usize = 1 << 17;
/// Values whose bins are found before they are counted, many at a time.
const STEP: usize = 64;

/// As [`tercet_core::scalar::magnitudes`], for a checked span and checked bins. Allocates a word per bin.
#[inline(always)]
pub(super) fn count<T: Element>(values: &[T], span: MagnitudeSpan, bins: &mut [MagnitudeBin]) {
    let width = span.end.saturating_sub(span.first);
    // One more bin for values outside the span, so that nothing branches.
    let outside = bins.len() as u32;
    let low_bits = (1 << span.shift) - 1;
    let mut words = vec![0u64; bins.len() + 1];
    for values in values.chunks(PART) {
        for values in values.chunks(STEP) {
            let (mut places, mut adds) = ([outside; STEP], [0u32; STEP]);
            for ((value, place), add) in values.iter().zip(&mut places).zip(&mut adds) {
                // Patterns below `first` wrap to beyond any width.
                let offset = bits::magnitude(value.to_f32()).wrapping_sub(span.first);
                let within = offset < width;
                *place = if within {
                    offset >> span.shift
                } else {
                    outside
                };
                *add = offset & low_bits;
            }
            for (place, add) in places.iter().zip(adds).take(values.len()) {
                words[*place as usize] += 1 << COUNT | u64::from(add);
            }
        }
        unpack(span, &mut words, bins);
    }
}

/// As [`tercet_core::scalar::read_magnitudes`], for slices of equal length.
#[inline(always)]
pub(super) fn read<T: Element>(values: &[T], out: &mut [u32]) {
    for (value, pattern) in values.iter().zip(out) {
        *pattern = bits::magnitude(value.to_f32());
    }
}

/// Moves the counts into the bins.
fn unpack(span: MagnitudeSpan, words: &mut [u64], bins: &mut [MagnitudeBin]) {
    for ((bin, word), number) in bins.iter_mut().zip(words.iter_mut()).zip(0u32..) {
        let (count, low) = (*word >> COUNT, *word & ((1 << COUNT) - 1));
        let first = bits::mantissa(span.first + (number << span.shift));
        bin.count += count;
        bin.mantissas += count * u64::from(first) + low;
        *word = 0;
    }
    words[bins.len()] = 0;
}
