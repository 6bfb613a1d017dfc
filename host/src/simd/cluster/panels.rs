//! Centroids in panels, the form for tile products.

use super::Line;
use super::keys::Keys;
use super::packed::write;
use super::products::Format;

/// Centroids per tile.
const WIDTH: usize = 16;

/// Centroids in the order of their labels, in tiles of 16: two adjacent tiles are a panel, and if their number is odd
/// the last tile is a panel by itself.
///
/// A panel has, for each step and each of its words of four coordinates, the words of all columns. There are as few
/// steps as possible, with up to 16 words each; the last step is padded with zeros, and the last tile with repetitions
/// of the last centroid.
#[derive(Clone, Debug)]
#[allow(dead_code, reason = "an architecture has its own sets")]
pub(in crate::simd) struct Panels {
    /// Tiles that hold all centroids.
    pub(in crate::simd) tiles: usize,
    /// Steps that multiply all coordinates.
    pub(in crate::simd) steps: usize,
    /// Words per step.
    pub(in crate::simd) words: usize,
    /// The form of the keys.
    pub(in crate::simd) keys: Keys,
    /// A line for each tile, step and word.
    pub(in crate::simd) lines: Vec<Line>,
    /// The initial sums of a tile's columns.
    pub(in crate::simd) starts: Vec<Line>,
    /// The bits that are added to their keys.
    pub(in crate::simd) tags: Vec<Line>,
}

impl Panels {
    /// No centroids.
    pub(super) const EMPTY: Self = Self {
        tiles: 0,
        steps: 0,
        words: 0,
        keys: Keys::EXACT,
        lines: Vec::new(),
        starts: Vec::new(),
        tags: Vec::new(),
    };

    /// Packs other centroids, with these squared lengths.
    pub(super) fn pack(&mut self, centroids: &[i8], dims: usize, norms: &[i32]) {
        let (k, groups) = (norms.len(), dims.div_ceil(4));
        self.tiles = k.div_ceil(WIDTH);
        self.steps = groups.div_ceil(16);
        self.words = groups.div_ceil(self.steps);
        self.keys = Keys::new(k, dims, norms.iter().copied().max().unwrap_or(0));
        self.starts.resize(self.tiles, Line::ZERO);
        self.tags.resize(self.tiles, Line::ZERO);
        self.lines.clear();
        let tile_lines = self.steps * self.words;
        self.lines.resize(self.tiles * tile_lines, Line::ZERO);
        for position in 0..self.tiles * WIDTH {
            // A repetition loses to the original, because ties go to lower labels.
            let label = position.min(k - 1);
            let norm = norms[label];
            let (tile, column) = (position / WIDTH, position % WIDTH);
            self.starts[tile].0[column] = self.keys.start(norm);
            self.tags[tile].0[column] = self.keys.tag(position, norm);
            let first = tile - tile % 2;
            let width = WIDTH * self.together(first);
            let lines = &mut self.lines[first * tile_lines..];
            let words = super::flat_mut(lines);
            let steps = centroids[label * dims..][..dims].chunks(4 * self.words);
            for (coordinates, to) in steps.zip(words.chunks_exact_mut(self.words * width)) {
                let column = position - first * WIDTH;
                write(Format::Tiles, coordinates, to, column, width);
            }
        }
    }

    /// Returns the number of tiles of the panel that begins with this tile of even number.
    pub(in crate::simd) const fn together(&self, tile: usize) -> usize {
        if tile + 1 < self.tiles { 2 } else { 1 }
    }
}
