//! What is damaged, and engines that fail.

use std::fs;

use half::f16;
use safetensors::Dtype;
use tercet_core::block::Format;
use tercet_core::palette::Width;
use tercet_host::convert::{FloatType, Per, Target};
use tercet_host::parallel::Threads;
use tercet_host::points::{Points, ReadOptions};
use tercet_host::{Error, QuantizeOptions, TensorFile, compare, dequantize, inspect, quantize};

use super::apart::{Apart, Trouble};
use super::{ROOM, opened, options};
use crate::files::{Folder, Given, le, safetensors, weights};

#[test]
fn an_engine_that_fails_ends_it_and_nothing_is_written() {
    let folder = Folder::new();
    let model = opened(
        &folder,
        &QuantizeOptions::new(Target::Blocks(Format::Tq2_0)),
        "gguf",
    );
    let before = folder.names();
    let broken = || Apart::new(|call| (call == 1).then_some(Trouble::Broken));
    let out = folder.file("out.safetensors");
    let errors = [
        dequantize(&mut broken(), &model, &options(FloatType::F32), &out, &()).unwrap_err(),
        compare(&mut broken(), &model, &model, &()).unwrap_err(),
        inspect(&mut broken(), &model, None, &()).unwrap_err(),
    ];
    for error in errors {
        assert!(matches!(error, Error::Engine { .. }));
        assert_eq!(error.to_string(), "apart: it is broken");
    }
    assert_eq!(folder.names(), before);
}

/// The one tensor of a quantized file, changed where it is stored.
fn damaged(
    folder: &Folder,
    (target, extension): (Target, &str),
    values: &[f32],
    change: impl FnOnce(&mut [u8]),
) -> TensorFile {
    let given = [Given::f32("w", &[5, values.len() / 5], values)];
    safetensors(&folder.file("w.safetensors"), &given, &[]);
    let original = TensorFile::open(folder.file("w.safetensors")).unwrap();
    let out = folder.file(&format!("damaged.{extension}"));
    let options = QuantizeOptions {
        force: true,
        ..QuantizeOptions::new(target)
    };
    quantize(&mut Threads::default(), &original, &options, &out, &()).unwrap();
    let mut file = fs::read(&out).unwrap();
    let bytes = TensorFile::open(&out)
        .unwrap()
        .get("w")
        .unwrap()
        .bytes
        .to_vec();
    let at = file.windows(bytes.len()).position(|part| part == bytes);
    change(&mut file[at.unwrap()..][..bytes.len()]);
    fs::write(&out, file).unwrap();
    TensorFile::open(out).unwrap()
}

/// int8 codes with a scale a row.
fn codes(folder: &Folder, rows: usize, cols: usize, scales: &[f32]) -> TensorFile {
    let path = folder.file("codes.safetensors");
    let all = (0..rows * cols).map(|i| (i % 251) as u8).collect();
    let given = [
        Given::new("w", Dtype::I8, &[rows, cols], all),
        Given::new("w_scale", Dtype::F32, &[rows, 1], le(scales)),
    ];
    safetensors(&path, &given, &[]);
    TensorFile::open(path).unwrap()
}

/// Refusals name the same place in the same words, whatever else is wrong behind it.
fn refused_alike(folder: &Folder, model: &TensorFile, told: &str) {
    let out = folder.file("out.safetensors");
    let error = |done: Result<(), Error>| done.map_err(|error| error.to_string()).err();
    for dtype in [FloatType::F32, FloatType::F16] {
        for fails in ROOM {
            let mut engine = Apart::new(fails);
            let plain = error(
                dequantize(&mut Threads::default(), model, &options(dtype), &out, &()).map(drop),
            );
            let found = dequantize(&mut engine, model, &options(dtype), &out, &());
            assert_eq!(error(found.map(drop)), plain, "{told}");
            assert!(
                plain.unwrap().contains(told) || dtype == FloatType::F16,
                "{told}"
            );
            let plain = error(compare(&mut Threads::default(), model, model, &()).map(drop));
            let found = compare(&mut engine, model, model, &()).map(drop);
            assert_eq!(error(found), plain, "{told}");
            assert!(plain.unwrap().contains(told), "{told}");
            let plain = error(inspect(&mut Threads::default(), model, None, &()).map(drop));
            let found = inspect(&mut engine, model, None, &()).map(drop);
            assert_eq!(error(found), plain, "{told}");
        }
    }
    assert!(!out.exists());
}

