//! Conversions into palettes of safetensors, and back.

use crate::files::runs::{floats, line, model, restored, run};
use crate::files::{Folder, Given, le, safetensors, weights};
use half::f16;
use safetensors::Dtype;
use tercet_core::block::Format;
use tercet_core::palette::{self, IndexMatrix, MAX_WEIGHT, Output, Palette, Width};
use tercet_host::convert::{Per, Target};
use tercet_host::parallel::Threads;
use tercet_host::{DType, Error, QuantizeOptions, TensorFile, compare, inspect, quantize};

fn options(bits: u8, per: Per) -> QuantizeOptions {
    QuantizeOptions {
        per: Some(per),
        force: true,
        ..QuantizeOptions::new(Target::Palette(Width::new(bits).unwrap()))
    }
}

/// The file's four tensors as the reference engine makes them, and the values they stand for.
struct Expected {
    indices: Vec<u8>,
    codebooks: Vec<u8>,
    scales: Vec<f32>,
    values: Vec<f32>,
}

fn expected(layout: IndexMatrix, values: &[f32], importances: &[u32]) -> Expected {
    let mut indices = vec![0; layout.index_bytes()];
    let mut codebooks = vec![0; layout.codebook_len()];
    let mut scales = vec![0.0; layout.groups()];
    let out = Output {
        indices: &mut indices,
        codebooks: &mut codebooks,
        scales: &mut scales,
    };
    let mut scratch = vec![0; layout.scratch_len()];
    palette::encode(&layout, values, importances, out, &mut scratch).unwrap();
    let made = Palette {
        layout,
        indices: &indices,
        codebooks: &codebooks,
        scales: &scales,
    };
    let mut restored = vec![0.0; values.len()];
    palette::decode(&made, &mut restored).unwrap();
    Expected {
        codebooks: codebooks.iter().map(|&entry| entry as u8).collect(),
        indices,
        scales,
        values: restored,
    }
}

/// Checks a tensor of a written file against the reference engine.
fn check(
    output: &TensorFile,
    name: &str,
    layout: IndexMatrix,
    shape: &[usize],
    expected: &Expected,
) {
    let part = |suffix: &str| output.get(&format!("{name}{suffix}")).unwrap();
    let stored = part("");
    let (_, outer) = shape.split_last().unwrap();
    assert_eq!(stored.dtype, DType::U8);
    assert_eq!(stored.shape, [outer, &[layout.row_bytes()]].concat());
    assert_eq!(stored.bytes, expected.indices, "{name}");
    let stored = part("_palette");
    let entries = layout.width().entries();
    assert_eq!(
        (stored.dtype, stored.shape),
        (DType::I8, &[layout.groups(), entries][..])
    );
    assert_eq!(stored.bytes, expected.codebooks);
    let stored = part("_palette_scale");
    assert_eq!(
        (stored.dtype, stored.shape),
        (DType::F32, &[layout.groups()][..])
    );
    assert_eq!(stored.bytes, le(&expected.scales));
    let stored = part("_palette_shape");
    assert_eq!(
        (stored.dtype, stored.shape),
        (DType::I64, &[shape.len()][..])
    );
    let dims: Vec<u8> = shape
        .iter()
        .flat_map(|&dim| (dim as i64).to_le_bytes())
        .collect();
    assert_eq!(stored.bytes, dims);
}

