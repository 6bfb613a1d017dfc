//! Block codecs against ggml: its compiled reference quantizers, and its NumPy package.

#[path = "../../core/tests/block/golden.rs"]
mod golden;

use crate::support;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::data::{Kind, write_f32};
use tercet_core::block::{self, Format};
use tercet_core::f16;
use tercet_core::number::Random;
use tercet_core::quant::{Rule, ScaleRule};

/// Elements of each kind of data for each format.
const ELEMENTS: usize = 7 << 18;

/// One format's encoding of one kind of data, and the files that carry it.
struct Case {
    format: Format,
    kind: Kind,
    values: Vec<f32>,
    bytes: Vec<u8>,
    flushed: usize,
    /// Where the reference writes its own bytes.
    expected: PathBuf,
}

impl Case {
    fn new(format: Format, kind: Kind, folder: &Path) -> Self {
        // Where scales are a part of the largest magnitude they reach further; a minimum does not.
        let reach = match format {
            Format::Tq1_0 | Format::Tq2_0 | Format::Q2_0 | Format::Q4_1 | Format::Q5_1 => 1.0,
            Format::Q8_0 => 127.0,
            Format::Q4_0 => 8.0,
            Format::Q5_0 => 16.0,
            Format::Q4K | Format::Q6K => unreachable!("read only"),
        };
        let values = kind.values(ELEMENTS, reach, format.len());
        let mut bytes = vec![0xA5; format.encoded_len(values.len()).unwrap()];
        let done = block::encode(format, Rule::AbsMax, ScaleRule::Rule, &values, &mut bytes);
        let done = done.unwrap_or_else(|error| panic!("{format:?} {kind:?}: {error}"));
        assert_eq!(done.blocks * format.len(), values.len());
        Self {
            format,
            kind,
            values,
            bytes,
            flushed: done.flushed,
            expected: folder.join(format!("{}-{kind:?}.expected", format.name())),
        }
    }

    fn input(&self) -> PathBuf {
        self.expected.with_extension("f32")
    }

    /// Blocks where the reference divides by a scale whose reciprocal is infinite, hence undefined.
    fn undefined_blocks(&self) -> Vec<bool> {
        let blocks = self.values.chunks_exact(self.format.len());
        let undefined = blocks.map(|values| {
            let largest = values.iter().fold(0f32, |max, x| max.max(x.abs()));
            let min = values.iter().fold(f32::MAX, |min, &x| min.min(x));
            let width = values.iter().fold(f32::MIN, |max, &x| max.max(x)) - min;
            let scale = match self.format {
                Format::Tq1_0 | Format::Tq2_0 | Format::Q2_0 => largest,
                Format::Q8_0 => largest / 127.0,
                Format::Q4_0 => largest / 8.0,
                Format::Q4_1 => width / 15.0,
                Format::Q5_0 => largest / 16.0,
                Format::Q5_1 => width / 31.0,
                Format::Q4K | Format::Q6K => unreachable!("read only"),
            };
            scale > 0.0 && (1.0 / scale).is_infinite()
        });
        undefined.collect()
    }

    /// Compares with the reference's bytes: (elements compared, mismatching blocks).
    fn compare(&self) -> (usize, usize) {
        let expected = fs::read(&self.expected).unwrap();
        assert_eq!(expected.len(), self.bytes.len());
        let mut zeros = vec![0; self.format.bytes()];
        let none = vec![0f32; self.format.len()];
        block::encode(
            self.format,
            Rule::AbsMax,
            ScaleRule::Rule,
            &none,
            &mut zeros,
        )
        .unwrap();

        let undefined = self.undefined_blocks();
        assert_eq!(undefined.iter().filter(|&&u| u).count(), self.flushed);
        let (mut compared, mut wrong) = (0, 0);
        let ours = self.bytes.chunks_exact(self.format.bytes());
        let theirs = expected.chunks_exact(self.format.bytes());
        for ((ours, theirs), undefined) in ours.zip(theirs).zip(undefined) {
            if undefined {
                assert_eq!(ours, zeros, "{:?}: a flushed block is zeros", self.format);
            } else {
                compared += self.format.len();
                wrong += usize::from(ours != theirs);
            }
        }
        (compared, wrong)
    }
}

