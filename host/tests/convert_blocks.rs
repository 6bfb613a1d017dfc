//! Conversions into GGUF blocks: what comes out and what survives.

use crate::files::runs::{floats, line, model, restored, run};
use crate::files::{Folder, Given, le, raw_npy, safetensors, weights};
use half::{bf16, f16};
use safetensors::Dtype;
use tercet_core::block::{self, Format};
use tercet_core::quant::{Rule, ScaleRule};
use tercet_host::convert::Target;
use tercet_host::parallel::Threads;
use tercet_host::{
    DType, DequantizeOptions, QuantizeOptions, TensorFile, compare, dequantize, quantize,
};

const BLOCK_TARGETS: [(Target, Format); 5] = [
    (Target::Blocks(Format::Tq1_0), Format::Tq1_0),
    (Target::Blocks(Format::Tq2_0), Format::Tq2_0),
    (Target::Blocks(Format::Q2_0), Format::Q2_0),
    (Target::Blocks(Format::Q8_0), Format::Q8_0),
    (Target::Blocks(Format::Q4_0), Format::Q4_0),
];

#[test]
fn gguf_blocks_are_those_of_the_codec() {
    let folder = Folder::new();
    let input = model(&folder);
    for (target, format) in BLOCK_TARGETS {
        let out = folder.file(&format!("{target}.gguf"));
        let (report, output) = run(&input, &QuantizeOptions::new(target), &out);
        for name in ["a.weight", "b.weight"] {
            assert_eq!(line(&report, name).to, format.name());
            let values = floats(&input, name);
            let mut expected = vec![0; format.encoded_len(values.len()).unwrap()];
            block::encode(
                format,
                Rule::AbsMax,
                ScaleRule::Rule,
                &values,
                &mut expected,
            )
            .unwrap();
            let tensor = output.get(name).unwrap();
            assert_eq!(tensor.dtype, DType::Block(format));
            assert_eq!(tensor.shape, input.get(name).unwrap().shape);
            assert_eq!(tensor.bytes, expected, "{name} as {target}");
        }
        for name in ["norm.weight", "ids"] {
            let (before, after) = (input.get(name).unwrap(), output.get(name).unwrap());
            assert_eq!(
                (before.bytes, before.dtype, before.shape),
                (after.bytes, after.dtype, after.shape)
            );
        }
        let metadata = output.metadata();
        let value = |key: &str| &*metadata.iter().find(|(k, _)| k == key).expect(key).1;
        assert_eq!(value("general.architecture"), "tercet");
        assert_eq!(value("safetensors.format"), "pt");

        // Back: the decoder's floats, the rest untouched, the metadata under its own key.
        let back = restored(&output, &folder.file(&format!("{target}.safetensors")));
        let mut expected = vec![0.0; 768];
        block::decode(format, output.get("a.weight").unwrap().bytes, &mut expected).unwrap();
        assert_eq!(floats(&back, "a.weight"), expected);
        assert_eq!(
            back.get("ids").unwrap().bytes,
            input.get("ids").unwrap().bytes
        );
        assert!(back.metadata().contains(&("format".into(), "pt".into())));

        // `compare` restores on the fly and agrees with the report.
        let compared = compare(&mut Threads::default(), &input, &output, &()).unwrap();
        for (reported, compared) in report.tensors.iter().zip(&compared.tensors) {
            let measured = compared
                .measures
                .map(|m| m.relative_error)
                .filter(|_| reported.note.is_none());
            assert_eq!(reported.relative_error, measured);
        }
    }
}

#[test]
fn rows_that_blocks_do_not_divide_go_the_way_of_llama_cpp() {
    let folder = Folder::new();
    let path = folder.file("in.safetensors");
    let given = [
        Given::f32("r256", &[2, 256], &weights(1, 512)),
        Given::f32("r64", &[2, 64], &weights(2, 128)),
        Given::f32("r32", &[2, 32], &weights(3, 64)),
        Given::f32("r30", &[2, 30], &weights(4, 60)),
    ];
    safetensors(&path, &given, &[]);
    let input = TensorFile::open(&path).unwrap();
    let expected = [
        (
            Target::Blocks(Format::Tq2_0),
            ["tq2_0", "q4_0", "q4_0", "f16"],
        ),
        (
            Target::Blocks(Format::Tq1_0),
            ["tq1_0", "q4_0", "q4_0", "f16"],
        ),
        (
            Target::Blocks(Format::Q2_0),
            ["q2_0", "q2_0", "q4_0", "f16"],
        ),
        (
            Target::Blocks(Format::Q4_0),
            ["q4_0", "q4_0", "q4_0", "f16"],
        ),
        (
            Target::Blocks(Format::Q8_0),
            ["q8_0", "q8_0", "q8_0", "f16"],
        ),
    ];
    for (target, types) in expected {
        let out = folder.file(&format!("{target}.gguf"));
        let (report, output) = run(&input, &QuantizeOptions::new(target), &out);
        for (name, to) in ["r256", "r64", "r32", "r30"].into_iter().zip(types) {
            let line = report
                .tensors
                .iter()
                .find(|line| line.name == name)
                .unwrap();
            assert_eq!(line.to, to, "{name} as {target}");
            assert_eq!(line.note.is_some(), to != target.name(), "{line:?}");
            assert_eq!(output.get(name).unwrap().dtype.name(), to);
        }
        let r30: Vec<u8> = weights(4, 60)
            .iter()
            .flat_map(|&x| f16::from_f32(x).to_le_bytes())
            .collect();
        assert_eq!(output.get("r30").unwrap().bytes, r30);
    }
}

