//! Conversions into int8, ternary and BitNet tensors of safetensors, and back.

use crate::files::runs::{floats, line, model, restored, run};
use crate::files::{Folder, Given, le, safetensors, weights};
use half::bf16;
use safetensors::Dtype;
use tercet_core::block;
use tercet_core::block::Format;
use tercet_core::block::bitnet_hf::WeightScale;
use tercet_core::quant::{self, Groups, Rule, ScaleRule, int8};
use tercet_core::scalar;
use tercet_host::convert::{FloatType, Per, Scheme, Target};
use tercet_host::parallel::Threads;
use tercet_host::{
    DType, DequantizeOptions, QuantizeOptions, Reading, TensorFile, compare, dequantize, quantize,
};

#[test]
fn int8_and_ternary_are_those_of_the_reference_engine() {
    let folder = Folder::new();
    let input = model(&folder);
    let values = floats(&input, "a.weight");
    let (rows, cols) = (3, 256);
    let cases = [
        (Per::Tensor, Groups::tensor(768).unwrap(), vec![1]),
        (Per::Row, Groups::rows(rows, cols).unwrap(), vec![3, 1]),
        (
            Per::Block(64),
            Groups::blocks(rows, cols, 64).unwrap(),
            vec![3, 4],
        ),
    ];
    for (per, groups, scale_shape) in cases {
        for kind in ["symmetric", "affine", "ternary", "optimal"] {
            let mut codes = vec![0; 768];
            let mut scales = vec![0.0; groups.count];
            let mut points = vec![0; if kind == "affine" { groups.count } else { 0 }];
            let mut bins = vec![Default::default(); 4096];
            let mut problem =
                scalar::Tensor::new(&values, groups, &mut codes, &mut scales, &mut points).unwrap();
            let mut options = QuantizeOptions::new(Target::Int8);
            match kind {
                "symmetric" => int8::symmetric(&mut problem),
                "affine" => {
                    options.grid = Scheme::Affine;
                    int8::affine(&mut problem)
                }
                _ => {
                    options = QuantizeOptions::new(Target::Ternary);
                    options.rule = Some(if kind == "optimal" {
                        Rule::Optimal
                    } else {
                        Rule::AbsMean
                    });
                    options.scale = ScaleRule::LeastSquares;
                    quant::quantize(
                        &mut problem,
                        quant::Method::ternary(options.rule.unwrap(), options.scale),
                        &mut bins,
                    )
                }
            }
            .unwrap();
            options.per = Some(per);
            let name = format!("{kind}-{}", groups.count);
            let (report, output) = run(
                &input,
                &options,
                &folder.file(&format!("{name}.safetensors")),
            );

            let stored = output.get("a.weight").unwrap();
            assert_eq!((stored.dtype, stored.shape), (DType::I8, &[3, 256][..]));
            assert_eq!(
                stored.bytes,
                codes.iter().map(|&c| c as u8).collect::<Vec<_>>(),
                "{name}"
            );
            let stored = output.get("a.weight_scale").unwrap();
            assert_eq!((stored.dtype, stored.shape), (DType::F32, &scale_shape[..]));
            assert_eq!(stored.bytes, le(&scales));
            let stored = output.get("a.weight_zero_point");
            assert_eq!(
                stored.map(|t| t.bytes.len()),
                (kind == "affine").then_some(groups.count)
            );
            assert_eq!(output.metadata(), input.metadata());

            // Restored from the file: exactly code · scale, and the sidecars are gone.
            let back = restored(&output, &folder.file(&format!("{name}-back.safetensors")));
            assert!(back.get("a.weight_scale").is_none());
            let mut expected = vec![0.0; 768];
            let coded = tercet_core::quant::Codes {
                codes: &codes,
                groups,
                scales: &scales,
                zero_points: &points,
            };
            int8::dequantize(coded, &mut expected).unwrap();
            assert_eq!(floats(&back, "a.weight"), expected);
            let compared = compare(&mut Threads::default(), &input, &output, &()).unwrap();
            let compared = compared
                .tensors
                .iter()
                .find(|t| t.name == "a.weight")
                .unwrap();
            let measured = compared.measures.unwrap();
            assert_eq!(
                line(&report, "a.weight").relative_error,
                Some(measured.relative_error)
            );
        }
    }
}

#[test]
fn bitnet_hf_packs_rows_and_is_read_back_either_way() {
    let folder = Folder::new();
    let path = folder.file("in.safetensors");
    let values = weights(5, 8 * 40);
    let given = [
        Given::f32("w.weight", &[8, 40], &values),
        Given::f32("odd.weight", &[7, 40], &values[..280]),
    ];
    safetensors(&path, &given, &[]);
    let input = TensorFile::open(&path).unwrap();
    let s = block::bitnet_hf::scale(&values).unwrap();
    let mut codes = vec![0; 320];
    block::bitnet_hf::quantize(&values, s, &mut codes).unwrap();
    let mut packed = vec![0; 80];
    block::bitnet_hf::pack(8, 40, &codes, &mut packed).unwrap();
    for meaning in [WeightScale::Divisor, WeightScale::Multiplier] {
        let options = QuantizeOptions {
            weight_scale: meaning,
            force: true,
            ..QuantizeOptions::new(Target::BitnetHf)
        };
        let (report, output) = run(&input, &options, &folder.file("out.safetensors"));
        let stored = output.get("w.weight").unwrap();
        assert_eq!(
            (stored.dtype, stored.shape, stored.bytes),
            (DType::U8, &[2, 40][..], &packed[..])
        );
        assert_eq!(
            output.get("w.weight_scale").unwrap().bytes,
            le(&[meaning.stored(s)])
        );
        let odd = report
            .tensors
            .iter()
            .find(|t| t.name == "odd.weight")
            .unwrap();
        assert!(
            odd.note.as_deref().unwrap().contains("do not divide by 4"),
            "{odd:?}"
        );

        let output = output.with_reading(Reading {
            weight_scale: meaning,
            i2_s: None,
        });
        let back = folder.file("back.safetensors");
        let _ = std::fs::remove_file(&back);
        let back = restored(&output, &back);
        let unit = meaning.unit(meaning.stored(s)).unwrap();
        let expected: Vec<f32> = codes.iter().map(|&code| f32::from(code) * unit).collect();
        assert_eq!(floats(&back, "w.weight"), expected);
        assert_eq!(back.get("w.weight").unwrap().shape, [8, 40]);
    }
}