#[test]
fn files_hold_the_bits_of_the_reference_engine_and_come_back() {
    let folder = Folder::new();
    let path = folder.file("in.safetensors");
    // 90,000 values are more than one thread takes; rows of 300 and 7 do not end on whole bytes.
    let shapes: [(&str, &[usize]); 4] = [
        ("a", &[300, 300]),
        ("b", &[4, 5, 7]),
        ("c", &[1, 1]),
        ("d", &[9, 64]),
    ];
    let given: Vec<Given> = (shapes.iter().enumerate())
        .map(|(seed, (name, shape))| {
            Given::f32(name, shape, &weights(seed as u64, shape.iter().product()))
        })
        .collect();
    safetensors(&path, &given, &[("format", "pt")]);
    let input = TensorFile::open(&path).unwrap();
    for bits in 1..=8 {
        for per in [Per::Tensor, Per::Row, Per::Rows(3), Per::Rows(1000)] {
            let out = folder.file("out.safetensors");
            let (report, output) = run(&input, &options(bits, per), &out);
            assert_eq!(output.metadata(), input.metadata());
            let back = restored(
                &output,
                &folder.file(&format!("back-{bits}-{per:?}.safetensors")),
            );
            assert_eq!(back.tensors().len(), 4);
            let compared = compare(&mut Threads::default(), &input, &output, &()).unwrap();
            for (name, shape) in shapes {
                let (cols, outer) = shape.split_last().unwrap();
                let rows = outer.iter().product();
                let group = match per {
                    Per::Row => 1,
                    Per::Rows(rows) => rows,
                    _ => rows,
                };
                let layout =
                    IndexMatrix::with_rows(Width::new(bits).unwrap(), rows, *cols, group).unwrap();
                let expected = expected(layout, &floats(&input, name), &[]);
                check(&output, name, layout, shape, &expected);
                assert_eq!(
                    floats(&back, name),
                    expected.values,
                    "{name} {bits} {per:?}"
                );
                assert_eq!(back.get(name).unwrap().shape, shape);

                let line = line(&report, name);
                assert_eq!(
                    (line.to.as_str(), &line.shape[..]),
                    (&*format!("palette:{bits}"), shape)
                );
                let bytes = expected.indices.len()
                    + expected.codebooks.len()
                    + expected.scales.len() * 4
                    + shape.len() * 8;
                assert_eq!(
                    line.bits_per_weight,
                    bytes as f64 * 8.0 / (rows * cols) as f64
                );
                let found = compared
                    .tensors
                    .iter()
                    .find(|tensor| tensor.name == name)
                    .unwrap();
                assert_eq!(found.right, line.to);
                assert_eq!(
                    Some(found.measures.unwrap().relative_error),
                    line.relative_error
                );
            }
        }
    }
}

#[test]
fn palettes_stand_beside_q4_0_and_q8_0_where_rows_are_whole_blocks() {
    let folder = Folder::new();
    let path = folder.file("in.safetensors");
    let given = [
        Given::f32("blocks", &[6, 64], &weights(1, 384)),
        Given::f32("odd", &[6, 65], &weights(2, 390)),
    ];
    safetensors(&path, &given, &[]);
    let input = TensorFile::open(&path).unwrap();
    let (report, _) = run(
        &input,
        &options(4, Per::Tensor),
        &folder.file("out.safetensors"),
    );
    assert_eq!(line(&report, "odd").beside, []);
    let beside = &line(&report, "blocks").beside;
    assert_eq!(beside.len(), 2);
    for (other, target) in beside
        .iter()
        .zip([Target::Blocks(Format::Q4_0), Target::Blocks(Format::Q8_0)])
    {
        let mut options = QuantizeOptions::new(target);
        options.include = vec!["blocks".into()];
        let (report, _) = run(&input, &options, &folder.file(&format!("{target}.gguf")));
        let line = line(&report, "blocks");
        assert_eq!(other.format, target.name());
        assert_eq!(Some(other.relative_error), line.relative_error);
        assert_eq!(other.bits_per_weight, line.bits_per_weight);
        assert_eq!(line.beside, []);
    }
}

#[test]
fn importances_are_scaled_to_integers_and_weigh_the_error() {
    let folder = Folder::new();
    let input = model(&folder);
    let path = folder.file("importance.safetensors");
    // One of f16, one of f32, with a few values that matter far more; more tensors than are needed do no harm.
    let many: Vec<f32> = (0..768)
        .map(|i| {
            if i % 97 == 5 {
                800.0
            } else {
                (i % 13) as f32 / 4.0
            }
        })
        .collect();
    let halves: Vec<u8> = (0..1024)
        .flat_map(|i| f16::from_f32((i % 5) as f32).to_le_bytes())
        .collect();
    let given = [
        Given::f32("a.weight", &[3, 256], &many),
        Given::new("b.weight", Dtype::F16, &[2, 512], halves),
        Given::f32("other", &[1], &[-1.0]),
    ];
    safetensors(&path, &given, &[]);
    let chosen = QuantizeOptions {
        importance: Some(path),
        ..options(3, Per::Row)
    };
    let (_, output) = run(&input, &chosen, &folder.file("out.safetensors"));
    let scaled = |all: &[f32]| -> Vec<u32> {
        let largest = f64::from(all.iter().copied().fold(0.0, f32::max));
        let top = (MAX_WEIGHT / all.len() as u64).min(u64::from(u32::MAX)) as f64;
        all.iter()
            .map(|&x| (f64::from(x) / largest * top).round_ties_even() as u32)
            .collect()
    };
    let halves: Vec<f32> = (0..1024).map(|i| (i % 5) as f32).collect();
    let width = Width::new(3).unwrap();
    for (name, shape, importances) in [
        ("a.weight", [3, 256], scaled(&many)),
        ("b.weight", [2, 512], scaled(&halves)),
    ] {
        let layout = IndexMatrix::with_rows(width, shape[0], shape[1], 1).unwrap();
        let values = floats(&input, name);
        check(
            &output,
            name,
            layout,
            &shape,
            &expected(layout, &values, &importances),
        );
    }
    // What matters most comes back better than without importances.
    let (_, plain) = run(
        &input,
        &options(3, Per::Row),
        &folder.file("plain.safetensors"),
    );
    let error = |model: &TensorFile, out: &str| -> f64 {
        let values = floats(&restored(model, &folder.file(out)), "a.weight");
        let all = values.iter().zip(floats(&input, "a.weight")).zip(&many);
        all.map(|((y, x), &w)| f64::from(w) * f64::from(x - y).powi(2))
            .sum()
    };
    assert!(error(&output, "w.safetensors") < 0.9 * error(&plain, "p.safetensors"));
}

