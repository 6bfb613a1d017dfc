//! Histograms that a CUDA device counts against core's: buckets, extremes and refusals, to the bit.

use crate::support::cudas::{cudas, devices, emulated_devices};
use crate::support::draw::Draw;
use crate::support::emulator::checked;
use crate::support::quantize::{KINDS, halves, values};
use half::{bf16, f16};
use tercet_core::engine::QuantizeEngine;
use tercet_core::number::Element;
use tercet_core::quant::{HOST_BITS, Histogram, QuantError, SMALL_BITS};
use tercet_core::scalar::Scalar;
use tercet_gpu::engine::{Cuda, CudaError, CudaOptions};

/// Counts values by an engine on top of others, in two calls: what came of the second, the buckets, how many there
/// are, and the extremes as patterns.
fn counted<E: QuantizeEngine, T: Element, const B: u32>(
    engine: &mut E,
    values: &[T],
) -> (Result<(), E::Error>, Vec<u64>, u64, [u32; 2]) {
    let mut buckets = vec![0; Histogram::<B>::BUCKETS];
    let mut histogram = Histogram::<B>::new(&mut buckets).unwrap();
    let first = engine.histogram(&[0.25f32, -3.0], &mut histogram);
    assert!(first.is_ok());
    let done = engine.histogram(values, &mut histogram);
    let count = histogram.count();
    let (low, high) = histogram.range().unwrap();
    (done, buckets, count, [low.to_bits(), high.to_bits()])
}

fn same_in<E: QuantizeEngine<Error = CudaError>, T: Element, const B: u32>(
    engine: &mut E,
    values: &[T],
    case: &str,
) {
    let (done, buckets, count, extremes) = counted::<_, _, B>(&mut Scalar, values);
    let expected = (done.map_err(CudaError::from), buckets, count, extremes);
    let found = counted::<_, _, B>(engine, values);
    assert_eq!(found.0, expected.0, "{case}, {B} bits");
    assert!(found == expected, "{case}, {B} bits");
}

/// Values that lie on the device.
fn same_there<T: Element, const B: u32>(cuda: &mut Cuda, values: &[T], case: &str) {
    let (done, expected, count, extremes) = counted::<_, _, B>(&mut Scalar, values);
    let mut buckets = vec![0; Histogram::<B>::BUCKETS];
    let mut histogram = Histogram::<B>::new(&mut buckets).unwrap();
    histogram.push(&[0.25f32, -3.0]).unwrap();
    let there = cuda.upload(values).unwrap();
    let found = cuda.histogram_of(&there, &mut histogram);
    assert_eq!(found, done.map_err(CudaError::from), "{case}, {B} bits");
    let (low, high) = histogram.range().unwrap();
    assert_eq!(histogram.count(), count, "{case}, {B} bits");
    assert_eq!(
        [low.to_bits(), high.to_bits()],
        extremes,
        "{case}, {B} bits"
    );
    assert!(buckets == expected, "{case}, {B} bits");
}

/// Buckets that fit a block's table, that do not, and the fewest.
fn same<E: QuantizeEngine<Error = CudaError>, T: Element>(
    engine: &mut E,
    values: &[T],
    case: &str,
) {
    let case = format!("{case}, {:?}, {} values", T::KIND, values.len());
    same_in::<_, _, HOST_BITS>(engine, values, &case);
    same_in::<_, _, SMALL_BITS>(engine, values, &case);
    same_in::<_, _, 2>(engine, values, &case);
}

/// As floats of every type.
fn same_as_all<E: QuantizeEngine<Error = CudaError>>(engine: &mut E, values: &[f32], case: &str) {
    same(engine, values, case);
    same(engine, &halves(values, f16::from_f32), case);
    same(engine, &halves(values, bf16::from_f32), case);
}

