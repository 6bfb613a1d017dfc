//! The number rules.

use half::{bf16, f16};

use super::{Digest, input};
use crate::number::{
    Element, ExactSum, Lanes, Random, Stats, dot, log2, root, round, squared_distance,
};

pub(super) fn run(report: &mut dyn FnMut(&'static str, u64)) {
    report("number/random", random());
    report("number/exact_sum", exact_sum());
    report("number/exact_sum/halves", halves());
    report("number/stats", stats());
    report("number/round", rounding());
    report("number/root", roots());
    report("number/log2", logarithms());
    report("number/lanes", lanes());
}

#[inline(never)]
fn random() -> u64 {
    let mut digest = Digest::new();
    let mut random = Random::new(0x7E12_CE70);
    for n in 0..256u64 {
        digest.u64(random.next_u64());
        digest.u64(random.below(n * n));
        digest.f32s(&[random.unit_f32(), random.signed_f32(), random.normal()]);
    }
    digest.value()
}

#[inline(never)]
fn exact_sum() -> u64 {
    let mut digest = Digest::new();
    let mut total = ExactSum::ZERO;
    input::for_each(1, &mut |values| {
        let mut sum = ExactSum::ZERO;
        for &x in values {
            sum.add(x);
        }
        digest.sum(&sum);
        let mut whole = ExactSum::ZERO;
        whole.add_slice(values);
        digest.sum(&whole);
        digest.f64(whole.to_f64());
        digest.bytes(&[total.cmp_squares(3, &whole, 2) as u8]);
        total.merge(&sum);
        digest.sum(&total);
    });
    digest.value()
}

#[inline(never)]
fn stats() -> u64 {
    let mut digest = Digest::new();
    input::for_each(2, &mut |values| {
        let mut spoiled = [0.0; input::MAX];
        let Some(spoiled) = spoiled.get_mut(..values.len()) else {
            return;
        };
        spoiled.copy_from_slice(values);
        for bad in [
            None,
            Some(f32::NAN),
            Some(f32::INFINITY),
            Some(f32::NEG_INFINITY),
        ] {
            if let (Some(bad), Some(last)) = (bad, spoiled.last_mut()) {
                *last = bad;
            }
            let stats = Stats::of(spoiled);
            digest.u64(stats.count);
            digest.u64(stats.first_bad.unwrap_or(u64::MAX));
            if stats.first_bad.is_none() {
                digest.f32s(&[stats.min, stats.max, stats.abs_max()]);
                digest.sum(&stats.sum);
                digest.f32(stats.abs_mean().unwrap_or(f32::NAN));
            }
        }
    });
    digest.value()
}

#[inline(never)]
fn rounding() -> u64 {
    let mut digest = Digest::new();
    input::for_each(3, &mut |values| {
        for &x in values {
            digest.f32(round::half_even(x));
            digest.f32(round::half_away(x));
            digest.f64(round::half_even_f64(f64::from(x) * 0.5));
            digest.f64(round::half_away_f64(f64::from(x) * 0.5));
            digest.i8s(&[round::saturate_i8(x)]);
            digest.bytes(&round::saturate_i32(x).to_le_bytes());
        }
    });
    digest.value()
}

/// Sums and statistics of f16 and bf16, which have their own code paths.
#[inline(never)]
fn halves() -> u64 {
    fn of<T: Element>(values: &[T], digest: &mut Digest) {
        let stats = Stats::of(values);
        digest.u64(stats.first_bad.unwrap_or(u64::MAX));
        if stats.first_bad.is_none() {
            digest.sum(&stats.sum);
            digest.f32(stats.abs_mean().unwrap_or(f32::NAN));
        }
    }
    let mut digest = Digest::new();
    input::for_each(14, &mut |values| {
        let mut wide = [f16::ZERO; input::MAX];
        for (half, &x) in wide.iter_mut().zip(values) {
            *half = f16::from_f32(x);
        }
        of(wide.get(..values.len()).unwrap_or(&[]), &mut digest);
        let mut brain = [bf16::ZERO; input::MAX];
        for (half, &x) in brain.iter_mut().zip(values) {
            *half = bf16::from_f32(x);
        }
        of(brain.get(..values.len()).unwrap_or(&[]), &mut digest);
    });
    digest.value()
}

#[inline(never)]
fn roots() -> u64 {
    let mut digest = Digest::new();
    input::for_each(15, &mut |values| {
        for &x in values {
            let bits = x.to_bits() & 0x7FFF_FFFF;
            digest.f32(root::sqrt_f32(f32::from_bits(bits)));
            // A finite f64: its exponent is at most 0x7F7 of 0x7FF.
            let wide = u64::from(bits) << 32 | u64::from(!bits);
            digest.f64(root::sqrt_f64(f64::from_bits(wide)));
        }
    });
    digest.value()
}

#[inline(never)]
fn logarithms() -> u64 {
    let mut digest = Digest::new();
    input::for_each(16, &mut |values| {
        for &x in values {
            if x != 0.0 {
                digest.f64(log2(f64::from(f32::from_bits(x.to_bits() & 0x7FFF_FFFF))));
            }
        }
    });
    digest.value()
}

/// Float sums in their one order, whole and in two parts. Overflow to infinity is a result; NaN is not digested.
#[inline(never)]
fn lanes() -> u64 {
    let mut digest = Digest::new();
    input::for_each(17, &mut |values| {
        let mut other = [0.0; input::MAX];
        let Some(other) = other.get_mut(..values.len()) else {
            return;
        };
        input::Family::Bell.fill(18, other);
        let (a, b) = (
            values.split_at(values.len() / 3),
            other.split_at(values.len() / 3),
        );
        let mut squares = Lanes::<f64>::new();
        let parts = squares
            .squared_error(a.0, b.0)
            .and_then(|()| squares.squared_error(a.1, b.1));
        digest.bytes(&[u8::from(parts.is_some())]);
        for value in [dot(values, other), squared_distance(values, other)]
            .into_iter()
            .flatten()
        {
            if !value.is_nan() {
                digest.f32(value);
            }
        }
        digest.f64(squares.total());
    });
    digest.value()
}