#[test]
fn what_is_damaged_is_told_in_the_same_words() {
    let folder = Folder::new();
    // Two chunks, and what is wrong in the second one.
    let (cols, all) = (262_144, 5 * 262_144);
    let values = weights(1, all);
    let infinite = f16::INFINITY.to_le_bytes();
    for (target, len, size, scale) in [
        (Target::Blocks(Format::Q8_0), 32, 34, 0),
        (Target::Blocks(Format::Q4_0), 32, 18, 0),
        (Target::Blocks(Format::Tq2_0), 256, 66, 64),
        (Target::Blocks(Format::Tq1_0), 256, 54, 52),
    ] {
        let block = (1 << 20) / len + 70;
        let model = damaged(&folder, (target, "gguf"), &values, |bytes| {
            for block in [block, block + 3000 / (len / 32)] {
                bytes[block * size + scale..][..2].copy_from_slice(&infinite);
            }
        });
        let told = format!("tensor `w`: the scale of block {block} is not finite");
        refused_alike(&folder, &model, &told);
    }

    let mut scales = [1.0, 1.0, 1.0, 1.0, f32::NAN];
    let model = codes(&folder, 5, cols, &scales);
    refused_alike(&folder, &model, "tensor `w_scale`: scale 4 is not finite");
    // What is not finite once it is restored stands before what is damaged, within one chunk.
    scales = [1.0, 3e37, 1.0, f32::INFINITY, 1.0];
    let model = codes(&folder, 5, cols, &scales);
    let out = folder.file("none.safetensors");
    let plain = dequantize(
        &mut Threads::default(),
        &model,
        &options(FloatType::F32),
        &out,
        &(),
    )
    .unwrap_err();
    let told = plain.to_string();
    assert!(told.contains("tensor `w`: value 2621"), "{told}");
    let mut engine = Apart::new(ROOM[0]);
    let found = dequantize(&mut engine, &model, &options(FloatType::F32), &out, &());
    assert_eq!(found.unwrap_err().to_string(), told);
    // And alone.
    scales[3] = 1.0;
    let model = codes(&folder, 5, cols, &scales);
    let plain = dequantize(
        &mut Threads::default(),
        &model,
        &options(FloatType::F32),
        &out,
        &(),
    )
    .unwrap_err();
    let found = dequantize(&mut engine, &model, &options(FloatType::F32), &out, &());
    assert_eq!(found.unwrap_err().to_string(), plain.to_string());
    // Finite, but too large for a half, in the second chunk.
    scales = [1.0, 1.0, 1.0, 1.0, 1e6];
    let model = codes(&folder, 5, cols, &scales);
    let plain = dequantize(
        &mut Threads::default(),
        &model,
        &options(FloatType::F16),
        &out,
        &(),
    )
    .unwrap_err();
    let found = dequantize(&mut engine, &model, &options(FloatType::F16), &out, &());
    assert_eq!(found.unwrap_err().to_string(), plain.to_string());
    assert!(plain.to_string().contains("too large for f16"), "{plain}");
    assert!(!out.exists());

    let palette = Target::Palette(Width::new(4).unwrap());
    let path = folder.file("palette.safetensors");
    let given = [Given::f32("w", &[5, cols], &values)];
    safetensors(&folder.file("w.safetensors"), &given, &[]);
    let original = TensorFile::open(folder.file("w.safetensors")).unwrap();
    let row = QuantizeOptions {
        per: Some(Per::Row),
        ..QuantizeOptions::new(palette)
    };
    quantize(&mut Threads::default(), &original, &row, &path, &()).unwrap();
    let mut file = fs::read(&path).unwrap();
    let stored = TensorFile::open(&path).unwrap();
    let scales = stored.get("w_palette_scale").unwrap().bytes.to_vec();
    drop(stored);
    let at = file.windows(scales.len()).position(|part| part == scales);
    file[at.unwrap() + 16..][..4].copy_from_slice(&f32::NAN.to_le_bytes());
    fs::write(&path, file).unwrap();
    let told = "tensor `w`: the scale of group 4 is not finite";
    refused_alike(&folder, &TensorFile::open(path).unwrap(), told);
}

/// One thread comes to the lower place last, and another to the higher one at once.
#[test]
fn the_lowest_damaged_place_is_told_whoever_finds_it() {
    let folder = Folder::new();
    let values = weights(3, 5 * 65_536);
    let model = damaged(
        &folder,
        (Target::Blocks(Format::Q8_0), "gguf"),
        &values,
        |bytes| {
            for block in [5_119, 5_120] {
                bytes[block * 34..][..2].copy_from_slice(&f16::INFINITY.to_le_bytes());
            }
        },
    );
    let told = "tensor `w`: the scale of block 5119 is not finite";
    for _ in 0..100 {
        let errors = [
            inspect(&mut Threads::default(), &model, None, &()).unwrap_err(),
            Points::open(model.path().to_str().unwrap(), &ReadOptions::default()).unwrap_err(),
        ];
        for error in errors {
            assert!(error.to_string().ends_with(told), "{error}");
        }
    }
}

/// What the processor does not refuse, an engine may not either.
#[test]
fn a_refusal_that_the_processor_does_not_share_is_told_as_it_is() {
    let folder = Folder::new();
    let model = opened(
        &folder,
        &QuantizeOptions::new(Target::Blocks(Format::Q8_0)),
        "gguf",
    );
    let mut wrong = Apart::new(|_| Some(Trouble::Refused));
    let out = folder.file("out.safetensors");
    let errors = [
        dequantize(&mut wrong, &model, &options(FloatType::F32), &out, &()).unwrap_err(),
        compare(&mut wrong, &model, &model, &()).unwrap_err(),
        inspect(&mut wrong, &model, None, &()).unwrap_err(),
    ];
    for error in errors {
        assert!(
            (error.to_string()).ends_with("the scale of block 5 is not finite"),
            "{error}"
        );
    }
}