/// Encodes every kind of data in `formats`, lets the reference do the same and counts differing blocks.
fn encode_against(
    python: &Path,
    library: &Path,
    formats: &[Format],
    defined: fn(Format, Kind) -> bool,
) {
    let folder = tempfile::tempdir().unwrap();
    let mut totals = (0, 0);
    for &format in formats {
        let kinds = Kind::ALL.into_iter().filter(|&kind| defined(format, kind));
        let cases = kinds.map(|kind| Case::new(format, kind, folder.path()));
        let cases: Vec<Case> = cases.collect();
        let mut args = vec![library.as_os_str().to_owned()];
        for case in &cases {
            write_f32(&case.input(), &case.values);
            let files = [
                case.input().into_os_string(),
                case.expected.clone().into_os_string(),
            ];
            args.extend(["quantize".into(), format.name().into()]);
            args.extend(files);
        }
        support::run(python, "blocks.py", args);
        for case in &cases {
            let (compared, wrong) = case.compare();
            assert!(compared >= 1_000_000);
            totals = (totals.0 + compared, totals.1 + wrong);
            println!(
                "{} {:?}: {compared} elements compared, {wrong} blocks differ, {} blocks flushed",
                format.name(),
                case.kind,
                case.flushed
            );
        }
    }
    println!(
        "{}: {} elements compared, {} blocks differ",
        library.display(),
        totals.0,
        totals.1
    );
    assert_eq!(totals.1, 0);
}

#[test]
fn encoding_equals_ggml_reference() {
    let (Some(python), Some(library)) = (support::python_with(&["numpy"]), support::ggml()) else {
        return;
    };
    encode_against(&python, &library, &Format::ENCODED, |_, _| true);
}

#[test]
fn encoding_equals_gguf_package() {
    let Some(python) = support::python_with(&["numpy", "gguf"]) else {
        return;
    };
    // Of zeros the package gives −0 where the C reference gives the sign of the first, and the opposite where that
    // always gives −0.
    let defined =
        |format: Format, kind| kind != Kind::Zero || format.is_ternary() || format == Format::Q8_0;
    let mut formats = of_package();
    formats.retain(|format| format.can_encode());
    encode_against(&python, Path::new("gguf"), &formats, defined);
}

/// The formats that the package has.
fn of_package() -> Vec<Format> {
    let formats = Format::ALL.into_iter();
    formats.filter(|&format| format != Format::Q2_0).collect()
}

/// Blocks of every bit pattern of codes with finite scales and minima.
fn random_blocks(format: Format, blocks: usize, seed: u64) -> Vec<u8> {
    let mut random = Random::new(seed);
    let mut bytes = vec![0; blocks * format.bytes()];
    for block in bytes.chunks_exact_mut(format.bytes()) {
        block.fill_with(|| random.next_u64() as u8);
        for at in [Some(format.scale_offset()), format.min_offset()]
            .into_iter()
            .flatten()
        {
            let bits = random.below(0x7C00) as u16 | (random.below(2) as u16) << 15;
            block[at..at + 2].copy_from_slice(&bits.to_le_bytes());
        }
    }
    bytes
}

fn decode_against(python: &Path, library: &Path, formats: &[Format]) {
    let folder = tempfile::tempdir().unwrap();
    let mut args = vec![library.as_os_str().to_owned()];
    let mut cases = Vec::new();
    for &format in formats {
        let bytes = random_blocks(format, ELEMENTS / format.len(), 7);
        let source = folder.path().join(format.name());
        let target = source.with_extension("expected");
        fs::write(&source, &bytes).unwrap();
        args.extend(["dequantize".into(), format.name().into()]);
        args.extend([source.into_os_string(), target.clone().into_os_string()]);
        cases.push((format, bytes, target));
    }
    support::run(python, "blocks.py", args);
    for (format, bytes, target) in cases {
        let mut decoded = vec![0f32; ELEMENTS];
        block::decode(format, &bytes, &mut decoded).unwrap();
        let expected = fs::read(target).unwrap();
        assert_eq!(expected.len(), decoded.len() * 4);
        let wrong = expected
            .chunks_exact(4)
            .zip(&decoded)
            .filter(|(theirs, ours)| **theirs != ours.to_le_bytes())
            .count();
        println!(
            "{} decoded: {ELEMENTS} elements compared, {wrong} differ",
            format.name()
        );
        assert_eq!(wrong, 0);
    }
}

#[test]
fn decoding_equals_ggml_reference() {
    let (Some(python), Some(library)) = (support::python_with(&["numpy"]), support::ggml()) else {
        return;
    };
    decode_against(&python, &library, &Format::ALL);
}

#[test]
fn decoding_equals_gguf_package() {
    let Some(python) = support::python_with(&["numpy", "gguf"]) else {
        return;
    };
    decode_against(&python, Path::new("gguf"), &of_package());
}

