//! The gradient of a matrix with products of codes: an instruction multiplies the codes of some rows in a column by the
//! same rows' codes in an output, and adds.

use tercet_core::train::{GROUP, Inputs, WEIGHT_CEILING, WEIGHT_FLOOR, code, exponent};

use super::{GradientScratch, ScratchLengths};

/// Outputs that are quantized together, because they are adjacent.
pub(super) const STRIP: usize = 16;
/// Outputs that are multiplied with a vector of inputs while it is in a register.
pub(super) const OUTPUTS: usize = 4;
/// Vectors of inputs that are multiplied with them.
pub(super) const VECTORS: usize = 2;

/// A set's products of codes of some rows.
pub(super) trait CodeProducts: Copy {
    /// Rows whose codes are in a lane of 32 bits: two, or four.
    const DEPTH: usize;
    /// Columns per vector.
    const COLUMNS: usize;
    /// What [`CodeProducts::inputs`] adds to each code of an input.
    const OFFSET: i32;
    /// Sums of columns, or lanes of codes.
    type Vector: Copy;
    /// Sums of half as many columns, in 64 bits.
    type Wide: Copy;

    /// Returns the lane of a column, of whose codes the first [`CodeProducts::DEPTH`] count.
    fn inputs(codes: [i8; 4]) -> i32;
    /// Returns the lane of an output.
    fn gradients(codes: [i8; 4]) -> i32;
    /// Returns the same sum in each column.
    fn splat(self, sum: i32) -> Self::Vector;
    /// Loads the first lanes of a slice, which has at least [`CodeProducts::COLUMNS`].
    fn load(self, lanes: &[i32]) -> Self::Vector;
    /// Adds the products of each column's codes with those of an output.
    fn add(self, sums: Self::Vector, inputs: Self::Vector, gradients: i32) -> Self::Vector;
    /// Returns sums of zero.
    fn zero(self) -> Self::Wide;
    /// Adds sums times 2^`shift`.
    fn widen(self, wide: [Self::Wide; 2], sums: Self::Vector, shift: u32) -> [Self::Wide; 2];
    /// Writes sums to the beginning of a slice, as [`CodeProducts::load`].
    fn store(self, sums: Self::Vector, to: &mut [i32]);
    /// Adds sums to the beginning of a slice, which has at least [`CodeProducts::COLUMNS`].
    fn add_to(self, wide: [Self::Wide; 2], to: &mut [i64]);
}

/// Returns the first two codes as a lane.
#[inline(always)]
pub(super) const fn pair([first, second, ..]: [i8; 4]) -> i32 {
    (first as i32 & 0xFFFF) | (second as i32) << 16
}

/// Returns the lanes of a sequence: those of each group start again.
pub(super) fn lanes<P: CodeProducts>(length: usize) -> usize {
    let firsts = (0..length).step_by(GROUP);
    firsts
        .map(|first| GROUP.min(length - first).div_ceil(P::DEPTH))
        .sum()
}

/// Returns the scratch for so many lanes of rows, of so many columns.
pub(super) const fn scratch<P: CodeProducts>(lanes: usize, cols: usize) -> ScratchLengths {
    let wide = P::COLUMNS * VECTORS;
    ScratchLengths {
        inputs: cols
            .div_ceil(wide)
            .saturating_mul(lanes.saturating_mul(wide)),
        gradients: lanes.saturating_mul(STRIP),
        zeros: cols,
    }
}

