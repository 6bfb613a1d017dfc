//! Models that are restored, compared and looked at on an engine: the files and figures of the processor's threads,
//! and its refusals.

mod apart;
mod refusals;

use std::fs;

use crate::files::{Folder, Given, safetensors, weights};
use apart::{Apart, Trouble};
use half::{bf16, f16};
use safetensors::Dtype;
use tercet_core::block::i2_s::Interleave;
use tercet_core::block::{self, Format};
use tercet_core::gguf::{SliceSink, TensorSpec, TensorType, Writer};
use tercet_core::palette::Width;
use tercet_core::scalar::Scalar;
use tercet_host::convert::{FloatType, Per, Scheme, Target};
use tercet_host::parallel::Threads;
use tercet_host::simd::Backend;
use tercet_host::{
    Amounts, CompareReport, DequantizeOptions, QuantizeOptions, Reading, Report, Summary,
    TensorFile, compare, dequantize, inspect, quantize,
};

/// Engines by the calls that have no room.
const ROOM: [fn(usize) -> Option<Trouble>; 3] = [
    |_| None,
    |call| (call % 2 == 1).then_some(Trouble::NoRoom),
    |_| Some(Trouble::NoRoom),
];

/// Tensors of several chunks whose rows and groups end within those, and of rows that no eight values divide.
fn floats(folder: &Folder) -> TensorFile {
    let path = folder.file("floats.safetensors");
    let halves = |seed| -> Vec<u8> {
        let values = weights(seed, 6 * 1024);
        (values.iter().flat_map(|&x| bf16::from_f32(x).to_le_bytes())).collect()
    };
    let given = [
        Given::new("half.weight", Dtype::BF16, &[6, 1024], halves(1)),
        Given::f32("narrow.weight", &[5, 64], &weights(2, 320)),
        Given::f32("norm.weight", &[77], &weights(3, 77)),
        Given::f32("odd.weight", &[11, 200_003], &weights(4, 11 * 200_003)),
        Given::f32("wide.weight", &[3, 400_384], &weights(5, 3 * 400_384)),
    ];
    safetensors(&path, &given, &[]);
    TensorFile::open(path).unwrap()
}

/// Every way to store them, as options and the extension of the file.
fn targets() -> Vec<(QuantizeOptions, &'static str)> {
    let blocks = [
        Target::Blocks(Format::Tq1_0),
        Target::Blocks(Format::Tq2_0),
        Target::Blocks(Format::Q2_0),
        Target::Blocks(Format::Q8_0),
        Target::Blocks(Format::Q4_0),
    ];
    let mut all: Vec<_> = (blocks.into_iter())
        .map(|target| (QuantizeOptions::new(target), "gguf"))
        .collect();
    let mut tensors = |target, per, grid| {
        let options = QuantizeOptions {
            per: Some(per),
            grid,
            ..QuantizeOptions::new(target)
        };
        all.push((options, "safetensors"));
    };
    tensors(Target::Int8, Per::Tensor, Scheme::Symmetric);
    tensors(Target::Int8, Per::Row, Scheme::Affine);
    tensors(Target::Ternary, Per::Tensor, Scheme::Symmetric);
    let palette = |bits| Target::Palette(Width::new(bits).unwrap());
    tensors(palette(1), Per::Tensor, Scheme::Symmetric);
    tensors(palette(3), Per::Rows(4), Scheme::Symmetric);
    tensors(palette(4), Per::Rows(2), Scheme::Symmetric);
    tensors(palette(5), Per::Row, Scheme::Symmetric);
    tensors(palette(8), Per::Rows(3), Scheme::Symmetric);
    // Groups of blocks need rows that they divide.
    all.push((
        QuantizeOptions {
            per: Some(Per::Block(32)),
            grid: Scheme::Affine,
            exclude: vec!["odd*".to_owned()],
            ..QuantizeOptions::new(Target::Int8)
        },
        "safetensors",
    ));
    all
}

fn opened(folder: &Folder, options: &QuantizeOptions, extension: &str) -> TensorFile {
    let out = folder.file(&format!("in.{extension}"));
    let options = QuantizeOptions {
        force: true,
        ..options.clone()
    };
    quantize(
        &mut Threads::default(),
        &floats(folder),
        &options,
        &out,
        &(),
    )
    .unwrap();
    TensorFile::open(out).unwrap()
}

fn options(dtype: FloatType) -> DequantizeOptions {
    DequantizeOptions { dtype, force: true }
}