#[test]
fn auto_keeps_its_budget_and_spends_it() {
    let folder = Folder::new();
    let path = folder.file("in.safetensors");
    let large: Vec<f32> = weights(2, 4 * 1024).iter().map(|x| x * 100.0).collect();
    let given = [
        Given::f32("small", &[4, 1024], &weights(1, 4 * 1024)),
        Given::f32("large", &[4, 1024], &large),
        Given::f32("norm", &[16], &weights(3, 16)),
    ];
    safetensors(&path, &given, &[]);
    let input = TensorFile::open(&path).unwrap();
    let auto = |bits| QuantizeOptions {
        bits: Some(bits),
        force: true,
        ..QuantizeOptions::new(Target::Auto)
    };
    let out = folder.file("out.gguf");
    let mut last = f64::INFINITY;
    for bits in [1.6875, 2.1, 3.4, 5.1, 8.5, 16.0] {
        let (report, output) = run(&input, &auto(bits), &out);
        assert!(
            report.bits_per_weight <= bits,
            "{} > {bits}",
            report.bits_per_weight
        );
        let total = compare(&mut Threads::default(), &input, &output, &())
            .unwrap()
            .total
            .unwrap();
        assert!(total.mse <= last, "{bits} bits: {} > {last}", total.mse);
        last = total.mse;
    }
    // Ten thousand times the energy: the bits go to the large tensor.
    let (report, _) = run(&input, &auto(5.1), &out);
    let bits = |name| {
        report
            .tensors
            .iter()
            .find(|t| t.name == name)
            .unwrap()
            .bits_per_weight
    };
    assert!(bits("large") > bits("small"));
    let error = quantize(&mut Threads::default(), &input, &auto(1.5), &out, &())
        .unwrap_err()
        .to_string();
    assert!(error.contains("1.5 bits per weight"), "{error}");
}

#[test]
fn bf16_and_f64_are_quantized_as_their_f32() {
    let folder = Folder::new();
    let (values, out) = (weights(9, 512), folder.file("out.gguf"));
    let rounded: Vec<f32> = values.iter().map(|&x| bf16::from_f32(x).to_f32()).collect();
    let given = [
        Given::new(
            "bf16",
            Dtype::BF16,
            &[2, 256],
            rounded
                .iter()
                .flat_map(|&x| bf16::from_f32(x).to_le_bytes())
                .collect(),
        ),
        Given::new(
            "f64",
            Dtype::F64,
            &[2, 256],
            values
                .iter()
                .flat_map(|&x| (f64::from(x) + 1e-12).to_le_bytes())
                .collect(),
        ),
    ];
    let path = folder.file("in.safetensors");
    safetensors(&path, &given, &[]);
    let input = TensorFile::open(&path).unwrap();
    let (_, output) = run(
        &input,
        &QuantizeOptions::new(Target::Blocks(Format::Q8_0)),
        &out,
    );
    let as_f32: Vec<f32> = values
        .iter()
        .map(|&x| (f64::from(x) + 1e-12) as f32)
        .collect();
    for (name, values) in [("bf16", rounded), ("f64", as_f32)] {
        let mut expected = vec![0; Format::Q8_0.encoded_len(512).unwrap()];
        block::encode(
            Format::Q8_0,
            Rule::AbsMax,
            ScaleRule::Rule,
            &values,
            &mut expected,
        )
        .unwrap();
        assert_eq!(output.get(name).unwrap().bytes, expected, "{name}");
    }
}

#[test]
fn a_gguf_model_keeps_its_metadata_and_what_is_quantized_stays() {
    let folder = Folder::new();
    let input = model(&folder);
    let first = folder.file("first.gguf");
    let options = QuantizeOptions {
        include: vec!["a.*".into()],
        ..QuantizeOptions::new(Target::Blocks(Format::Tq1_0))
    };
    let (_, once) = run(&input, &options, &first);
    let (report, twice) = run(
        &once,
        &QuantizeOptions::new(Target::Blocks(Format::Q8_0)),
        &folder.file("second.gguf"),
    );
    assert_eq!(
        line(&report, "a.weight").note.as_deref(),
        Some("quantized already")
    );
    assert_eq!(
        twice.get("a.weight").unwrap().bytes,
        once.get("a.weight").unwrap().bytes
    );
    assert_eq!(
        twice.get("b.weight").unwrap().dtype,
        DType::Block(Format::Q8_0)
    );
    let without = |model: &TensorFile| -> Vec<_> {
        let pairs = model.metadata().iter().cloned();
        pairs
            .filter(|(key, _)| key != "general.file_type")
            .collect()
    };
    assert_eq!(without(&twice), without(&once));
}

#[test]
fn one_array_goes_to_npy_and_several_do_not() {
    let folder = Folder::new();
    let path = folder.file("w.npy");
    let values = weights(4, 512);
    let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 256), }\n";
    raw_npy(&path, header, &le(&values));
    let input = TensorFile::open(&path).unwrap();
    let (_, output) = run(
        &input,
        &QuantizeOptions::new(Target::Blocks(Format::Tq2_0)),
        &folder.file("w.gguf"),
    );
    let back = restored(&output, &folder.file("back.npy"));
    let mut expected = vec![0.0; 512];
    block::decode(Format::Tq2_0, output.get("w").unwrap().bytes, &mut expected).unwrap();
    let tensor = back.tensors().next().unwrap();
    assert_eq!((tensor.name, tensor.shape), ("back", &[2, 256][..]));
    assert_eq!(tensor.bytes, le(&expected));

    let error = dequantize(
        &mut Threads::default(),
        &model(&folder),
        &DequantizeOptions::default(),
        &folder.file("many.npy"),
        &(),
    );
    let error = error.unwrap_err().to_string();
    assert!(error.contains("the model has 4 tensors"), "{error}");
}
