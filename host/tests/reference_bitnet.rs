//! BitNet's quantizer and packings against `transformers`' own functions, and, for scales and types that those
//! do not take, against a NumPy restatement of the public rules.

use crate::support;
use std::ffi::OsString;
use std::fs;
use std::path::Path;

use crate::support::data::{Kind, write_f32};
use tercet_core::bf16;
use tercet_core::block::bitnet_hf::{self, WeightScale};
use tercet_core::block::i2_s::{self, Interleave};
use tercet_core::number::{Element, Random};
use tercet_host::convert::Target;
use tercet_host::parallel::Threads;
use tercet_host::{DequantizeOptions, QuantizeOptions, TensorFile, dequantize, quantize};

/// Packs `weights` with each of `scales` and counts the bytes that NumPy packs otherwise.
fn compare<T: Element>(
    python: &Path,
    name: &str,
    rows: usize,
    weights: &[T],
    bytes: &[u8],
    scales: &[f32],
) -> usize {
    let folder = tempfile::tempdir().unwrap();
    let path = |file: &str| folder.path().join(file);
    fs::write(path("weights"), bytes).unwrap();
    write_f32(&path("scales"), scales);
    let cols = weights.len() / rows;
    let mut args: Vec<OsString> = ["hf", name].map(Into::into).into();
    args.extend([rows.to_string().into(), cols.to_string().into()]);
    args.extend(["weights", "scales", "packed"].map(|file| path(file).into_os_string()));
    support::run(python, "bitnet.py", args);

    let reference = fs::read(path("packed")).unwrap();
    let (scale, packed) = reference.split_first_chunk().unwrap();
    assert_eq!(
        bitnet_hf::scale(weights).unwrap(),
        f32::from_le_bytes(*scale)
    );
    let len = bitnet_hf::packed_len(rows, cols).unwrap();
    assert_eq!(packed.len(), len * scales.len());
    let (mut codes, mut ours) = (vec![0; weights.len()], vec![0; len]);
    let mut wrong = 0;
    for (theirs, &s) in packed.chunks_exact(len).zip(scales) {
        bitnet_hf::quantize(weights, s, &mut codes).unwrap();
        bitnet_hf::pack(rows, cols, &codes, &mut ours).unwrap();
        wrong += ours.iter().zip(theirs).filter(|(a, b)| a != b).count();
    }
    wrong
}

/// Little-endian f32 of a file.
fn floats(path: &Path) -> Vec<f32> {
    let bytes = fs::read(path).unwrap();
    let values = bytes
        .chunks_exact(4)
        .map(|b| f32::from_le_bytes(b.try_into().unwrap()));
    values.collect()
}

/// A layer's output for the identity is its weights, transposed.
fn transposed(rows: usize, values: &[f32]) -> Vec<f32> {
    let rows = 0..rows;
    let column = |row| values.iter().skip(row).step_by(rows.end).copied();
    rows.clone().flat_map(column).collect()
}

#[test]
fn codes_bytes_and_both_weight_scales_equal_transformers() {
    let Some(python) = support::python_with(&["numpy", "transformers"]) else {
        return;
    };
    let (rows, cols) = (1024, 1024);
    for kind in [
        Kind::Normal,
        Kind::Laplace,
        Kind::Mixed,
        Kind::Ties,
        Kind::Tiny,
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = |file: &str| folder.path().join(file);
        let weights = kind.values(rows * cols, 8.0, 64);
        let s = bitnet_hf::scale(&weights).unwrap();
        let [divisor, multiplier] = [WeightScale::Divisor, WeightScale::Multiplier];
        write_f32(&path("weights"), &weights);
        write_f32(&path("divisor"), &[divisor.stored(s)]);
        write_f32(&path("multiplier"), &[multiplier.stored(s)]);
        let mut args: Vec<OsString> = vec![rows.to_string().into(), cols.to_string().into()];
        args.extend(["weights", "divisor", "multiplier"].map(|file| path(file).into_os_string()));
        args.push(folder.path().into());
        support::run(&python, "transformers_bitnet.py", args);

        let mut codes = vec![0; weights.len()];
        bitnet_hf::quantize(&weights, s, &mut codes).unwrap();
        let mut packed = vec![0; bitnet_hf::packed_len(rows, cols).unwrap()];
        bitnet_hf::pack(rows, cols, &codes, &mut packed).unwrap();
        assert_eq!(packed, fs::read(path("packed")).unwrap(), "{kind:?}");
        for (scale, layer) in [(divisor, "bitlinear"), (multiplier, "autobitlinear")] {
            let unit = scale.unit(scale.stored(s)).unwrap();
            let mut decoded = vec![0.0; weights.len()];
            bitnet_hf::decode(rows, cols, &packed, unit, &mut decoded).unwrap();
            let theirs = transposed(rows, &floats(&path(layer)));
            // Their zeros may be −0 or +0, whichever the matrix product leaves.
            assert!(decoded == theirs, "{kind:?}: {layer} reads other weights");
            let online = floats(&path("quantized"));
            assert!(
                decoded == online,
                "{kind:?}: the online quantizer makes other weights"
            );
        }
        println!(
            "transformers {kind:?}: {} elements compared, 0 differ",
            weights.len()
        );
    }
}