/// What lasts of a report, the engines' names apart.
fn lasting(mut report: Report) -> Report {
    (report.seconds, report.megabytes_per_second) = (0.0, 0.0);
    report.engine.clear();
    report.engine_note = None;
    for tensor in &mut report.tensors {
        tensor.engine = None;
    }
    report
}

fn nameless(mut report: CompareReport) -> CompareReport {
    report.engine.clear();
    report.engine_note = None;
    report
}

fn anonymous(mut summary: Summary) -> Summary {
    summary.engine.clear();
    summary.engine_note = None;
    summary
}

/// Which names and notes are right where an engine restored some, or none, of what is quantized.
fn named(engine: &Apart, name: &str, note: Option<&str>) {
    let processor = Backend::default().to_string();
    let (done, refused) = (engine.done, engine.calls - engine.done);
    match (done > 0, refused > 0) {
        (true, false) => assert_eq!(name, "apart"),
        (true, true) => assert_eq!(name, format!("apart, {processor}")),
        (false, _) => assert_eq!(name, processor),
    }
    let expected = (refused > 0).then_some("apart had no room for it: none is left");
    assert_eq!(note, expected);
}

/// Restores a model to every float type, whatever calls have no room; bytes and reports must be the same.
fn restored_alike(folder: &Folder, model: &TensorFile) {
    let (expected, found) = (
        folder.file("expected.safetensors"),
        folder.file("found.safetensors"),
    );
    for dtype in [FloatType::F32, FloatType::F16, FloatType::Bf16] {
        let plain = dequantize(
            &mut Threads::default(),
            model,
            &options(dtype),
            &expected,
            &(),
        )
        .unwrap();
        let bytes = fs::read(&expected).unwrap();
        for fails in ROOM {
            let mut engine = Apart::new(fails);
            let report = dequantize(&mut engine, model, &options(dtype), &found, &()).unwrap();
            assert!(fs::read(&found).unwrap() == bytes);
            assert!(engine.calls > 0);
            assert_eq!(report.engine, "apart");
            let mut names = Vec::new();
            for (tensor, plain) in report.tensors.iter().zip(&plain.tensors) {
                assert_eq!(tensor.engine.is_some(), plain.engine.is_some());
                names.extend(tensor.engine.iter().flat_map(|name| name.split(", ")));
            }
            assert_eq!(names.contains(&"apart"), engine.done > 0, "{names:?}");
            let refused = engine.calls > engine.done;
            assert_eq!(report.engine_note.is_some(), refused);
            assert_eq!(names.contains(&plain.engine.as_str()), refused, "{names:?}");
            assert_eq!(lasting(report), lasting(plain.clone()));
        }
    }
}

#[test]
fn every_format_is_restored_compared_and_looked_at_alike() {
    let folder = Folder::new();
    for (format, extension) in targets() {
        println!("{format:?}");
        let model = opened(&folder, &format, extension);
        let original = floats(&folder);
        let compared = compare(&mut Threads::default(), &original, &model, &()).unwrap();
        let swapped = compare(&mut Threads::default(), &model, &original, &()).unwrap();
        let summary = inspect(&mut Threads::default(), &model, None, &()).unwrap();
        restored_alike(&folder, &model);
        for fails in ROOM {
            let mut engine = Apart::new(fails);
            let found = compare(&mut engine, &original, &model, &()).unwrap();
            named(&engine, &found.engine, found.engine_note.as_deref());
            assert_eq!(nameless(found), nameless(compared.clone()));
            let found = compare(&mut engine, &model, &original, &()).unwrap();
            assert_eq!(nameless(found), nameless(swapped.clone()));

            let mut engine = Apart::new(fails);
            let found = inspect(&mut engine, &model, None, &()).unwrap();
            named(&engine, &found.engine, found.engine_note.as_deref());
            assert_eq!(anonymous(found), anonymous(summary.clone()));
        }
    }
}