#[test]
fn importances_that_do_not_fit_are_refused() {
    let folder = Folder::new();
    let input = model(&folder);
    let path = folder.file("importance.safetensors");
    let out = folder.file("out.safetensors");
    let chosen = QuantizeOptions {
        importance: Some(path.clone()),
        include: vec!["a.weight".into()],
        ..options(4, Per::Tensor)
    };
    let ones = vec![1f32; 768];
    let with = |at: usize, x: f32| {
        let mut all = ones.clone();
        all[at] = x;
        Given::f32("a.weight", &[3, 256], &all)
    };
    let cases = [
        (
            Given::f32("a.wait", &[3, 256], &ones),
            "no tensor named `a.weight`; the closest are `a.wait`",
        ),
        (
            Given::f32("a.weight", &[256, 3], &ones),
            "its shape is [256, 3], that of the tensor to quantize [3, 256]",
        ),
        (with(9, -0.5), "the importance -0.5 is negative"),
        (with(700, f32::NAN), "value 700 is not finite"),
        (Given::f32("a.weight", &[3, 256], &[0.0; 768]), "all 0"),
        (
            Given::new("a.weight", Dtype::I64, &[3, 256], vec![0; 768 * 8]),
            "i64 holds no importances",
        ),
    ];
    for (given, expected) in cases {
        safetensors(&path, &[given], &[]);
        let error = quantize(&mut Threads::default(), &input, &chosen, &out, &())
            .unwrap_err()
            .to_string();
        assert!(error.contains(expected), "{error}\nlacks: {expected}");
        assert!(error.starts_with(&*path.to_string_lossy()), "{error}");
        assert!(!out.exists());
    }
    let gone = QuantizeOptions {
        importance: Some(folder.file("gone.npy")),
        ..chosen
    };
    let error = quantize(&mut Threads::default(), &input, &gone, &out, &()).unwrap_err();
    assert!(matches!(error, Error::Io { .. }), "{error}");
}

/// A palette of 3 x 5 values of two bits in two groups, one part of it replaced.
fn stored(folder: &Folder, replaced: Option<Given>) -> TensorFile {
    let dims: Vec<u8> = [3i64, 5].iter().flat_map(|dim| dim.to_le_bytes()).collect();
    let sound = [
        Given::new(
            "x",
            Dtype::U8,
            &[3, 2],
            vec![0b11_10_01_00, 1, 0, 2, 0xFF, 3],
        ),
        Given::new(
            "x_palette",
            Dtype::I8,
            &[2, 4],
            vec![0x80, 0xFF, 0, 1, 5, 6, 7, 127],
        ),
        Given::f32("x_palette_scale", &[2], &[0.5, 2.0]),
        Given::new("x_palette_shape", Dtype::I64, &[2], dims),
    ];
    let parts: Vec<Given> = sound
        .into_iter()
        .map(|part| match &replaced {
            Some(other) if other.name == part.name => {
                Given::new(other.name, other.dtype, &other.shape, other.bytes.clone())
            }
            _ => part,
        })
        .collect();
    let path = folder.file("stored.safetensors");
    safetensors(&path, &parts, &[]);
    TensorFile::open(path).unwrap()
}