#[test]
fn values_of_any_number_and_kind_are_counted_as_by_core() {
    let Some(device) = devices() else { return };
    let mut cuda = Cuda::first().unwrap();
    for (seed, len) in (0..).zip([0, 1, 2, 15, 16, 17, 255, 256, 257, 4095, 5001]) {
        device.set(&format!("seed={seed}"));
        for kind in 0..KINDS {
            if len > 300 && kind > 1 && checked() {
                continue;
            }
            let case = format!("kind {kind}");
            same_as_all(&mut cuda, &values(seed, kind, len), &case);
        }
    }
}

#[test]
fn many_blocks_count_as_one() {
    let Some(_device) = devices() else { return };
    let mut cuda = Cuda::first().unwrap();
    // Longer than what one block takes on, with an end at an odd place; not from a vector's boundary on.
    for kind in [0, 1, 2] {
        let values = values(40 + kind, kind, 70_003);
        same(&mut cuda, &values[3..], "long");
        same(&mut cuda, &halves(&values, bf16::from_f32)[1..], "long");
    }
}

/// Stretches of equal values are added at once; an outlier moves the window that blocks count in away from all other
/// values.
#[test]
fn hot_buckets_and_outliers_are_counted() {
    let Some(_device) = devices() else { return };
    let mut cuda = Cuda::first().unwrap();
    for value in [0.0, -0.0, 1.5, -f32::MAX, f32::from_bits(1)] {
        same_as_all(&mut cuda, &[value; 3001], "all the same");
    }
    let mut draw = Draw(9);
    let mut mixed = values(50, 0, 20_000);
    for value in &mut mixed {
        match draw.below(4) {
            0 => *value = 0.0,
            1 => *value = -0.0,
            2 => *value = f32::from_bits(draw.below(1 << 12) as u32),
            _ => {}
        }
    }
    same_as_all(&mut cuda, &mixed, "zeros among others");
    for outlier in [f32::MAX, -f32::MAX, 2f32.powi(40)] {
        mixed[7777] = outlier;
        same(&mut cuda, &mixed, "an outlier");
    }
    // Keys of the whole range, and buckets of which a block's table has a few octaves.
    let all: Vec<f32> = (0..40_000u32)
        .map(|i| f32::from_bits(i.wrapping_mul(107_374)))
        .filter(|x| x.is_finite())
        .collect();
    same_in::<_, _, 20>(&mut cuda, &all, "every exponent");
    same_in::<_, _, 13>(&mut cuda, &all, "every exponent");
    same_in::<_, _, 14>(&mut cuda, &all, "every exponent");
}

#[test]
fn the_first_that_is_not_finite_ends_the_count_wherever_it_is() {
    let Some(device) = devices() else { return };
    let mut cuda = Cuda::first().unwrap();
    let good = values(60, 0, 40_000);
    let bads = [f32::NAN, f32::INFINITY, -f32::INFINITY, -f32::NAN];
    let places = [0, 1, 15, 16, 300, 16_383, 16_384, 16_385, 39_999];
    for (place, bad) in places.into_iter().zip(bads.into_iter().cycle()) {
        device.set(&format!("seed={place}"));
        let mut spoiled = good.clone();
        spoiled[place] = bad;
        // What comes later does not show, large as it is.
        spoiled[39_999] = f32::INFINITY;
        if place < 39_998 {
            spoiled[39_998] = f32::MAX;
        }
        let case = format!("{bad} at {place}");
        same(&mut cuda, &spoiled, &case);
        let f16s: Vec<_> = spoiled.iter().map(|&x| f16::from_f32(x)).collect();
        same_in::<_, _, HOST_BITS>(&mut cuda, &f16s, &case);
        let bf16s: Vec<_> = spoiled.iter().map(|&x| bf16::from_f32(x)).collect();
        same_in::<_, _, SMALL_BITS>(&mut cuda, &bf16s, &case);
    }
}