/// Every value of a tensor goes through the engine once a pass, but those of which eight share a byte with others.
#[test]
fn an_engine_gets_all_there_is() {
    let folder = Folder::new();
    for (format, extension) in targets() {
        let model = opened(&folder, &format, extension);
        let there = Amounts::of(&model).unwrap().on_engines();
        let palettes = Amounts::of(&model).unwrap().palettes.values;
        let mut engine = Apart::new(ROOM[0]);
        let out = folder.file("out.safetensors");
        dequantize(&mut engine, &model, &options(FloatType::F32), &out, &()).unwrap();
        let chunks = palettes.div_ceil(1 << 20);
        let missed = there.values - engine.values;
        assert!(missed <= 7 * chunks, "{format:?}: {missed} of {there:?}");
        // Calls are few: a chunk's head, its whole groups, its tail.
        assert!(engine.calls <= 5 * 5 * 4, "{format:?}: {}", engine.calls);

        let listed = Amounts::listed(&model, None).unwrap().on_engines();
        let mut engine = Apart::new(ROOM[0]);
        inspect(&mut engine, &model, None, &()).unwrap();
        let missed = 2 * listed.values - engine.values;
        assert!(missed <= 2 * 7 * chunks, "{format:?}: {missed}");
        let one = Amounts::listed(&model, Some("wide.weight")).unwrap();
        assert_eq!(one.on_engines().values, 3 * 400_384);
    }
}

#[test]
fn core_s_loops_and_the_pool_restore_alike_and_each_is_named() {
    let folder = Folder::new();
    let model = opened(
        &folder,
        &QuantizeOptions::new(Target::Blocks(Format::Q8_0)),
        "gguf",
    );
    let out = folder.file("out.safetensors");
    let options = options(FloatType::F16);
    let plain = dequantize(&mut Threads::default(), &model, &options, &out, &()).unwrap();
    let by = dequantize(&mut Scalar, &model, &options, &out, &()).unwrap();
    let pool = Backend::default().to_string();
    assert_eq!(
        (plain.engine, by.engine),
        (pool.clone(), "scalar".to_owned())
    );
    for (plain, mut by) in plain.tensors.into_iter().zip(by.tensors) {
        let who = plain.engine.as_ref().map(|_| "scalar".to_owned());
        assert_eq!(std::mem::replace(&mut by.engine, plain.engine.clone()), who);
        assert_eq!(by, plain);
    }
    let original = floats(&folder);
    let plain = compare(&mut Threads::default(), &original, &model, &()).unwrap();
    let mut by = compare(&mut Scalar, &original, &model, &()).unwrap();
    assert_eq!((&plain.engine, &*by.engine), (&pool, "scalar"));
    by.engine.clone_from(&pool);
    assert_eq!(by, plain);
    let plain = inspect(&mut Threads::default(), &model, None, &()).unwrap();
    let mut by = inspect(&mut Scalar, &model, None, &()).unwrap();
    assert_eq!((&plain.engine, &*by.engine), (&pool, "scalar"));
    by.engine.clone_from(&pool);
    assert_eq!(by, plain);
}

/// An I2_S tensor of 128 columns.
fn i2_s(folder: &Folder, rows: usize, scale: f32) -> TensorFile {
    let mut bytes: Vec<u8> = (0..rows * 32)
        .map(|i| [0b01_00_10_01, 0b10_01_00_10][i % 2])
        .collect();
    bytes.extend(scale.to_le_bytes());
    bytes.resize(rows * 32 + 32, 0);
    let specs = [TensorSpec::new("w", &[128, rows as u64], TensorType::I2_S).unwrap()];
    let mut file = vec![0; bytes.len() + 4096];
    let mut writer = Writer::new(SliceSink::new(&mut file), 1, &specs).unwrap();
    writer.entry("general.architecture", "bitnet").unwrap();
    let mut tensors = writer.into_data().unwrap();
    tensors.begin("w").unwrap();
    tensors.write(&bytes).unwrap();
    let len = tensors.finish().unwrap().len();
    file.truncate(len);
    let path = folder.file("i2s.gguf");
    fs::write(&path, file).unwrap();
    let reading = Reading {
        i2_s: Some(Interleave::X86x128),
        ..Reading::default()
    };
    TensorFile::open(path).unwrap().with_reading(reading)
}

