//! GGUF blocks.

use tercet_core::block::Format;
use tercet_core::engine::BlockEngine;
use tercet_core::quant::{Rule, ScaleRule};
use tercet_host::parallel::Threads;

use super::{Case, codes, normals};

/// Weights, in rows of this many for products.
const VALUES: usize = 1 << 13;
const ROW: usize = 1 << 10;

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for format in Format::ALL {
        let values = normals(VALUES);
        let mut bytes = vec![0; format.encoded_len(VALUES).expect("whole blocks")];
        encode(format, Rule::AbsMax, &values, &mut bytes);
        let (mut out, encoded) = (bytes.clone(), bytes);
        let of_dot = encoded.clone();
        cases.push(Case::new("encode", format.name(), VALUES, move || {
            encode(format, Rule::AbsMax, &values, &mut out);
        }));
        let mut out = vec![0.0; VALUES];
        cases.push(Case::new("decode", format.name(), VALUES, move || {
            let done = Threads::default().decode_blocks(format, &encoded, &mut out);
            done.expect("bytes that were encoded");
        }));
        let x = codes(ROW, -127, 127);
        cases.push(Case::new("dot", format.name(), VALUES, move || {
            for row in of_dot.chunks(of_dot.len() / (VALUES / ROW)) {
                let dot = Threads::default().dot_blocks(format, row, &x, 0.01);
                std::hint::black_box(dot.expect("a row"));
            }
        }));
    }
    let values = normals(VALUES);
    let format = Format::Tq2_0;
    let mut out = vec![0; format.encoded_len(VALUES).expect("whole blocks")];
    cases.push(Case::new("encode", "tq2_0,optimal", VALUES, move || {
        encode(format, Rule::Optimal, &values, &mut out);
    }));
    cases
}

fn encode(format: Format, rule: Rule, values: &[f32], out: &mut [u8]) {
    let done = Threads::default().encode_blocks(format, rule, ScaleRule::Rule, values, out);
    done.expect("finite values");
}
