//! int8 quantizers against ONNX Runtime's `QuantizeLinear`.

use crate::support;
use std::fs;

use crate::support::data::{Draw, Kind, write_f32};
use tercet_core::number::Random;
use tercet_core::quant::{Grid, Groups, int8};
use tercet_core::scalar::Tensor;

const ROWS: usize = 1153;
const COLS: usize = 1021;

/// Where the grids come from.
#[derive(Clone, Copy, Debug)]
enum Grids {
    Symmetric,
    Affine,
    /// Drawn: from far too fine to far too coarse, with any zero point.
    Drawn,
}

/// What one quantization made.
struct Made {
    codes: Vec<i8>,
    scales: Vec<f32>,
    zero_points: Vec<i8>,
}

fn quantize(values: &[f32], groups: Groups, grids: Grids) -> Made {
    let mut made = Made {
        codes: vec![99; values.len()],
        scales: vec![0.0; groups.count],
        zero_points: vec![0; groups.count],
    };
    let Made {
        codes,
        scales,
        zero_points,
    } = &mut made;
    match grids {
        Grids::Symmetric | Grids::Affine => {
            let mut tensor = Tensor::new(values, groups, codes, scales, zero_points).unwrap();
            match grids {
                Grids::Symmetric => int8::symmetric(&mut tensor).unwrap(),
                _ => int8::affine(&mut tensor).unwrap(),
            };
        }
        Grids::Drawn => {
            let mut draw = Draw(Random::new(11));
            let rows = values
                .chunks_exact(groups.len)
                .zip(codes.chunks_exact_mut(groups.len));
            for (row, (values, codes)) in rows.enumerate() {
                let largest = values.iter().fold(0f32, |max, x| max.max(x.abs()));
                let scale = largest / (draw.unit() * 10.0).exp2() as f32;
                let grid = Grid {
                    scale: scale.max(f32::MIN_POSITIVE),
                    zero_point: draw.0.next_u64() as i8,
                    low: -128,
                    high: 127,
                };
                let (scale, point) = (&mut scales[row..=row], &mut zero_points[row..=row]);
                let one = Groups {
                    count: 1,
                    len: groups.len,
                };
                let mut tensor = Tensor::new(values, one, codes, scale, point).unwrap();
                int8::fixed(&mut tensor, grid).unwrap();
            }
        }
    }
    made
}

#[test]
fn codes_equal_onnxruntime_quantize_linear() {
    let Some(python) = support::python_with(&["numpy", "onnx", "onnxruntime"]) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let (mut args, mut cases) = (Vec::new(), Vec::new());
    // A tensor of zeros has scale 0, by which ONNX would divide.
    for kind in Kind::ALL.into_iter().filter(|&kind| kind != Kind::Zero) {
        let values = kind.values(ROWS * COLS, 127.0, COLS);
        let source = folder.path().join(format!("{kind:?}"));
        write_f32(&source, &values);
        for (name, groups) in [
            (
                "tensor",
                Groups {
                    count: 1,
                    len: ROWS * COLS,
                },
            ),
            (
                "row",
                Groups {
                    count: ROWS,
                    len: COLS,
                },
            ),
        ] {
            for grids in [Grids::Symmetric, Grids::Affine, Grids::Drawn] {
                let made = quantize(&values, groups, grids);
                let file = |what| {
                    folder
                        .path()
                        .join(format!("{kind:?}-{name}-{grids:?}.{what}"))
                };
                write_f32(&file("scales"), &made.scales);
                let points: Vec<u8> = made.zero_points.iter().map(|&z| z as u8).collect();
                fs::write(file("points"), points).unwrap();
                args.extend([ROWS.to_string().into(), COLS.to_string().into()]);
                args.push(source.clone().into_os_string());
                args.extend(["scales", "points", "codes"].map(|what| file(what).into_os_string()));
                cases.push((
                    format!("{kind:?} by {name}, {grids:?}"),
                    grids,
                    made,
                    file("codes"),
                ));
            }
        }
    }
    support::run(&python, "int8.py", args);
    let (mut elements, mut mismatches) = (0, 0);
    for (name, grids, made, path) in cases {
        let codes = &made.codes;
        let theirs = fs::read(path).unwrap();
        assert_eq!(theirs.len(), codes.len());
        let (mut compared, mut wrong) = (0, 0);
        let len = codes.len() / made.scales.len();
        let groups = codes.chunks_exact(len).zip(theirs.chunks_exact(len));
        for ((codes, theirs), (&scale, &point)) in
            groups.zip(made.scales.iter().zip(&made.zero_points))
        {
            if scale == 0.0 {
                // max|x| / 127 rounds to 0: ONNX divides by it, Tercet makes zeros.
                assert!(codes.iter().all(|&code| code == point));
            } else {
                compared += len;
                // A subnormal scale can be so coarse that x / scale passes 127.5. The symmetric grid ends at
                // −127 there, ONNX at −128.
                let coarse = scale < f32::MIN_POSITIVE && matches!(grids, Grids::Symmetric);
                let lowest = if coarse { -127 } else { -128 };
                let theirs = theirs.iter().map(|&code| (code as i8).max(lowest));
                wrong += codes.iter().zip(theirs).filter(|&(&a, b)| a != b).count();
            }
        }
        println!("int8 {name}: {compared} elements compared, {wrong} differ");
        elements += compared;
        mismatches += wrong;
    }
    println!("onnxruntime: {elements} elements compared, {mismatches} differ");
    assert_eq!(mismatches, 0);
}