#[test]
fn restored_values_too_large_for_f16_are_refused() {
    let folder = Folder::new();
    let path = folder.file("in.safetensors");
    let codes = Given::new("w", Dtype::I8, &[4], vec![1, 2, 127, 3]);
    safetensors(&path, &[codes, Given::f32("w_scale", &[1], &[1000.0])], &[]);
    let input = TensorFile::open(&path).unwrap();
    let options = |dtype| DequantizeOptions {
        dtype,
        force: false,
    };
    let error = dequantize(
        &mut Threads::default(),
        &input,
        &options(FloatType::F16),
        &folder.file("out.safetensors"),
        &(),
    );
    let error = error.unwrap_err().to_string();
    assert!(
        error.contains("value 2 is 127000, too large for f16"),
        "{error}"
    );
    dequantize(
        &mut Threads::default(),
        &input,
        &options(FloatType::Bf16),
        &folder.file("out.safetensors"),
        &(),
    )
    .unwrap();
    let output = TensorFile::open(folder.file("out.safetensors")).unwrap();
    let expected = [1000.0, 2000.0, 127_000.0, 3000.0f32];
    let expected: Vec<u8> = expected
        .iter()
        .flat_map(|&x| bf16::from_f32(x).to_le_bytes())
        .collect();
    assert_eq!(output.get("w").unwrap().bytes, expected);
}

#[test]
fn scales_that_do_not_fit_their_codes_are_refused() {
    let folder = Folder::new();
    let path = folder.file("in.safetensors");
    let codes = || Given::new("w", Dtype::I8, &[2, 6], vec![1; 12]);
    let cases = [
        (
            vec![codes(), Given::f32("w_scale", &[3], &[1.0; 3])],
            "does not fit `w`",
        ),
        (
            vec![codes(), Given::f32("w_scale", &[2, 4], &[1.0; 8])],
            "does not fit `w`",
        ),
        (
            vec![codes(), Given::f32("w_scale", &[2, 1], &[1.0, f32::NAN])],
            "scale 1 is not finite",
        ),
        (
            vec![
                codes(),
                Given::f32("w_scale", &[2], &[1.0; 2]),
                Given::new("w_zero_point", Dtype::I8, &[1], vec![0]),
            ],
            "not one int8 for each",
        ),
        (
            vec![
                Given::new("w", Dtype::U8, &[1, 2], vec![0b1100, 0]),
                Given::f32("w_scale", &[1], &[1.0]),
            ],
            "value 2 has code 3",
        ),
        (
            vec![
                Given::new("w", Dtype::U8, &[1, 2], vec![0; 2]),
                Given::f32("w_scale", &[1], &[0.0]),
            ],
            "w_scale",
        ),
    ];
    for (given, expected) in cases {
        safetensors(&path, &given, &[]);
        let input = TensorFile::open(&path).unwrap();
        let out = folder.file("out.safetensors");
        let error = dequantize(
            &mut Threads::default(),
            &input,
            &DequantizeOptions::default(),
            &out,
            &(),
        )
        .unwrap_err();
        assert!(
            error.to_string().contains(expected),
            "{error}\nlacks: {expected}"
        );
        assert_eq!(folder.names(), ["in.safetensors"]);
    }
}

#[test]
fn threads_do_not_show() {
    let folder = Folder::new();
    let path = folder.file("in.safetensors");
    // More than one chunk, and rows longer than one thread's group.
    safetensors(
        &path,
        &[Given::f32("x", &[5, 262_144], &weights(7, 5 * 262_144))],
        &[],
    );
    let input = TensorFile::open(&path).unwrap();
    for target in [Target::Blocks(Format::Tq2_0), Target::Int8, Target::Ternary] {
        let mut seen: Option<(Vec<u8>, Vec<_>)> = None;
        for threads in [1, 2, 5] {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()
                .unwrap();
            let gguf = target == Target::Blocks(Format::Tq2_0);
            let out = folder.file(if gguf { "out.gguf" } else { "out.safetensors" });
            let options = QuantizeOptions {
                rule: (target != Target::Int8).then_some(Rule::Optimal),
                force: true,
                ..QuantizeOptions::new(target)
            };
            let report = pool
                .install(|| quantize(&mut Threads::default(), &input, &options, &out, &()))
                .unwrap();
            let now = (std::fs::read(&out).unwrap(), report.tensors);
            if let Some(first) = &seen {
                assert!(*first == now, "{target} with {threads} threads");
            }
            seen = Some(now);
        }
    }
}