#[test]
fn a_palette_written_by_hand_is_read() {
    let folder = Folder::new();
    let model = stored(&folder, None);
    let back = restored(&model, &folder.file("back.safetensors"));
    let expected = [
        -64.0, -0.5, 0.0, 0.5, -0.5, //
        -64.0, -64.0, -64.0, -64.0, 0.0, //
        254.0, 254.0, 254.0, 254.0, 254.0,
    ];
    assert_eq!(floats(&back, "x"), expected);
    assert_eq!(back.tensors().len(), 1);
    let summary = inspect(&mut Threads::default(), &model, Some("x"), &()).unwrap();
    let x = &summary.tensors[0];
    assert_eq!(
        (x.dtype.as_str(), &x.shape[..], x.bytes),
        ("palette:2", &[3, 5][..], 6)
    );
    // The palette reads as int8 codes with a scale a row: the values that there are.
    let summary = inspect(&mut Threads::default(), &model, Some("x_palette"), &()).unwrap();
    let values = summary.tensors[0].values.as_ref().unwrap();
    assert_eq!((values.min, values.max), (-64.0, 254.0));
    // A palette is not quantized again.
    let mut again = options(4, Per::Tensor);
    again.include = vec!["x*".into()];
    let (report, copy) = run(&model, &again, &folder.file("again.safetensors"));
    assert_eq!(
        line(&report, "x").note.as_deref(),
        Some("quantized already")
    );
    assert_eq!(
        line(&report, "x_palette_shape").note.as_deref(),
        Some("belongs to a quantized tensor")
    );
    assert_eq!(
        compare(&mut Threads::default(), &model, &copy, &())
            .unwrap()
            .tensors
            .len(),
        1
    );
}

#[test]
fn damaged_palettes_are_refused() {
    let folder = Folder::new();
    let dims =
        |dims: &[i64]| -> Vec<u8> { dims.iter().flat_map(|dim| dim.to_le_bytes()).collect() };
    let shape = |all: &[i64]| Given::new("x_palette_shape", Dtype::I64, &[all.len()], dims(all));
    let books = |shape: &[usize]| {
        Given::new(
            "x_palette",
            Dtype::I8,
            shape,
            vec![1; shape.iter().product()],
        )
    };
    let cases = [
        (books(&[2, 3]), "it is not [groups, 2, 4, 8, … or 256]"),
        (books(&[2, 512]), "it is not [groups, 2, 4, 8, … or 256]"),
        (books(&[8]), "it is not [groups, 2, 4, 8, … or 256]"),
        (books(&[3, 4]), "it is not one number per codebook"),
        (
            books(&[2, 16]),
            "its shape [3, 2] does not fit [3, 5] of 4 bits",
        ),
        (
            Given::f32("x_palette_scale", &[1, 2], &[1.0; 2]),
            "it is not one number per codebook",
        ),
        (
            Given::f32("x_palette_scale", &[2], &[1.0, f32::NAN]),
            "the scale of group 1 is not finite",
        ),
        (shape(&[3, -5]), "it is not a shape"),
        (shape(&[i64::MAX, i64::MAX, 4]), "it is not a shape"),
        (
            shape(&[3, 9]),
            "its shape [3, 2] does not fit [3, 9] of 2 bits",
        ),
        (
            shape(&[3, 1, 5]),
            "its shape [3, 2] does not fit [3, 1, 5] of 2 bits",
        ),
        (shape(&[3, 0]), "no values"),
        (shape(&[1, 5]), "1 rows do not make 2 groups"),
        (
            Given::new("x_palette_shape", Dtype::I64, &[1, 2], dims(&[3, 5])),
            "it is not a shape",
        ),
    ];
    for (part, expected) in cases {
        let model = stored(&folder, Some(part));
        let error = inspect(&mut Threads::default(), &model, Some("x"), &())
            .unwrap_err()
            .to_string();
        assert!(error.contains(expected), "{error}\nlacks: {expected}");
    }
    // Without all three beside it, a tensor of bytes is a tensor of bytes.
    let model = stored(
        &folder,
        Some(Given::f32("x_palette_shape", &[2], &[3.0, 5.0])),
    );
    let summary = inspect(&mut Threads::default(), &model, Some("x"), &()).unwrap();
    assert_eq!(summary.tensors[0].dtype, "u8");
}
