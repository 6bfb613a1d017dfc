//! What the readers accept, and what they refuse.

use crate::files::{Folder, Given, le, raw_npy, raw_safetensors, safetensors, weights};
use safetensors::Dtype;
use tercet_host::{Container, DType, Error, TensorFile};

#[test]
fn safetensors_of_every_type_is_read_as_written() {
    let folder = Folder::new();
    let path = folder.file("all.safetensors");
    let types = [
        (Dtype::F64, DType::F64),
        (Dtype::F32, DType::F32),
        (Dtype::F16, DType::F16),
        (Dtype::BF16, DType::Bf16),
        (Dtype::I64, DType::I64),
        (Dtype::I32, DType::I32),
        (Dtype::I16, DType::I16),
        (Dtype::I8, DType::I8),
        (Dtype::U64, DType::U64),
        (Dtype::U32, DType::U32),
        (Dtype::U16, DType::U16),
        (Dtype::U8, DType::U8),
        (Dtype::BOOL, DType::Bool),
        (Dtype::F8_E4M3, DType::Safetensors(Dtype::F8_E4M3)),
        (Dtype::F4, DType::Safetensors(Dtype::F4)),
    ];
    let names = [
        "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o",
    ];
    let given: Vec<Given> = types
        .iter()
        .zip(names)
        .map(|(&(dtype, _), name)| {
            let len = 6 * dtype.bitsize() / 8;
            Given::new(name, dtype, &[3, 2], (0..len as u8).collect())
        })
        .collect();
    safetensors(&path, &given, &[("format", "pt"), ("a", "b")]);
    let model = TensorFile::open(&path).expect("a sound file");
    assert_eq!(model.container(), Container::Safetensors);
    assert_eq!(model.tensors().len(), given.len());
    for (given, (_, dtype)) in given.iter().zip(types) {
        let tensor = model.get(given.name).expect("it was written");
        assert_eq!(
            (tensor.dtype, tensor.shape, tensor.bytes),
            (dtype, &[3, 2][..], &given.bytes[..])
        );
    }
    let pairs = [("a", "b"), ("format", "pt")].map(|(k, v)| (k.to_owned(), v.to_owned()));
    assert_eq!(model.metadata(), &pairs);
}

#[test]
fn shards_are_one_model() {
    let folder = Folder::new();
    let (x, y) = (weights(1, 8), weights(2, 4));
    safetensors(
        &folder.file("m-1.safetensors"),
        &[Given::f32("x", &[2, 4], &x)],
        &[("k", "v")],
    );
    safetensors(
        &folder.file("m-2.safetensors"),
        &[Given::f32("y", &[4], &y)],
        &[],
    );
    let index = folder.file("m.safetensors.index.json");
    std::fs::write(
        &index,
        r#"{"metadata": {"total_size": 48}, "weight_map": {"y": "m-2.safetensors", "x": "m-1.safetensors"}}"#,
    )
    .unwrap();
    let model = TensorFile::open(&index).expect("a sound index");
    let names: Vec<&str> = model.tensors().map(|tensor| tensor.name).collect();
    assert_eq!(names, ["x", "y"]);
    assert_eq!(model.get("x").unwrap().bytes, le(&x));
    assert_eq!(model.get("y").unwrap().bytes, le(&y));
    assert_eq!(model.files().count(), 2);
    assert_eq!(model.metadata(), &[("k".to_owned(), "v".to_owned())]);
}

