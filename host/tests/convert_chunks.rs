//! Tensors of several chunks, whose groups and rows end elsewhere than chunks do: neither shows in a bit, nor in a
//! measure.

use crate::files::runs::{line, run};
use crate::files::{Folder, Given, le, safetensors, weights};
use tercet_core::block::bitnet_hf;
use tercet_core::engine::MagnitudeBin;
use tercet_core::palette::{self, IndexMatrix, Output, Palette, Width};
use tercet_core::quant::{self, Codes, Groups, Method, Rule, ScaleRule, int8};
use tercet_core::scalar;
use tercet_host::convert::{Per, Scheme, Target};
use tercet_host::parallel::compare;
use tercet_host::{QuantizeOptions, TensorFile};

/// A model of one matrix `w`, and its values.
fn input(folder: &Folder, rows: usize, cols: usize) -> (TensorFile, Vec<f32>) {
    let values = weights((rows * cols) as u64, rows * cols);
    let path = folder.file(&format!("{rows}x{cols}.safetensors"));
    safetensors(&path, &[Given::f32("w", &[rows, cols], &values)], &[]);
    (TensorFile::open(&path).unwrap(), values)
}

/// Converts, and checks the bytes of `w` and of the tensors beside it, and the error that is reported against
/// `restored`.
fn check(
    folder: &Folder,
    (model, values): &(TensorFile, Vec<f32>),
    options: QuantizeOptions,
    tensors: &[(&str, Vec<u8>)],
    restored: &[f32],
) {
    let options = QuantizeOptions {
        force: true,
        ..options
    };
    let (report, output) = run(model, &options, &folder.file("out.safetensors"));
    for (suffix, bytes) in tensors {
        let stored = output.get(&format!("w{suffix}")).unwrap();
        assert!(stored.bytes == bytes, "w{suffix}: {options:?}");
    }
    let measures = compare(values, restored).unwrap().finish().unwrap();
    let found = line(&report, "w").relative_error;
    assert_eq!(found, Some(measures.relative_error), "{options:?}");
}

fn bytes(codes: &[i8]) -> Vec<u8> {
    codes.iter().map(|&code| code as u8).collect()
}

#[test]
fn codes_are_those_of_the_reference_engine() {
    let folder = Folder::new();
    let (optimal, least) = (Rule::Optimal, ScaleRule::LeastSquares);
    let ternary = |rule, scale_rule| Method::Ternary { rule, scale_rule };
    let methods = [
        Method::Symmetric { limit: int8::LIMIT },
        Method::Affine,
        ternary(Rule::AbsMean, ScaleRule::Rule),
        ternary(optimal, least),
    ];
    // Short groups, of which no whole number makes a chunk; long ones that straddle its end; one.
    let shapes = [
        (240, 4_999, Per::Row),
        (16, 70_001, Per::Row),
        (7, 150_001, Per::Tensor),
    ];
    for (rows, cols, per) in shapes {
        let given = input(&folder, rows, cols);
        let groups = match per {
            Per::Tensor => Groups::tensor(rows * cols),
            _ => Groups::rows(rows, cols),
        };
        let groups = groups.unwrap();
        for method in methods {
            let mut codes = vec![0; rows * cols];
            let mut scales = vec![0.0; groups.count];
            let count = usize::from(method == Method::Affine) * groups.count;
            let mut zero_points = vec![0; count];
            let mut problem =
                scalar::Tensor::new(&given.1, groups, &mut codes, &mut scales, &mut zero_points)
                    .unwrap();
            let mut bins = vec![MagnitudeBin::EMPTY; 4096];
            quant::quantize(&mut problem, method, &mut bins).unwrap();
            let mut restored = vec![0.0; rows * cols];
            let made = Codes {
                groups,
                codes: &codes,
                scales: &scales,
                zero_points: &zero_points,
            };
            int8::dequantize(made, &mut restored).unwrap();
            let target = match method {
                Method::Ternary { .. } => Target::Ternary,
                _ => Target::Int8,
            };
            let mut options = QuantizeOptions {
                per: Some(per),
                ..QuantizeOptions::new(target)
            };
            match method {
                Method::Ternary { rule, scale_rule } => {
                    (options.rule, options.scale) = (Some(rule), scale_rule);
                }
                Method::Affine => options.grid = Scheme::Affine,
                _ => {}
            }
            let mut tensors = vec![("", bytes(&codes)), ("_scale", le(&scales))];
            if count > 0 {
                tensors.push(("_zero_point", bytes(&zero_points)));
            }
            check(&folder, &given, options, &tensors, &restored);
        }
    }
}

#[test]
fn palettes_are_those_of_the_reference_engine() {
    let folder = Folder::new();
    // Rows that fill no whole bytes, in short groups, the last of them shorter; in one long group; long groups of
    // whole bytes; rows of more than a chunk.
    for (rows, cols, per, group_rows) in [
        (1_201, 1_001, Per::Rows(3), 3),
        (1_201, 1_001, Per::Tensor, 1_201),
        (700, 2_048, Per::Rows(300), 300),
        (2, 1_100_003, Per::Tensor, 2),
    ] {
        let given = input(&folder, rows, cols);
        let layout =
            IndexMatrix::with_rows(Width::new(3).unwrap(), rows, cols, group_rows).unwrap();
        let mut indices = vec![0; layout.index_bytes()];
        let mut codebooks = vec![0; layout.codebook_len()];
        let mut scales = vec![0.0; layout.groups()];
        let out = Output {
            indices: &mut indices,
            codebooks: &mut codebooks,
            scales: &mut scales,
        };
        let mut scratch = vec![0; layout.scratch_len()];
        palette::encode(&layout, &given.1, &[], out, &mut scratch).unwrap();
        let made = Palette {
            layout,
            indices: &indices,
            codebooks: &codebooks,
            scales: &scales,
        };
        let mut restored = vec![0.0; rows * cols];
        palette::decode(&made, &mut restored).unwrap();
        let options = QuantizeOptions {
            per: Some(per),
            ..QuantizeOptions::new(Target::Palette(layout.width()))
        };
        let tensors = [
            ("", indices.clone()),
            ("_palette", bytes(&codebooks)),
            ("_palette_scale", le(&scales)),
        ];
        check(&folder, &given, options, &tensors, &restored);
    }
}

#[test]
fn packed_rows_are_those_of_the_rule() {
    let folder = Folder::new();
    let (rows, cols) = (1_204, 1_001);
    let given = input(&folder, rows, cols);
    let s = bitnet_hf::scale(&given.1).unwrap();
    let mut codes = vec![0; rows * cols];
    bitnet_hf::quantize(&given.1, s, &mut codes).unwrap();
    let mut packed = vec![0; rows * cols / 4];
    bitnet_hf::pack(rows, cols, &codes, &mut packed).unwrap();
    let unit = bitnet_hf::WeightScale::Divisor.unit(s).unwrap();
    let restored: Vec<f32> = codes.iter().map(|&code| f32::from(code) * unit).collect();
    let options = QuantizeOptions::new(Target::BitnetHf);
    check(&folder, &given, options, &[("", packed)], &restored);
}
