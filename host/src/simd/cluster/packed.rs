//! Centroids as the tiles of clustering take them.

use tercet_core::scalar::cluster as reference;

use super::lanes::Format;

/// Centroids that a block of a tile multiplies with at once, at most; 24 sums of 4 vectors of points fill a register file of 32.
pub(in crate::simd) const BLOCK: usize = 6;

/// Centroids in blocks, words of one group of four coordinates side by side, with what the scores start from.
///
/// The score ‖c‖² − 2·x·c is least where v = x·c − ⌊‖c‖² / 2⌋ is greatest and, among equals, ‖c‖² is even: score =
/// −2v + (‖c‖² mod 2). So the sums start from −⌊‖c‖² / 2⌋, centroids of even length² come before those of odd, each in
/// order of their labels, and the first position of the greatest v is the lowest label of the least score: no sum is
/// doubled, and no parity compared. With x unsigned, 128·Σc too many are taken off at the start.
#[derive(Clone, Debug)]
pub(crate) struct Packed {
    format: Option<Format>,
    dims: usize,
    /// Block after block; of a block, for each group of four coordinates and each of its words, one a centroid.
    words: Vec<i32>,
    /// What the sum of each position starts from.
    starts: Vec<i32>,
    /// The label at each position.
    order: Vec<u32>,
    /// Positions of even length².
    evens: usize,
    /// For the reference: the centroids as they came, and their squared lengths.
    rows: Vec<i8>,
    norms: Vec<i32>,
}

impl Packed {
    /// Nothing yet; `format` is `None` for the reference's own loops.
    pub(in crate::simd) const fn new(format: Option<Format>) -> Self {
        Self {
            format,
            dims: 0,
            words: Vec::new(),
            starts: Vec::new(),
            order: Vec::new(),
            evens: 0,
            rows: Vec::new(),
            norms: Vec::new(),
        }
    }

    /// Takes other centroids, with at most 43,690 coordinates each. O(k·d); allocates only to grow.
    pub(crate) fn pack(&mut self, centroids: &[i8], dims: usize) {
        let k = centroids.len() / dims;
        self.dims = dims;
        self.norms.resize(k, 0);
        reference::norms(centroids, dims, &mut self.norms);
        let Some(format) = self.format else {
            self.rows.clear();
            self.rows.extend_from_slice(centroids);
            return;
        };
        let labels = 0..k as u32;
        let parity = |&label: &u32| self.norms[label as usize] % 2;
        self.order.clear();
        self.order
            .extend(labels.clone().filter(|label| parity(label) == 0));
        self.evens = self.order.len();
        self.order.extend(labels.filter(|label| parity(label) == 1));
        self.starts.clear();
        self.starts.extend(self.order.iter().map(|&label| {
            let label = label as usize;
            let start = -(self.norms[label] / 2);
            if format == Format::Unsigned {
                let row = &centroids[label * dims..][..dims];
                start - 128 * row.iter().map(|&c| i32::from(c)).sum::<i32>()
            } else {
                start
            }
        }));
        self.words.resize(k * dims.div_ceil(4) * format.words(), 0);
        let (mut position, mut at) = (0, 0);
        for block in blocks(k) {
            let labels = &self.order[position..][..block];
            let len = block * dims.div_ceil(4) * format.words();
            for (column, &label) in labels.iter().enumerate() {
                let row = &centroids[label as usize * dims..][..dims];
                let words = self.words[at + column..].iter_mut().step_by(block);
                write(format, row, words);
            }
            position += block;
            at += len;
        }
    }

    pub(in crate::simd) const fn dims(&self) -> usize {
        self.dims
    }

    /// How many centroids.
    pub(in crate::simd) const fn len(&self) -> usize {
        self.norms.len()
    }

    pub(in crate::simd) fn words(&self) -> &[i32] {
        &self.words
    }

    pub(in crate::simd) fn starts(&self) -> &[i32] {
        &self.starts
    }

    pub(in crate::simd) fn order(&self) -> &[u32] {
        &self.order
    }

    /// The first position of odd length².
    pub(in crate::simd) const fn evens(&self) -> usize {
        self.evens
    }

    /// The centroids and their squared lengths, for the reference's loops.
    pub(in crate::simd) fn plain(&self) -> (&[i8], &[i32]) {
        (&self.rows, &self.norms)
    }
}

/// The sizes of the blocks of `k` centroids: as few as can be, none above [`BLOCK`], no two more than 1 apart.
pub(in crate::simd) fn blocks(k: usize) -> impl Iterator<Item = usize> {
    let count = k.div_ceil(BLOCK);
    (0..count).map(move |block| k / count + usize::from(block < k % count))
}

/// Writes the words of a centroid; absent coordinates are 0, so that what points hold there counts for nothing.
fn write<'a>(format: Format, row: &[i8], mut words: impl Iterator<Item = &'a mut i32>) {
    let (fours, rest) = row.as_chunks::<4>();
    let mut last = [0; 4];
    last[..rest.len()].copy_from_slice(rest);
    let last = (!rest.is_empty()).then_some(&last);
    for four in fours.iter().chain(last) {
        let bytes = four.map(|c| c as u8);
        match format {
            Format::Unsigned | Format::Signed => {
                if let Some(word) = words.next() {
                    *word = i32::from_le_bytes(bytes);
                }
            }
            Format::Pairs => {
                let pair = |low: i8, high: i8| i32::from(low) & 0xFFFF | i32::from(high) << 16;
                for pair in [pair(four[0], four[2]), pair(four[1], four[3])] {
                    if let Some(word) = words.next() {
                        *word = pair;
                    }
                }
            }
        }
    }
}
