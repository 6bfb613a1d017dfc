//! Activations that are normalized and quantized, against NumPy.

use crate::support;
use crate::support::data::write_f32;
use std::fs;

use tercet_core::engine::QuantizeEngine;
use tercet_core::number::Random;
use tercet_core::quant::activations::{Activations, Norm};
use tercet_host::parallel::Threads;

/// Values of each shape.
const VALUES: usize = 1 << 18;

#[test]
fn codes_and_scales_equal_numpys() {
    let Some(python) = support::python_with(&["numpy"]) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let mut random = Random::new(51);
    for cols in [1usize, 63, 256, 576, 2048, 65_536] {
        let rows = (VALUES / cols).max(2);
        let x: Vec<f32> = (0..rows)
            .flat_map(|row| {
                let unit = 2f32.powi(row as i32 % 30 - 15);
                let values: Vec<f32> = (0..cols).map(|_| random.signed_f32() * unit).collect();
                values
            })
            .collect();
        let gains: Vec<f32> = (0..cols).map(|_| 1.0 + 0.5 * random.signed_f32()).collect();
        write_f32(&path("x"), &x);
        write_f32(&path("gains"), &gains);
        for (limit, eps) in [("127", "1e-5"), ("32512", "1e-6"), ("32512", "0")] {
            let numbers = [limit.to_owned(), eps.to_owned(), cols.to_string()];
            let files = ["x", "gains", "codes", "scales"].map(|name| path(name).into_os_string());
            let args = numbers.into_iter().map(Into::into).chain(files);
            support::run(&python, "activations.py", args);

            let norm = Norm {
                gains: &gains,
                eps: eps.parse().unwrap(),
            };
            let (mut a8, mut a16) = (vec![0i8; x.len()], vec![0i16; x.len()]);
            let mut scales = vec![0.0; rows];
            let out = match limit {
                "127" => Activations::A8(&mut a8),
                _ => Activations::A16(&mut a16),
            };
            let mut threads = Threads::default();
            threads
                .norm_quantize(&x, Some(norm), out, &mut scales)
                .unwrap();
            if limit == "127" {
                a16 = a8.into_iter().map(i16::from).collect();
            }
            let codes: Vec<u8> = a16.iter().flat_map(|code| code.to_le_bytes()).collect();
            assert!(codes == fs::read(path("codes")).unwrap(), "codes of {cols}");
            let scales: Vec<u8> = scales
                .iter()
                .flat_map(|scale| scale.to_le_bytes())
                .collect();
            assert!(
                scales == fs::read(path("scales")).unwrap(),
                "scales of {cols}"
            );
        }
    }
}
