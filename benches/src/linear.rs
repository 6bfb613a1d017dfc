//! The linear layer: a matrix times one vector.

use crate::peers::naive;
use crate::{blocks, guest};
use tercet_host::measure::{Guest, input};

/// Larger matrices have no naive peer, because it would need four bytes per weight.
const MOST: usize = 1 << 28;

/// Returns the guest that multiplies f32 weights, so it reads several times the bytes.
pub(crate) fn guests(rows: usize, cols: usize) -> Vec<Guest> {
    if rows * cols > MOST {
        return Vec::new();
    }
    let (weights, x) = (input::normals(rows * cols), blocks::floats(cols));
    let mut out = vec![0.0; rows];
    let run = move || naive::dot(&weights, &x, &mut out);
    vec![guest("naive", run)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use tercet_core::block::{self, Format};
    use tercet_core::engine::BlockEngine;
    use tercet_core::quant::{Rule, ScaleRule};
    use tercet_core::scalar::Scalar;

    #[test]
    fn the_naive_product_is_that_of_the_blocks_but_for_their_error() {
        let cols = 4096;
        let (weights, x) = (input::normals(8 * cols), blocks::floats(cols));
        let mut theirs = vec![0.0; 8];
        naive::dot(&weights, &x, &mut theirs);
        for (row, &theirs) in weights.chunks(cols).zip(&theirs) {
            let format = Format::Q8_0;
            let mut bytes = vec![0; format.encoded_len(cols).unwrap()];
            block::encode(format, Rule::AbsMax, ScaleRule::Rule, row, &mut bytes).unwrap();
            let ours = Scalar.dot_blocks(format, &bytes, &input::codes(cols), 0.01);
            let ours = ours.unwrap();
            assert!((ours - theirs).abs() < 3.0, "{ours}, {theirs}");
        }
        assert!(theirs.iter().any(|y| y.abs() > 10.0), "{theirs:?}");
    }
}
