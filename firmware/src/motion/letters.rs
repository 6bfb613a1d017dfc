//! Turns readings into letters, which a language model reads: one letter for the change from a reading to the next.

use tercet_core::cluster::nearest;

use super::{AXES, Sample};

/// Number of letters.
pub const LETTERS: usize = 64;

/// The letters, by the number of their centroid.
pub(super) const ALPHABET: &[u8; LETTERS] =
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// A change between two readings: the signed root of the difference on each axis, −127 to 127.
pub type Change = [i8; AXES];

/// The centroids of changes by which letters are told apart, row by row. `tercet kmeans` made them of the training
/// recordings (`data/motion_model.py`).
const CENTROIDS: [i8; LETTERS * AXES] = {
    // In an npy file the values come last.
    let file = include_bytes!("../../data/motion-letters.npy");
    let start = file.len() - LETTERS * AXES;
    let mut centroids = [0; LETTERS * AXES];
    let mut at = 0;
    while at < centroids.len() {
        centroids[at] = file[start + at] as i8;
        at += 1;
    }
    centroids
};

/// Returns the change between two readings. Differences of 127² and more have the root 127.
///
/// A constant added to an axis changes nothing. Roots tell quiet motion apart, although loud motion has codes too.
pub fn change(before: &Sample, after: &Sample) -> Change {
    let mut change = [0; AXES];
    for (code, (&before, &after)) in change.iter_mut().zip(before.iter().zip(after)) {
        let difference = i32::from(after) - i32::from(before);
        let root = root(difference.unsigned_abs());
        *code = if difference < 0 { -root } else { root };
    }
    change
}

/// Returns the largest whole number of at most 127 whose square is not above `square`.
fn root(square: u32) -> i8 {
    let mut root = 0u32;
    for bit in [64, 32, 16, 8, 4, 2, 1] {
        let next = root | bit;
        if next * next <= square {
            root = next;
        }
    }
    root as i8
}

/// Returns the letter of a change: that of the nearest centroid. O([`LETTERS`]).
pub fn letter(change: &Change) -> u8 {
    ALPHABET.get(place(change)).copied().unwrap_or(b'A')
}

/// Returns the place of a change's letter in the alphabet.
pub(super) fn place(change: &Change) -> usize {
    // The centroids have as many values as a change, so this is no error.
    nearest(change, &CENTROIDS).map_or(0, |near| near.label as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_are_whole_and_end_at_127() {
        for square in 0..70_000u32 {
            let root = root(square);
            let whole = square.isqrt().min(127);
            assert_eq!(root as u32, whole, "{square}");
        }
    }

    #[test]
    fn a_change_is_that_of_each_axis() {
        let before = [0, 100, -30_000, 5, 5, i16::MAX];
        let after = [4, 0, 30_000, 5, 4, i16::MIN];
        assert_eq!(change(&before, &after), [2, -10, 127, 0, -1, -127]);
    }

    #[test]
    fn each_centroid_has_its_letter() {
        for (centroid, &expected) in CENTROIDS.chunks(AXES).zip(ALPHABET) {
            assert_eq!(letter(centroid.try_into().unwrap()), expected);
        }
    }
}