#[test]
fn values_on_the_device_are_counted_there() {
    let Some(device) = devices() else { return };
    let mut cuda = Cuda::first().unwrap();
    for (seed, len) in (0..).zip([0, 1, 17, 4095, 40_000]) {
        device.set(&format!("seed={seed}"));
        let mut values = values(90 + seed, seed % KINDS, len);
        let halved = halves(&values, bf16::from_f32);
        same_there::<_, HOST_BITS>(&mut cuda, &values, "floats");
        same_there::<_, SMALL_BITS>(&mut cuda, &halved, "halves");
        if let Some(last) = values.last_mut() {
            *last = f32::NAN;
            same_there::<_, HOST_BITS>(&mut cuda, &values, "a NaN");
        }
    }
    // Of another engine.
    let mut other = Cuda::first().unwrap();
    let there = other.upload(&[1.0f32; 4]).unwrap();
    let mut buckets = vec![0; Histogram::<SMALL_BITS>::BUCKETS];
    let mut histogram = Histogram::<SMALL_BITS>::new(&mut buckets).unwrap();
    let error = cuda.histogram_of(&there, &mut histogram).unwrap_err();
    assert!(
        matches!(error, CudaError::Length { found: 0, .. }),
        "{error}"
    );
    assert_eq!(histogram.count(), 0);
}

/// Counters stay while values pass through in chunks.
#[test]
fn values_without_room_pass_through() {
    let Some(device) = emulated_devices() else {
        return;
    };
    let mut cuda = Cuda::new(&CudaOptions {
        memory: Some(512 << 10),
        ..CudaOptions::default()
    })
    .unwrap();
    let mut values = values(70, 0, 150_000);
    let before = device.count("launches");
    same_in::<_, _, HOST_BITS>(&mut cuda, &values, "in chunks");
    assert!(device.count("launches") - before > 2 * 5);
    // In the middle of a chunk that is neither the first nor the last.
    values[77_777] = f32::NAN;
    values[140_000] = f32::MAX;
    same_in::<_, _, HOST_BITS>(&mut cuda, &values, "in chunks");
    values[20] = f32::INFINITY;
    same_in::<_, _, HOST_BITS>(&mut cuda, &values, "in chunks");
}

#[test]
fn without_room_for_counters_nothing_is_counted() {
    let Some(_device) = emulated_devices() else {
        return;
    };
    let mut cuda = Cuda::new(&CudaOptions {
        memory: Some(192 << 10),
        ..CudaOptions::default()
    })
    .unwrap();
    let mut buckets = vec![0; Histogram::<HOST_BITS>::BUCKETS];
    let mut histogram = Histogram::<HOST_BITS>::new(&mut buckets).unwrap();
    let error = cuda.histogram(&[1.0f32; 100], &mut histogram).unwrap_err();
    assert!(error.is_out_of_memory(), "{error}");
    assert_eq!((histogram.count(), histogram.range()), (0, None));
    // The engine is as it was: fewer buckets have room.
    same_in::<_, _, SMALL_BITS>(&mut cuda, &values(71, 0, 1000), "afterwards");
}

#[test]
fn several_devices_count_ranges_of_the_values() {
    let Some(_device) = emulated_devices() else {
        return;
    };
    for devices in 1..4 {
        let mut cudas = cudas(devices);
        let case = format!("{devices} devices");
        let mut values = values(80, 0, 1003);
        same_as_all(&mut cudas, &values, &case);
        same::<_, f32>(&mut cudas, &[], &case);
        // In the last share, in the middle of one, and so that whole shares are not counted.
        for place in [1002, 500, 0] {
            values[place] = f32::NAN;
            same(&mut cudas, &values, &case);
            let index = 2 + place as u64;
            let mut buckets = vec![0; Histogram::<2>::BUCKETS];
            let mut histogram = Histogram::<2>::new(&mut buckets).unwrap();
            histogram.push(&[1.0f32; 2]).unwrap();
            let refused = cudas.histogram(&values, &mut histogram);
            assert_eq!(refused, Err(QuantError::NotFinite { index }.into()));
        }
    }
}