/// As [`TrainEngine::weight_gradient`](tercet_core::engine::TrainEngine::weight_gradient).
#[inline(always)]
pub(super) fn gradient<P: CodeProducts>(
    products: P,
    dy: &[f32],
    x: &Inputs<'_>,
    room: &mut GradientScratch,
    sums: &mut [i64],
) -> bool {
    let (rows, cols) = (x.scales.len(), x.cols());
    if rows == 0 || cols == 0 {
        return true;
    }
    let outputs = dy.len() / rows;
    let wide = P::COLUMNS * VECTORS;
    let groups: Vec<_> = x.groups().collect();
    // The lanes of each group start again.
    let mut lanes = 0;
    let firsts = groups.iter().map(|group| {
        let first = lanes;
        lanes += group.len().div_ceil(P::DEPTH);
        first
    });
    let firsts: Vec<usize> = firsts.collect();

    // Columns block by block, so that products read one after the other.
    let lengths = scratch::<P>(lanes, cols);
    room.inputs.resize(lengths.inputs, 0);
    room.zeros.resize(lengths.zeros, 0);
    for (group, &first) in groups.iter().zip(&firsts) {
        for (lane, start) in (first..).zip(group.clone().step_by(P::DEPTH)) {
            let [a, b, c, d] = std::array::from_fn(|more| {
                let row = start + more;
                if more < P::DEPTH && row < group.end {
                    &x.codes[row * cols..][..cols]
                } else {
                    &room.zeros[..]
                }
            });
            for (block, column) in (0..cols).step_by(wide).enumerate() {
                let to = &mut room.inputs[(block * lanes + lane) * wide..][..wide];
                let (to, rest) = to.split_at_mut(wide.min(cols - column));
                rest.fill(0);
                let codes = a[column..].iter().zip(&b[column..]);
                let codes = codes.zip(c[column..].iter().zip(&d[column..]));
                for (to, ((&a, &b), (&c, &d))) in to.iter_mut().zip(codes) {
                    *to = P::inputs([a, b, c, d]);
                }
            }
        }
    }

    room.gradients.resize(lengths.gradients, 0);
    let mut within = true;
    let mut shifts = vec![[0u32; STRIP]; groups.len()];
    let mut offsets = vec![[0i32; STRIP]; groups.len()];
    for first in (0..outputs).step_by(STRIP) {
        let width = STRIP.min(outputs - first);
        for (((group, &lane), shifts), offsets) in
            (groups.iter().zip(&firsts).zip(&mut shifts)).zip(&mut offsets)
        {
            let row = |row: usize| {
                let row = &dy[row * outputs + first..][..width];
                row.first_chunk().copied().unwrap_or_else(|| {
                    let mut all = [0.0; STRIP];
                    all[..width].copy_from_slice(row);
                    all
                })
            };
            let mut largest = [0u32; STRIP];
            for at in group.clone() {
                let scale = x.scales[at];
                for (most, dy) in largest.iter_mut().zip(row(at)) {
                    *most = ((dy * scale).to_bits() & 0x7FFF_FFFF).max(*most);
                }
            }
            let mut factors = [0.0; STRIP];
            for ((factor, shift), &most) in factors.iter_mut().zip(shifts.iter_mut()).zip(&largest)
            {
                let found = exponent(most, WEIGHT_FLOOR).filter(|&found| found <= WEIGHT_CEILING);
                within &= found.is_some();
                let found = found.unwrap_or(WEIGHT_CEILING);
                *factor = f32::from_bits(((127 - found) as u32) << 23);
                *shift = (found - WEIGHT_FLOOR) as u32;
            }
            *offsets = [0; STRIP];
            let codes_of = |at: usize| {
                let mut codes = [0i8; STRIP];
                if at < group.end {
                    let scale = x.scales[at];
                    for ((to, dy), &factor) in codes.iter_mut().zip(row(at)).zip(&factors) {
                        *to = code(dy * scale, factor);
                    }
                }
                codes
            };
            let to = room.gradients[lane * STRIP..].as_chunks_mut::<STRIP>().0;
            for (start, to) in group.clone().step_by(P::DEPTH).zip(to) {
                let mut rows = [[0; STRIP]; 4];
                for (more, row) in rows.iter_mut().take(P::DEPTH).enumerate() {
                    *row = codes_of(start + more);
                }
                for output in 0..STRIP {
                    let [a, b, c, d] = [
                        rows[0][output],
                        rows[1][output],
                        rows[2][output],
                        rows[3][output],
                    ];
                    to[output] = P::gradients([a, b, c, d]);
                    let sum = i32::from(a) + i32::from(b) + i32::from(c) + i32::from(d);
                    offsets[output] -= P::OFFSET * sum;
                }
            }
        }
        let gradients = room.gradients.as_chunks::<STRIP>().0;
        for (block, column) in (0..cols).step_by(wide).enumerate() {
            let inputs = &room.inputs[block * lanes * wide..][..lanes * wide];
            for few in (0..width).step_by(OUTPUTS) {
                let mut found = [[[products.zero(); 2]; VECTORS]; OUTPUTS];
                let groups = groups.iter().zip(&firsts);
                for ((group, &lane), (shifts, offsets)) in groups.zip(shifts.iter().zip(&offsets)) {
                    let count = group.len().div_ceil(P::DEPTH);
                    let inputs = &inputs[lane * wide..][..count * wide];
                    let gradients = &gradients[lane..][..count];
                    let sums = sums_of(products, gradients, inputs, few, offsets);
                    for ((found, sums), &shift) in found.iter_mut().zip(sums).zip(&shifts[few..]) {
                        for (found, sums) in found.iter_mut().zip(sums) {
                            *found = products.widen(*found, sums, shift);
                        }
                    }
                }
                for (output, found) in (first + few..first + width).zip(found) {
                    let to = &mut sums[output * cols..][..cols][column..];
                    for (to, found) in to.chunks_mut(P::COLUMNS).zip(found) {
                        if to.len() == P::COLUMNS {
                            products.add_to(found, to);
                            continue;
                        }
                        let mut own = [0; 16];
                        products.add_to(found, &mut own);
                        for (to, own) in to.iter_mut().zip(own) {
                            *to += own;
                        }
                    }
                }
            }
        }
    }
    within
}

/// Computes the sums of some outputs and columns over a group, which begin with the outputs' offsets. They are below
/// 2³¹: 64 products of 127 and 127, or 255.
#[inline(always)]
pub(super) fn sums_of<P: CodeProducts>(
    products: P,
    gradients: &[[i32; STRIP]],
    inputs: &[i32],
    few: usize,
    offsets: &[i32; STRIP],
) -> [[P::Vector; VECTORS]; OUTPUTS] {
    // Loops, since what closures do might not be inlined.
    let mut sums = [[products.splat(0); VECTORS]; OUTPUTS];
    for (sums, &offset) in sums.iter_mut().zip(&offsets[few..]) {
        *sums = [products.splat(offset); VECTORS];
    }
    let inputs = inputs.chunks_exact(P::COLUMNS * VECTORS);
    for (inputs, gradients) in inputs.zip(gradients) {
        let mut vectors = [products.splat(0); VECTORS];
        for (vector, inputs) in vectors.iter_mut().zip(inputs.chunks_exact(P::COLUMNS)) {
            *vector = products.load(inputs);
        }
        for (sums, &gradients) in sums.iter_mut().zip(&gradients[few..]) {
            for (sum, &inputs) in sums.iter_mut().zip(&vectors) {
                *sum = products.add(*sum, inputs, gradients);
            }
        }
    }
    sums
}