/// Blocks of formats that are read only, as files of models hold them: restored as core decodes them, and carried
/// where a model is quantized.
#[test]
fn blocks_that_are_read_only_are_restored_and_carried() {
    for format in [Format::Q4K, Format::Q6K] {
        let folder = Folder::new();
        let blocks = 3 * 1000;
        let mut bytes: Vec<u8> = (0..blocks * format.bytes())
            .map(|at| (at * at + 7 * at) as u8)
            .collect();
        for block in bytes.chunks_exact_mut(format.bytes()) {
            for at in [Some(format.scale_offset()), format.min_offset()]
                .into_iter()
                .flatten()
            {
                block[at..at + 2].copy_from_slice(&f16::from_f32(0.01).to_le_bytes());
            }
        }
        let kind = TensorType(format.gguf_type());
        let specs = [TensorSpec::new("w", &[3 * 256, 1000], kind).unwrap()];
        let mut file = vec![0; bytes.len() + 4096];
        let mut writer = Writer::new(SliceSink::new(&mut file), 1, &specs).unwrap();
        writer.entry("general.architecture", "llama").unwrap();
        let mut tensors = writer.into_data().unwrap();
        tensors.begin("w").unwrap();
        tensors.write(&bytes).unwrap();
        let len = tensors.finish().unwrap().len();
        file.truncate(len);
        let path = folder.file("in.gguf");
        fs::write(&path, file).unwrap();
        let model = TensorFile::open(path).unwrap();

        let mut floats = vec![0.0; blocks * 256];
        block::decode(format, &bytes, &mut floats).unwrap();
        let floats: Vec<u8> = floats.iter().flat_map(|x| x.to_le_bytes()).collect();
        let found = inspect(&mut Threads::default(), &model, None, &()).unwrap();
        assert_eq!(found.tensors[0].dtype, format.name());
        for threads in [true, false] {
            let out = folder.file("out.safetensors");
            let options = options(FloatType::F32);
            let report = match threads {
                true => dequantize(&mut Threads::default(), &model, &options, &out, &()),
                false => dequantize(&mut Scalar, &model, &options, &out, &()),
            };
            report.unwrap();
            let restored = TensorFile::open(out).unwrap();
            assert!(restored.tensors().next().unwrap().bytes == floats);
        }
        let out = folder.file("out.gguf");
        let target = QuantizeOptions::new(Target::Blocks(Format::Q8_0));
        let report = quantize(&mut Threads::default(), &model, &target, &out, &()).unwrap();
        let note = report.tensors[0].note.as_deref();
        assert_eq!(note, Some("quantized already"));
        let carried = TensorFile::open(out).unwrap();
        assert!(carried.tensors().next().unwrap().bytes == bytes);
    }
}

/// Packed codes and floats are no engine's; the report says so.
#[test]
fn what_no_engine_restores_is_the_processors() {
    let folder = Folder::new();
    let packed = folder.file("packed.safetensors");
    let given = [Given::f32("w", &[8, 4096], &weights(1, 8 * 4096))];
    safetensors(&folder.file("w.safetensors"), &given, &[]);
    let original = TensorFile::open(folder.file("w.safetensors")).unwrap();
    let target = QuantizeOptions::new(Target::BitnetHf);
    quantize(&mut Threads::default(), &original, &target, &packed, &()).unwrap();
    let halves = weights(2, 99);
    let halves: Vec<_> = (halves.iter().flat_map(|&x| f16::from_f32(x).to_le_bytes())).collect();
    let halves = [Given::new("w", Dtype::F16, &[99], halves)];
    safetensors(&folder.file("halves.safetensors"), &halves, &[]);
    let models = [
        (TensorFile::open(packed).unwrap(), 8 * 4096, true),
        (i2_s(&folder, 40, 0.25), 40 * 128, true),
        (
            TensorFile::open(folder.file("halves.safetensors")).unwrap(),
            99,
            false,
        ),
        (original, 8 * 4096, false),
    ];
    let processor = Backend::default().to_string();
    for (model, values, is_quantized) in models {
        let amounts = Amounts::of(&model).unwrap();
        assert_eq!(amounts.on_engines().values, 0);
        let of_kind = if is_quantized {
            amounts.packed
        } else {
            amounts.plain
        };
        assert_eq!(of_kind.values, values);
        let mut engine = Apart::new(ROOM[0]);
        let found = inspect(&mut engine, &model, None, &()).unwrap();
        assert_eq!(
            found,
            inspect(&mut Threads::default(), &model, None, &()).unwrap()
        );
        let found = compare(&mut engine, &model, &model, &()).unwrap();
        assert_eq!(
            found,
            compare(&mut Threads::default(), &model, &model, &()).unwrap()
        );
        assert_eq!(
            (found.engine.as_str(), found.engine_note),
            (&*processor, None)
        );
        let (expected, out) = (folder.file("expected.gguf"), folder.file("found.gguf"));
        dequantize(
            &mut Threads::default(),
            &model,
            &options(FloatType::F32),
            &expected,
            &(),
        )
        .unwrap();
        let report = dequantize(&mut engine, &model, &options(FloatType::F32), &out, &()).unwrap();
        assert!(fs::read(out).unwrap() == fs::read(expected).unwrap());
        let by = is_quantized.then_some(processor.as_str());
        assert_eq!(report.tensors[0].engine.as_deref(), by);
        assert_eq!(engine.calls, 0);
    }
}
