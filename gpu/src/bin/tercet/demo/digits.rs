//! The bundled digits, and the features that the bundled classifier reads.

/// Images in the bundle; the classifier was trained on the first [`TRAINED`] of them.
pub(crate) const IMAGES: usize = 1797;
/// Images of the training half; the rest are held out.
pub(crate) const TRAINED: usize = 898;
/// Features of an image.
pub(crate) const FEATURES: usize = 256;

const SIDE: usize = 8;
/// Pixels of an image.
pub(crate) const PIXELS: usize = SIDE * SIDE;

/// The classifier's file: `hidden.weight` (64 × 256), `hidden.bias`, `head.weight` (10 × 64), `head.bias`, f32.
pub(crate) const CLASSIFIER: &[u8] = include_bytes!("../../../../demo/digits.safetensors");

static PIXEL_FILE: &[u8] = include_bytes!("../../../../demo/images.npy");
static LABEL_FILE: &[u8] = include_bytes!("../../../../demo/labels.npy");

/// An image.
#[derive(Clone, Debug)]
pub(crate) struct Digit {
    /// Pixels (0..=16) and their differences right, down and down-right (−16..=16): exact in int8.
    pub(crate) features: [i8; FEATURES],
    /// The digit it shows.
    pub(crate) label: u8,
}

/// Returns the pixels of all images (0..=16), in file order. An npy file of bytes ends with its data; the header before
/// it may have any length.
pub(crate) fn pixels() -> &'static [u8] {
    &PIXEL_FILE[PIXEL_FILE.len() - IMAGES * PIXELS..]
}

/// Returns the digits that they show.
pub(crate) fn labels() -> &'static [u8] {
    &LABEL_FILE[LABEL_FILE.len() - IMAGES..]
}

/// Returns the half that the classifier was trained on, in file order.
pub(crate) fn training() -> impl Iterator<Item = Digit> {
    all().take(TRAINED)
}

/// Returns the held-out half, in file order.
pub(crate) fn held_out() -> impl Iterator<Item = Digit> {
    all().skip(TRAINED)
}

fn all() -> impl Iterator<Item = Digit> {
    let images = pixels().chunks_exact(PIXELS).zip(labels());
    images.map(|(pixels, &label)| Digit {
        features: features(pixels),
        label,
    })
}

/// Returns the features of one image, as `train.py` makes them: four planes of 64.
fn features(pixels: &[u8]) -> [i8; FEATURES] {
    let at = |row: usize, column: usize| -> i8 {
        if row < SIDE && column < SIDE {
            pixels[row * SIDE + column] as i8
        } else {
            0
        }
    };
    std::array::from_fn(|i| {
        let (row, column) = (i % PIXELS / SIDE, i % SIDE);
        let pixel = at(row, column);
        match i / PIXELS {
            0 => pixel,
            1 => pixel - at(row, column + 1),
            2 => pixel - at(row + 1, column),
            _ => pixel - at(row + 1, column + 1),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bundle_is_whole() {
        let digits: Vec<Digit> = held_out().collect();
        assert_eq!(digits.len(), IMAGES - TRAINED);
        for digit in &digits {
            assert!(digit.label < 10);
            assert!(
                digit.features[..PIXELS]
                    .iter()
                    .all(|p| (0..=16).contains(p))
            );
            assert!(digit.features.iter().all(|p| (-16..=16).contains(p)));
        }
        // Every digit is held out about equally often.
        for label in 0..10 {
            assert!(digits.iter().filter(|digit| digit.label == label).count() > 80);
        }
    }

    #[test]
    fn differences_are_to_the_right_down_and_down_right() {
        let mut pixels = [0u8; PIXELS];
        pixels[9] = 5; // row 1, column 1
        let f = features(&pixels);
        let nonzero: Vec<(usize, i8)> = f
            .iter()
            .copied()
            .enumerate()
            .filter(|(_, v)| *v != 0)
            .collect();
        assert_eq!(
            nonzero,
            [
                (9, 5),
                (64 + 8, -5),
                (64 + 9, 5),
                (128 + 1, -5),
                (128 + 9, 5),
                (192, -5),
                (192 + 9, 5)
            ]
        );
    }
}
