//! Centroids in the form for the tiles of clustering.

use super::panels::Panels;
use super::products::Format;

/// Maximum number of centroids that a block of a tile is multiplied with at once; 24 sums of 4 vectors of points fit a
/// register file of 32.
pub(in crate::simd) const BLOCK: usize = 6;

/// Centroids in blocks, with the words of one group of four coordinates side by side, and the initial scores; or in
/// [`Panels`].
///
/// The score ‖c‖² − 2·x·c is least if v = x·c − ⌊‖c‖² / 2⌋ is greatest and, among equals, ‖c‖² is even, because score =
/// −2v + (‖c‖² mod 2). So the sums start from −⌊‖c‖² / 2⌋, centroids with even length² come before those with odd, each
/// in the order of their labels, and the first position of the greatest v is the lowest label of the least score: no
/// sum is doubled, and no parity is compared. Unsigned centroids add 128·Σx to every v of a point, which changes no
/// order; [`super::Cluster::lengths`] compensates for it.
#[derive(Clone, Debug)]
pub(crate) struct Packed {
    format: Option<Format>,
    dims: usize,
    /// Block after block; in a block, for each group of four coordinates and each of its words, one word per centroid.
    words: Vec<i32>,
    /// The initial sum of each position.
    starts: Vec<i32>,
    /// At each position twice the label, plus 1 if length² is odd.
    tags: Vec<i32>,
    panels: Panels,
    /// For the reference: the centroids in their original order.
    rows: Vec<i8>,
    /// Their squared lengths.
    norms: Vec<i32>,
}

impl Packed {
    /// Maximum number of centroids: a tag has 32 bits, and its label is at most a positive i32.
    pub(crate) const MOST: usize = 1 << 31;

    /// Returns an empty value; `format` is `None` for the reference's own loops.
    pub(in crate::simd) const fn new(format: Option<Format>) -> Self {
        Self {
            format,
            dims: 0,
            words: Vec::new(),
            starts: Vec::new(),
            tags: Vec::new(),
            panels: Panels::EMPTY,
            rows: Vec::new(),
            norms: Vec::new(),
        }
    }

    /// See [`super::Cluster::pack`], which computes the squared lengths.
    pub(in crate::simd) fn pack(&mut self, centroids: &[i8], dims: usize, norms: &[u32]) {
        let k = norms.len();
        self.dims = dims;
        self.norms.clear();
        // At most 2¹⁴ · 43,690, below 2³¹.
        self.norms.extend(norms.iter().map(|&norm| norm as i32));
        let Some(format) = self.format else {
            self.rows.clear();
            self.rows.extend_from_slice(centroids);
            return;
        };
        if format == Format::Tiles {
            return self.panels.pack(centroids, dims, &self.norms);
        }
        self.tags.clear();
        for parity in [0, 1] {
            let labels = (0u32..).zip(&self.norms);
            let labels = labels.filter(|(_, norm)| *norm % 2 == parity);
            self.tags
                .extend(labels.map(|(label, _)| (label << 1) as i32 | parity));
        }
        self.starts.clear();
        let starts = self.tags.iter().map(|&tag| -(self.norms[label(tag)] / 2));
        self.starts.extend(starts);
        let groups = dims.div_ceil(4);
        self.words.resize(k * groups * format.words(), 0);
        let (mut tags, mut words) = (&self.tags[..], &mut self.words[..]);
        for block in blocks(k) {
            let (of_block, others) = tags.split_at(block);
            let (to, rest) = words.split_at_mut(block * groups * format.words());
            for (column, &tag) in of_block.iter().enumerate() {
                let row = &centroids[label(tag) * dims..][..dims];
                write(format, row, to, column, block);
            }
            (tags, words) = (others, rest);
        }
    }

    /// Returns the centroids in panels.
    pub(in crate::simd) const fn panels(&self) -> &Panels {
        &self.panels
    }

    pub(in crate::simd) const fn dims(&self) -> usize {
        self.dims
    }

    /// Returns the number of centroids.
    pub(in crate::simd) const fn len(&self) -> usize {
        self.norms.len()
    }

    pub(in crate::simd) fn words(&self) -> &[i32] {
        &self.words
    }

    pub(in crate::simd) fn starts(&self) -> &[i32] {
        &self.starts
    }

    pub(in crate::simd) fn tags(&self) -> &[i32] {
        &self.tags
    }

    /// Returns the centroids and their squared lengths, for the reference's loops.
    pub(in crate::simd) fn plain(&self) -> (&[i8], &[i32]) {
        (&self.rows, &self.norms)
    }
}

/// Returns the label of a tag.
const fn label(tag: i32) -> usize {
    (tag as u32 >> 1) as usize
}

/// Returns the sizes of the blocks of `k` centroids: as few as possible, none above [`BLOCK`], and differing by at most
/// 1.
pub(in crate::simd) fn blocks(k: usize) -> impl Iterator<Item = usize> {
    let count = k.div_ceil(BLOCK);
    (0..count).map(move |block| k / count + usize::from(block < k % count))
}

/// Writes the words of the centroid in `column` of a block of `block`.
///
/// Missing coordinates are 0 in any format, so that the points' values there do not count.
pub(super) fn write(format: Format, row: &[i8], to: &mut [i32], column: usize, block: usize) {
    let (fours, rest) = row.as_chunks::<4>();
    let mut last = [0; 4];
    last[..rest.len()].copy_from_slice(rest);
    let word = |four: &[i8; 4]| i32::from_le_bytes(four.map(|c| c as u8));
    match format {
        Format::Unsigned | Format::Signed | Format::Tiles => {
            let (flip, last_flip) = match format {
                Format::Unsigned => (u32::MAX, !(u32::MAX << (8 * rest.len()))),
                _ => (0, 0),
            };
            const SIGNS: u32 = 0x8080_8080;
            let mut to = to.chunks_exact_mut(block);
            // The words after `fours`, so that none is lost to a last call of its iterator.
            for (four, to) in fours.iter().zip(to.by_ref()) {
                to[column] = word(four) ^ (flip & SIGNS) as i32;
            }
            if let Some(to) = to.next() {
                to[column] = word(&last) ^ (last_flip & SIGNS) as i32;
            }
        }
        Format::Pairs => {
            let pair = |low: i8, high: i8| i32::from(low) & 0xFFFF | i32::from(high) << 16;
            let last = (!rest.is_empty()).then_some(&last);
            let to = to.chunks_exact_mut(2 * block);
            for (to, four) in to.zip(fours.iter().chain(last)) {
                to[column] = pair(four[0], four[2]);
                to[block + column] = pair(four[1], four[3]);
            }
        }
    }
}
