//! Activations in a kernel's order.

/// A vector of 64 bytes, on a cache line.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(in crate::simd) struct Line(pub(in crate::simd) [i8; 64]);

/// The initial lanes of a sum, on a cache line.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(in crate::simd) struct Start(pub(in crate::simd) [i32; 16]);

/// Activations in the form of a kernel, made once per product.
#[derive(Debug, Default)]
pub(in crate::simd) struct Activations {
    /// Number of activations.
    pub(in crate::simd) len: usize,
    /// The activations, in the order of the weights' fields, padded with zeros.
    pub(in crate::simd) lines: Vec<Line>,
    /// Initial sums, so that weights can be unsigned: for each block by lanes, or one for a row.
    pub(in crate::simd) start: Vec<Start>,
}

impl Activations {
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// Stores the activations in order, with the last line padded with zeros.
    pub(in crate::simd) fn set(&mut self, x: &[i8]) {
        self.len = x.len();
        let (whole, rest) = x.as_chunks();
        self.lines.clear();
        self.lines.extend(whole.iter().map(|&line| Line(line)));
        if !rest.is_empty() {
            let mut line = [0; 64];
            line[..rest.len()].copy_from_slice(rest);
            self.lines.push(Line(line));
        }
    }
}