#[test]
fn packed_bytes_equal_the_public_rule() {
    let Some(python) = support::python_with(&["numpy", "ml_dtypes"]) else {
        return;
    };
    let mut elements = 0;
    for kind in [
        Kind::Normal,
        Kind::Laplace,
        Kind::Mixed,
        Kind::Ties,
        Kind::Subnormal,
    ] {
        // 1,027 rows: the last byte rows hold fewer than four.
        let (rows, cols) = (1027, 1024);
        let weights = kind.values(rows * cols, 8.0, 64);
        let halves: Vec<bf16> = weights.iter().map(|&w| bf16::from_f32(w)).collect();
        let bytes: Vec<u8> = weights.iter().flat_map(|w| w.to_le_bytes()).collect();
        let half_bytes: Vec<u8> = halves.iter().flat_map(|w| w.to_le_bytes()).collect();
        let own = bitnet_hf::scale(&weights).unwrap();
        let scales = [own, 1.0, 0.25, 3.3e5, 1e-3];
        let wrong = compare(&python, "f32", rows, &weights, &bytes, &scales)
            + compare(&python, "bf16", rows, &halves, &half_bytes, &scales);
        let compared = 2 * scales.len() * weights.len();
        println!("hf {kind:?}: {compared} elements compared, {wrong} bytes differ");
        assert_eq!(wrong, 0);
        elements += compared;
    }
    println!("hf: {elements} elements compared, 0 bytes differ");
}

#[test]
fn i2_s_files_hold_what_their_source_restores_to() {
    let Some(python) = support::python_with(&["numpy", "ml_dtypes"]) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let path = |file: &str| folder.path().join(file);
    let nano = Path::new(env!("CARGO_MANIFEST_DIR")).join("../gpu/models/nano.gguf");
    let floats_of_it = path("floats.gguf");
    let (mut pool, as_f32) = (Threads::default(), DequantizeOptions::default());
    let model = TensorFile::open(&nano).unwrap();
    dequantize(&mut pool, &model, &as_f32, &floats_of_it, &()).unwrap();
    let restored = TensorFile::open(&floats_of_it).unwrap();
    // From blocks, and from the floats that they restore to.
    for source in [&nano, &floats_of_it] {
        let (out, values) = (path("out.gguf"), path("values"));
        let options = QuantizeOptions {
            force: true,
            ..QuantizeOptions::new(Target::I2S)
        };
        let source = TensorFile::open(source).unwrap();
        quantize(&mut pool, &source, &options, &out, &()).unwrap();
        let _ = fs::remove_dir_all(&values);
        fs::create_dir(&values).unwrap();
        let args: [OsString; 3] = ["i2_s_file".into(), out.into(), values.clone().into()];
        let said = support::run(&python, "bitnet.py", args);
        assert_eq!(said.trim(), "40 14");
        let mut elements = 0;
        for entry in fs::read_dir(&values).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            let expected = restored.get(&name).unwrap();
            assert_eq!(fs::read(entry.path()).unwrap(), expected.bytes, "{name}");
            elements += expected.values();
        }
        println!("i2_s file: {elements} elements compared, 0 differ");
        assert_eq!(elements, 2 * 2 * (256 * 256 + 128 * 256) + 6 * 512 * 256);
    }
}

#[test]
fn i2_s_tensors_decode_to_their_codes() {
    let Some(python) = support::python_with(&["numpy", "ml_dtypes"]) else {
        return;
    };
    let mut random = Random::new(3);
    let codes: Vec<i8> = (0..1 << 20).map(|_| random.below(3) as i8 - 1).collect();
    for layout in [Interleave::X86x128, Interleave::Arm64] {
        let folder = tempfile::tempdir().unwrap();
        let (source, target) = (folder.path().join("codes"), folder.path().join("tensor"));
        fs::write(
            &source,
            codes.iter().map(|&code| code as u8).collect::<Vec<_>>(),
        )
        .unwrap();
        let args: [OsString; 5] = [
            "i2_s".into(),
            layout.group().to_string().into(),
            source.into(),
            "0.3125".into(),
            target.clone().into(),
        ];
        support::run(&python, "bitnet.py", args);
        let tensor = fs::read(target).unwrap();
        let mut found = vec![0; codes.len()];
        assert_eq!(i2_s::codes(layout, &tensor, &mut found), Ok(0.3125));
        let wrong = found.iter().zip(&codes).filter(|(a, b)| a != b).count();
        println!(
            "i2_s {}: {} elements compared, {wrong} differ",
            layout.name(),
            codes.len()
        );
        assert_eq!(wrong, 0);
    }
}
