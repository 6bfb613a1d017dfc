//! Inputs of the cases: the same on every machine and for any number of threads.

use std::sync::{Arc, Mutex, PoisonError};

use crate::parallel::each::chunks_mut;
use tercet_core::number::Random;

/// Values per seed.
const RUN: usize = 1 << 16;

/// The longest input that is kept for shorter ones: the start of a long input equals a shorter one, and copying it
/// takes a tenth of the time.
const KEPT: usize = 1 << 22;

/// Returns approximately normal values, with mean 0 and variance 1.
pub fn normals(len: usize) -> Arc<[f32]> {
    /// The last one: many consecutive cases have the same input, of up to some hundred MB.
    static LAST: Mutex<Option<Arc<[f32]>>> = Mutex::new(None);
    let last = || LAST.lock().unwrap_or_else(PoisonError::into_inner);
    match &mut *last() {
        Some(values) if values.len() == len => return values.clone(),
        Some(values) if values.len() <= KEPT && len < values.len() => return values[..len].into(),
        other => *other = None,
    }
    // Not under the lock, because a thread that waits for the others may run another case.
    let mut values = vec![0.0; len];
    fill(&mut values, |random| random.normal());
    let values: Arc<[f32]> = values.into();
    *last() = Some(values.clone());
    values
}

/// Returns int8 codes, uniform except for −128.
pub fn codes(len: usize) -> Vec<i8> {
    /// The longest kept input.
    static LONGEST: Mutex<Vec<i8>> = Mutex::new(Vec::new());
    let longest = || LONGEST.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(codes) = longest().get(..len) {
        return codes.to_vec();
    }
    // Not under the lock, as above.
    let codes = codes_between(-127, 127, len);
    if len <= KEPT {
        longest().clone_from(&codes);
    }
    codes
}

/// Returns uniform codes of a range.
pub fn codes_between(lowest: i8, highest: i8, len: usize) -> Vec<i8> {
    let (lowest, highest) = (i32::from(lowest), i32::from(highest));
    let mut codes = vec![0; len];
    fill(&mut codes, |random| {
        (random.below((highest - lowest + 1) as u64) as i32 + lowest) as i8
    });
    codes
}

/// Returns int8 points of `dims` coordinates: a mixture of `k` overlapping normals; the standard deviation of their
/// centres is 0.3 of theirs.
pub fn points(count: usize, dims: usize, k: usize) -> Vec<i8> {
    let centres: Vec<f32> = {
        let mut random = Random::new(5);
        (0..k * dims).map(|_| 0.3 * random.normal()).collect()
    };
    let mut points = vec![0; count * dims];
    chunks_mut(&mut points, dims).each(|index, point| {
        let mut random = Random::new(index as u64);
        let centre = &centres[index % k * dims..][..dims];
        for (x, centre) in point.iter_mut().zip(centre) {
            *x = (20.0 * (centre + random.normal())).clamp(-127.0, 127.0) as i8;
        }
    });
    points
}

fn fill<T: Send>(values: &mut [T], draw: impl Fn(&mut Random) -> T + Sync) {
    chunks_mut(values, RUN).each(|run, values| {
        let mut random = Random::new(run as u64);
        values.fill_with(|| draw(&mut random));
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_longer_input_begins_as_a_shorter_one() {
        let short = normals(RUN + 3);
        let long = normals(3 * RUN);
        assert_eq!(short[..], long[..RUN + 3]);
        assert_ne!(long[..RUN], long[RUN..2 * RUN]);
        assert_eq!(normals(RUN + 3)[..], short[..]);
        assert_eq!(codes(RUN + 3)[..], codes(3 * RUN)[..RUN + 3]);
        assert_eq!(codes(RUN + 3), codes_between(-127, 127, RUN + 3));
        let mean = long.iter().sum::<f32>() / long.len() as f32;
        assert!(mean.abs() < 0.02, "{mean}");
    }

    #[test]
    fn codes_cover_their_range() {
        let codes = codes_between(-1, 1, 1000);
        for code in -1..=1 {
            assert!(codes.contains(&code));
        }
        assert!(codes.iter().all(|code| (-1..=1).contains(code)));
    }
}
