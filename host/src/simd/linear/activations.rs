//! Activations in a kernel's order.

/// A vector of 64 bytes, where the cache has its lines.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(in crate::simd) struct Line(pub(in crate::simd) [i8; 64]);

/// What the lanes of a sum begin with, where the cache has its lines.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(in crate::simd) struct Start(pub(in crate::simd) [i32; 16]);

/// Activations as a kernel takes them, made once a product.
#[derive(Debug, Default)]
pub(in crate::simd) struct Activations {
    /// How many there are.
    pub(in crate::simd) len: usize,
    /// The activations, in the order of the weights' fields; zeros where there are none.
    pub(in crate::simd) lines: Vec<Line>,
    /// What sums begin with, so that weights can be taken without a sign: of each block by lanes, or one for a row.
    pub(in crate::simd) start: Vec<Start>,
}

impl Activations {
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// Lines of the activations as they lie, the last filled up with zeros.
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