/// Rounding is monotone, so agreeing at every f16, every midpoint and the f32 beside each is agreeing on all.
#[test]
fn f16_conversion_equals_ggml() {
    let (Some(python), Some(library)) = (support::python_with(&["numpy"]), support::ggml()) else {
        return;
    };
    let mut values = Vec::new();
    for bits in 0..0x7C00u16 {
        let low = f16::from_bits(bits).to_f32();
        let high = if bits == 0x7BFF {
            65_536.0
        } else {
            f16::from_bits(bits + 1).to_f32()
        };
        for centre in [low, (low + high) / 2.0] {
            for step in [-1, 0, 1] {
                let x = f32::from_bits(centre.to_bits().saturating_add_signed(step));
                values.extend([x, -x]);
            }
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let (source, target) = (folder.path().join("f32"), folder.path().join("f16"));
    write_f32(&source, &values);
    let verb = [library.into_os_string(), "f16".into(), "-".into()];
    support::run(
        &python,
        "blocks.py",
        verb.into_iter()
            .chain([source.into(), target.clone().into()]),
    );
    let expected = fs::read(target).unwrap();
    assert_eq!(expected.len(), values.len() * 2);
    let wrong = expected
        .chunks_exact(2)
        .zip(&values)
        .filter(|(theirs, x)| **theirs != f16::from_f32(**x).to_le_bytes())
        .count();
    println!("f16: {} elements compared, {wrong} differ", values.len());
    assert_eq!(wrong, 0);
}

/// The digests that `core` tests against anywhere are ggml's own.
#[test]
fn golden_digests_are_ggmls() {
    let (Some(python), Some(library)) = (support::python_with(&["numpy"]), support::ggml()) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let [source, blocks, floats] = ["source", "blocks", "floats"].map(|n| folder.path().join(n));
    write_f32(&source, &golden::values());
    for (format, encoded, decoded) in golden::DIGESTS {
        let jobs = [
            ("quantize", &source, &blocks),
            ("dequantize", &blocks, &floats),
        ];
        for (verb, from, to) in jobs {
            let args: [&OsStr; 5] = [
                library.as_os_str(),
                verb.as_ref(),
                format.name().as_ref(),
                from.as_os_str(),
                to.as_os_str(),
            ];
            support::run(&python, "blocks.py", args);
        }
        let found = [&blocks, &floats].map(|path| golden::digest(&fs::read(path).unwrap()));
        assert_eq!(found, [encoded, decoded], "{format:?} {found:#018x?}");
    }
    for (format, decoded) in golden::DECODED {
        fs::write(&blocks, golden::blocks(format)).unwrap();
        let args: [&OsStr; 5] = [
            library.as_os_str(),
            "dequantize".as_ref(),
            format.name().as_ref(),
            blocks.as_os_str(),
            floats.as_os_str(),
        ];
        support::run(&python, "blocks.py", args);
        let found = golden::digest(&fs::read(&floats).unwrap());
        assert_eq!(found, decoded, "{format:?} {found:#018x}");
    }
}

/// Blocks of values as models have them, which ggml encodes, since Tercet does not.
#[test]
fn blocks_that_ggml_encoded_decode_alike() {
    let (Some(python), Some(library)) = (support::python_with(&["numpy"]), support::ggml()) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let [source, blocks, floats] = ["source", "blocks", "floats"].map(|n| folder.path().join(n));
    for format in Format::ALL.into_iter().filter(|f| !f.can_encode()) {
        for kind in [Kind::Normal, Kind::Uniform, Kind::Laplace, Kind::Zero] {
            let values = kind.values(1 << 18, 1.0, format.len());
            write_f32(&source, &values);
            let mut args = vec![library.as_os_str().to_owned()];
            for (verb, from, to) in [
                ("quantize", &source, &blocks),
                ("dequantize", &blocks, &floats),
            ] {
                args.extend([verb.into(), format.name().into()]);
                args.extend([from.into(), to.into()]);
            }
            support::run(&python, "blocks.py", args);
            let mut decoded = vec![0f32; values.len()];
            block::decode(format, &fs::read(&blocks).unwrap(), &mut decoded).unwrap();
            let ours: Vec<u8> = decoded.iter().flat_map(|y| y.to_le_bytes()).collect();
            assert!(ours == fs::read(&floats).unwrap(), "{format:?} {kind:?}");
            // And they are near what was encoded.
            let scale = values.iter().fold(0f32, |max, x| max.max(x.abs()));
            let worst = values
                .iter()
                .zip(&decoded)
                .fold(0f32, |worst, (x, y)| worst.max((x - y).abs()));
            assert!(worst <= scale / 4.0, "{format:?} {kind:?} {worst}");
        }
    }
}