#[test]
fn lying_indexes_are_refused() {
    let folder = Folder::new();
    let given = [Given::f32("x", &[2], &[1.0, 2.0])];
    safetensors(&folder.file("m-1.safetensors"), &given, &[]);
    safetensors(&folder.file("m-2.safetensors"), &given, &[]);
    let index = folder.file("m.safetensors.index.json");
    let cases = [
        (
            r#"{"weight_map": {"x": "m-1.safetensors", "z": "m-1.safetensors"}}"#,
            "`z` is not in its shard",
        ),
        (
            r#"{"weight_map": {"w": "m-1.safetensors"}}"#,
            "`x` is in `m-1.safetensors`, but the index names another shard",
        ),
        (
            r#"{"weight_map": {"x": "m-1.safetensors", "y": "m-2.safetensors"}}"#,
            "`x` is in `m-2.safetensors`",
        ),
        (
            r#"{"weight_map": {"x": "../m-1.safetensors"}}"#,
            "not a plain file name",
        ),
        (
            r#"{"weight_map": {"x": "/m-1.safetensors"}}"#,
            "not a plain file name",
        ),
        (r#"{"weight_map": {"x": ".."}}"#, "not a plain file name"),
        (r#"{"weight_map": {"x": 1}}"#, "invalid type"),
        (r#"{"weights": {}}"#, "weight_map"),
        (r#"{"weight_map": "#, "EOF"),
    ];
    for (text, expected) in cases {
        std::fs::write(&index, text).unwrap();
        refused(&index, expected);
    }
    std::fs::write(&index, r#"{"weight_map": {"x": "gone.safetensors"}}"#).unwrap();
    let error = TensorFile::open(&index)
        .expect_err("the shard is missing")
        .to_string();
    assert!(
        error.contains("gone.safetensors: cannot open this shard, which the index names"),
        "{error}"
    );
}

#[test]
fn hostile_safetensors_are_refused() {
    let folder = Folder::new();
    let path = folder.file("hostile.safetensors");
    let tensor = |info: &str| format!(r#"{{"x":{info}}}"#);
    let cases = [
        (
            tensor(r#"{"dtype":"F32","shape":[2],"data_offsets":[0,8]}"#),
            4,
            "tensor `x`: bad safetensors file: the tensors claim 8 bytes, but the file has 4",
        ),
        (
            tensor(r#"{"dtype":"F32","shape":[2],"data_offsets":[0,8]}"#),
            9,
            "claim 8 bytes, but the file has 9",
        ),
        (
            tensor(r#"{"dtype":"F32","shape":[2],"data_offsets":[4,12]}"#),
            12,
            "tensor `x`: bad safetensors file: its data begins at 4, the data before it ends at 0",
        ),
        (
            tensor(r#"{"dtype":"F32","shape":[2],"data_offsets":[8,0]}"#),
            8,
            "tensor `x`: bad safetensors file: its data begins at 8 and ends at 0",
        ),
        (
            tensor(r#"{"dtype":"F32","shape":[3],"data_offsets":[0,8]}"#),
            8,
            "tensor `x`: bad safetensors file: F32 of shape [3] takes 12 bytes, its data_offsets hold 8",
        ),
        (
            tensor(r#"{"dtype":"Q9","shape":[2],"data_offsets":[0,8]}"#),
            8,
            "tensor `x`: bad safetensors file: unknown dtype \"Q9\"",
        ),
        (
            tensor(r#"{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}"#),
            8,
            "tensor `x`: bad safetensors file: its shape is [-2], not a list of sizes",
        ),
        (
            tensor(r#"{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8]}"#),
            8,
            "tensor `x`: bad safetensors file: the size of its shape [4294967296, 4294967296] overflows",
        ),
        (
            tensor(r#"{"dtype":"F32","shape":[2]}"#),
            8,
            "tensor `x`: bad safetensors file: its data_offsets is null, not a list of sizes",
        ),
        (r#"{"x":"#.into(), 8, "EOF"),
        (r#"{"a":"#.repeat(100_000), 0, "recursion"),
    ];
    for (header, data, expected) in cases {
        raw_safetensors(&path, &header, &vec![0; data]);
        refused(&path, expected);
    }
    // Nine tensors whose sizes are sound one by one and add up beyond 2⁶⁴.
    let end = |i: u128| (i * ((1 << 61) - 1)).min(u128::from(u64::MAX));
    let tensors: Vec<String> = (0..9)
        .map(|i| {
            let (from, to) = (end(i), end(i + 1));
            format!(
                r#""{i}":{{"dtype":"U8","shape":[{}],"data_offsets":[{from},{to}]}}"#,
                to - from
            )
        })
        .collect();
    raw_safetensors(&path, &format!("{{{}}}", tensors.join(",")), &[0; 8]);
    refused(
        &path,
        "the tensors claim 18446744073709551615 bytes, but the file has 8",
    );

    let mut bytes = u64::MAX.to_le_bytes().to_vec();
    bytes.extend(b"{}");
    std::fs::write(&path, &bytes).unwrap();
    refused(&path, "the header claims 18446744073709551615 bytes");
    bytes[..8].copy_from_slice(&100u64.to_le_bytes());
    std::fs::write(&path, &bytes).unwrap();
    refused(&path, "the header claims 100 bytes, but the file has 2");
}

#[test]
fn every_truncation_of_a_safetensors_file_is_refused() {
    let folder = Folder::new();
    let whole = folder.file("whole.safetensors");
    safetensors(&whole, &[Given::f32("x", &[2, 2], &weights(3, 4))], &[]);
    let bytes = std::fs::read(&whole).unwrap();
    let cut = folder.file("cut.safetensors");
    for len in 0..bytes.len() {
        std::fs::write(&cut, &bytes[..len]).unwrap();
        assert!(
            TensorFile::open(&cut).is_err(),
            "{len} of {} bytes",
            bytes.len()
        );
    }
}

#[test]
fn npy_of_every_type_is_read_as_written() {
    let folder = Folder::new();
    let path = folder.file("array.npy");
    let types = [
        ("<f8", DType::F64, 8),
        ("<f4", DType::F32, 4),
        ("<f2", DType::F16, 2),
        ("|i1", DType::I8, 1),
        ("<i2", DType::I16, 2),
        ("<i4", DType::I32, 4),
        ("<i8", DType::I64, 8),
        ("|u1", DType::U8, 1),
        ("<u2", DType::U16, 2),
        ("<u4", DType::U32, 4),
        ("<u8", DType::U64, 8),
        ("|b1", DType::Bool, 1),
    ];
    for (name, dtype, size) in types {
        let data: Vec<u8> = (0..6 * size).collect();
        raw_npy(&path, &npy_header(name, "False", "(2, 3)"), &data);
        let model = TensorFile::open(&path).expect(name);
        let tensor = model.tensors().next().expect("one array");
        assert_eq!(
            (tensor.name, tensor.dtype, tensor.shape),
            ("array", dtype, &[2, 3][..])
        );
        assert_eq!(tensor.bytes, data);
    }
    // One dimension has no order, nor has none.
    raw_npy(
        &path,
        &npy_header("<f4", "True", "(3,)"),
        &le(&[1.0, 2.0, 3.0]),
    );
    assert_eq!(
        TensorFile::open(&path)
            .unwrap()
            .tensors()
            .next()
            .unwrap()
            .shape,
        [3]
    );
    raw_npy(&path, &npy_header("<f4", "False", "()"), &le(&[1.0]));
    assert_eq!(
        TensorFile::open(&path)
            .unwrap()
            .tensors()
            .next()
            .unwrap()
            .values(),
        1
    );
}

#[test]
fn hostile_npy_is_refused() {
    let folder = Folder::new();
    let path = folder.file("hostile.npy");
    let cases = [
        (
            npy_header("<f4", "False", "(2, 3)"),
            23,
            "claims 24 bytes, but the file has 23",
        ),
        (
            npy_header("<f4", "False", "(2, 3)"),
            25,
            "claims 24 bytes, but the file has 25",
        ),
        (
            npy_header("<f4", "False", "(4294967296, 4294967296)"),
            8,
            "size overflows",
        ),
        (
            npy_header("<f4", "False", "(99999999999999999999,)"),
            8,
            "number in its header overflows",
        ),
        (
            npy_header("<f4", "False", "(0xFFFFFFFFFFFF, 0xFFFFFFFFFFFF)"),
            8,
            "not decimal",
        ),
        (npy_header("<f4", "False", "(1_000,)"), 8, "not decimal"),
        (npy_header("<f4", "False", "(-2,)"), 8, "negative"),
        (npy_header("<f4", "True", "(2, 3)"), 24, "Fortran order"),
        (npy_header(">f4", "False", "(2,)"), 8, "big-endian"),
        (npy_header("<c8", "False", "(1,)"), 8, "unknown dtype"),
        (npy_header("|O", "False", "(1,)"), 8, "unknown dtype"),
        (
            format!("{{'descr': {}", "(".repeat(60_000)),
            0,
            "nests too deeply",
        ),
        ("{'descr': '<f4'}".into(), 8, "missing key"),
        ("nonsense".into(), 8, "Python"),
    ];
    for (header, data, expected) in cases {
        raw_npy(&path, &header, &vec![0; data]);
        refused(&path, expected);
    }
    std::fs::write(&path, b"\x93NUMPY\x02\x00\xff\xff\xff\xff").unwrap();
    refused(&path, "longer than 65536 bytes");
    std::fs::write(&path, b"\x93NUMPY\x09\x00\x02\x00\x00\x00{}").unwrap();
    refused(&path, "unsupported version");
    raw_npy(&path, &npy_header("<f4", "False", "(2, 3)"), &[0; 24]);
    let bytes = std::fs::read(&path).unwrap();
    for len in 0..bytes.len() {
        std::fs::write(&path, &bytes[..len]).unwrap();
        assert!(
            TensorFile::open(&path).is_err(),
            "{len} of {} bytes",
            bytes.len()
        );
    }
}

#[test]
fn what_is_no_model_is_named() {
    let folder = Folder::new();
    let missing = folder.file("missing.safetensors");
    let error = TensorFile::open(&missing).unwrap_err();
    assert!(
        matches!(&error, Error::Io { action: "open", .. }),
        "{error}"
    );
    assert!(
        error.to_string().starts_with(&*missing.to_string_lossy()),
        "{error}"
    );

    let cases: [(&str, &[u8], &str); 4] = [
        ("empty", b"", "empty"),
        ("short", b"abc", "shorter than any header"),
        ("zip", b"PK\x03\x04 and so on", "first bytes belong to none"),
        (
            "text.json",
            b"[1, 2, 3, 4, 5]",
            "first bytes belong to none",
        ),
    ];
    for (name, bytes, expected) in cases {
        let path = folder.file(name);
        std::fs::write(&path, bytes).unwrap();
        refused(&path, expected);
    }
    let error = TensorFile::open(folder.path()).unwrap_err().to_string();
    assert!(error.contains("folder"), "{error}");
}

fn npy_header(descr: &str, fortran: &str, shape: &str) -> String {
    format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}\n")
}

fn refused(path: &std::path::Path, expected: &str) {
    let error = TensorFile::open(path).expect_err(expected).to_string();
    assert!(error.contains(expected), "{error}\nlacks: {expected}");
    assert!(error.starts_with(&*path.to_string_lossy()), "{error}");
    assert!(!error.contains('\n'), "{error}");
}
