//! Hostile GGUF files, each with the error it must end in, to the offset.
//!
//! The table builds every file; `tests/hostile/` holds the same bytes for other tools and as seeds for fuzzing.
//! `TERCET_OVERWRITE=1 cargo test -p tercet-core --test laws gguf_hostile` renews the folder.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use crate::support::gguf_bytes::Raw;
use tercet_core::gguf::{GgufError, LayoutError, MAX_DEPTH, Reader};

/// Reads all there is and gives the first error.
fn refusal(bytes: &[u8]) -> Option<GgufError> {
    Reader::new(bytes)
        .and_then(|reader| reader.check_names(&mut vec![0; reader.name_scratch_len()]))
        .err()
}

/// A file of one metadata entry, its key `k` at offset 24 and its value at offset 37.
fn entry(kind: u32) -> Raw {
    Raw::new(3, 0, 1).key("k", kind)
}

/// A file of one array: its element type at offset 37, its length at 41, its elements at 49.
fn array(kind: u32, len: u64) -> Raw {
    entry(9).u32(kind).u64(len)
}

/// A file of one tensor `t` and `data` bytes of data.
fn tensor(dims: &[u64], kind: u32, offset: u64, data: usize) -> Raw {
    let raw = Raw::new(3, 1, 0).tensor("t", dims, kind, offset);
    raw.pad(32).data(data)
}

/// A file of two f32 tensors of 8 values: 32 bytes each.
fn two(first: u64, second: u64, data: usize) -> Raw {
    Raw::new(3, 2, 0)
        .tensor("a", &[8], 0, first)
        .tensor("b", &[8], 0, second)
        .pad(32)
        .data(data)
}

/// Arrays of one element nested `depth` deep around a byte.
fn nested(depth: usize) -> Raw {
    let raw = (1..depth).fold(entry(9), |raw, _| raw.u32(9).u64(1));
    raw.u32(0).u64(1).bytes(&[7])
}

fn layout(error: LayoutError) -> GgufError {
    GgufError::Layout { tensor: 0, error }
}

/// Name, bytes and the error.
#[rustfmt::skip]
fn table() -> Vec<(&'static str, Raw, GgufError)> {
    use GgufError as E;
    let big_endian = [
        &b"GGUF"[..], &3u32.to_be_bytes(), &1u64.to_be_bytes(), &1u64.to_be_bytes(),
        &17u64.to_be_bytes(), b"general.alignment", &4u32.to_be_bytes(), &32u32.to_be_bytes(),
        &1u64.to_be_bytes(), b"t", &1u32.to_be_bytes(), &8u64.to_be_bytes(), &0u32.to_be_bytes(), &0u64.to_be_bytes(),
    ].concat();
    vec![
        // The header.
        ("empty", Raw::default(), E::Truncated { offset: 0, needed: 4 }),
        ("magic", Raw(b"GGML".to_vec()).u32(3).u64(0).u64(0), E::Magic),
        ("version_0", Raw::new(0, 0, 0), E::Version { version: 0 }),
        ("version_1", Raw(b"GGUF".to_vec()).u32(1).u32(0).u32(0), E::VersionOne),
        ("version_4", Raw::new(4, 0, 0), E::Version { version: 4 }),
        ("big_endian", Raw(big_endian).pad(32).data(32), E::BigEndian),
        ("header_cut", Raw(b"GGUF".to_vec()).u32(3).u64(0).u32(0), E::Truncated { offset: 16, needed: 8 }),
        ("entry_count_huge", Raw::new(3, 0, u64::MAX), E::EntryCount { count: u64::MAX }),
        ("entry_count_wraps", Raw::new(3, 0, u64::MAX / 14 + 2).data(64), E::EntryCount { count: u64::MAX / 14 + 2 }),
        ("entry_count_lies", Raw::new(3, 0, 2).key("k", 0).data(1).pad(32), E::KeyLength { offset: 38, len: 0 }),
        ("tensor_count_huge", Raw::new(3, u64::MAX, 0), E::TensorCount { count: u64::MAX }),
        ("tensor_count_high", Raw::new(3, 2, 0).tensor("t", &[0], 0, 0), E::TensorCount { count: 2 }),
        ("tensor_count_low", Raw::new(3, 0, 0).tensor("t", &[8], 0, 0).pad(32).data(32),
            E::Gap { tensor: 0, needed: 0, stored: 64 }),
        // Keys and values.
        ("key_empty", Raw::new(3, 0, 1).key("", 4).u32(0).data(2), E::KeyLength { offset: 24, len: 0 }),
        ("key_length_huge", Raw::new(3, 0, 1).u64(u64::MAX).data(64), E::StringLength { offset: 24, len: u64::MAX }),
        ("key_length_lies", Raw::new(3, 0, 1).u64(30).data(29), E::StringLength { offset: 24, len: 30 }),
        ("key_not_utf8", Raw::new(3, 0, 1).string(b"k\xff").u32(0).data(1), E::Utf8 { offset: 33 }),
        ("value_type_13", entry(13).data(8), E::ValueType { offset: 33, id: 13 }),
        ("value_type_huge", entry(u32::MAX).data(8), E::ValueType { offset: 33, id: u32::MAX }),
        ("value_cut", entry(10).u32(1), E::Truncated { offset: 37, needed: 8 }),
        ("bool_2", entry(7).bytes(&[2]), E::Bool { offset: 37, value: 2 }),
        ("string_length_lies", entry(8).u64(9).data(8), E::StringLength { offset: 37, len: 9 }),
        ("string_length_huge", entry(8).u64(u64::MAX).data(8), E::StringLength { offset: 37, len: u64::MAX }),
        ("string_not_utf8", entry(8).string(b"ab\xc3"), E::Utf8 { offset: 47 }),
        ("array_type_13", array(13, 0), E::ValueType { offset: 37, id: 13 }),
        ("array_length_lies", array(5, 3).data(11), E::ArrayLength { offset: 41, len: 3 }),
        ("array_length_huge", array(0, u64::MAX).data(8), E::ArrayLength { offset: 41, len: u64::MAX }),
        ("array_length_wraps", array(10, 1 << 61).data(8), E::ArrayLength { offset: 41, len: 1 << 61 }),
        ("array_length_wraps_32", array(4, 1 << 30).data(8), E::ArrayLength { offset: 41, len: 1 << 30 }),
        ("array_strings_lie", array(8, 2).string("a").data(7), E::Truncated { offset: 58, needed: 8 }),
        ("array_strings_not_utf8", array(8, 2).string("a").string(b"\x80"), E::Utf8 { offset: 66 }),
        ("array_bool_3", array(7, 3).bytes(&[0, 1, 3]), E::Bool { offset: 51, value: 3 }),
        ("array_arrays_lie", array(9, 2).u32(0).u64(12).data(12), E::Truncated { offset: 73, needed: 4 }),
        ("nested_too_deep", nested(MAX_DEPTH + 1), E::Depth { offset: 37 + 12 * MAX_DEPTH }),
        ("nested_100_deep", nested(100), E::Depth { offset: 37 + 12 * MAX_DEPTH }),
        ("alignment_0", Raw::new(3, 0, 1).alignment(0), E::Alignment { value: 0 }),
        ("alignment_3", Raw::new(3, 0, 1).alignment(3), E::Alignment { value: 3 }),
        ("alignment_48", Raw::new(3, 0, 1).alignment(48), E::Alignment { value: 48 }),
        ("alignment_u64", Raw::new(3, 0, 1).key("general.alignment", 10).u64(32), E::AlignmentType),
        ("alignment_huge", Raw::new(3, 1, 1).alignment(1 << 31).tensor("t", &[8], 0, 0).pad(32).data(32),
            E::PastEnd { tensor: 0, needed: 32, stored: 0 }),
        // Tensors.
        ("name_not_utf8", Raw::new(3, 1, 0).tensor(b"\xff", &[8], 0, 0).pad(32).data(32), E::Utf8 { offset: 32 }),
        ("name_length_huge", Raw::new(3, 1, 0).u64(u64::MAX).data(64), E::StringLength { offset: 24, len: u64::MAX }),
        ("dims_5", tensor(&[1; 5], 0, 0, 4), layout(LayoutError::Dimensions { count: 5 })),
        ("dims_huge", Raw::new(3, 1, 0).string("t").u32(u32::MAX).data(64),
            layout(LayoutError::Dimensions { count: u32::MAX.into() })),
        ("elements_overflow", tensor(&[1 << 32, 1 << 31], 0, 0, 32), layout(LayoutError::Elements)),
        ("elements_wrap", tensor(&[1 << 32, 1 << 32, 1, 8], 0, 0, 32), layout(LayoutError::Elements)),
        ("elements_overflow_times_0", tensor(&[1 << 63, 2, 0], 0, 0, 32), layout(LayoutError::Elements)),
        ("bytes_overflow", tensor(&[1 << 61], 28, 0, 32), layout(LayoutError::Bytes)),
        ("bytes_wrap_32", tensor(&[(1 << 30) + 8], 0, 0, 32),
            E::PastEnd { tensor: 0, needed: (1 << 32) + 32, stored: 32 }),
        ("type_removed", tensor(&[32], 4, 0, 32), layout(LayoutError::UnknownType { id: 4 })),
        ("type_unknown", tensor(&[32], 43, 0, 32), layout(LayoutError::UnknownType { id: 43 })),
        ("row_not_blocks", tensor(&[255], 35, 0, 66), layout(LayoutError::PartialRow { row: 255, block: 256 })),
        ("row_not_blocks_but_elements", tensor(&[128, 2], 35, 0, 66),
            layout(LayoutError::PartialRow { row: 128, block: 256 })),
        ("fork_q2_0_groups_of_128", tensor(&[2048], 42, 0, 16 * 34),
            E::PastEnd { tensor: 0, needed: 32 * 18, stored: 16 * 34 }),
        ("fork_q2_0_before_another", Raw::new(3, 2, 0).tensor("a", &[2048], 42, 0).tensor("b", &[8], 0, 16 * 34)
            .pad(32).data(16 * 34 + 32), E::Overlap { tensor: 0, needed: 32 * 18, stored: 16 * 34 }),
        ("fork_tq2_0_longer", tensor(&[256], 35, 0, 66 + 64), E::Gap { tensor: 0, needed: 66, stored: 130 }),
        ("offset_unaligned", two(0, 33, 65), E::OffsetAlignment { tensor: 1, offset: 33 }),
        ("offset_unaligned_64", Raw::new(3, 2, 1).alignment(64).tensor("a", &[8], 0, 0).tensor("b", &[8], 0, 32)
            .pad(64).data(64), E::OffsetAlignment { tensor: 1, offset: 32 }),
        ("offset_order", two(32, 0, 64), E::OffsetOrder { tensor: 1, offset: 0 }),
        ("offset_shared", two(0, 0, 32), E::Overlap { tensor: 0, needed: 32, stored: 0 }),
        ("offset_first_not_0", two(32, 64, 96), E::Gap { tensor: 0, needed: 0, stored: 32 }),
        ("offset_gap", two(0, 64, 96), E::Gap { tensor: 0, needed: 32, stored: 64 }),
        ("offset_past_end", two(0, 96, 64), E::Gap { tensor: 0, needed: 32, stored: 64 }),
        ("offset_huge", two(0, 0xFFFF_FFFF_FFFF_FFE0, 32), E::PastEnd { tensor: 1, needed: 32, stored: 0 }),
        ("offset_wraps_32", two(0, 1 << 32, 32), E::PastEnd { tensor: 1, needed: 32, stored: 0 }),
        ("offset_empty_past_end", tensor(&[0], 0, 32, 0), E::PastEnd { tensor: 0, needed: 0, stored: 0 }),
        ("data_cut", two(0, 32, 63), E::PastEnd { tensor: 1, needed: 32, stored: 31 }),
        ("data_cut_before_last", two(0, 32, 31), E::PastEnd { tensor: 0, needed: 32, stored: 31 }),
        ("data_missing", Raw::new(3, 1, 0).tensor("t", &[8], 0, 0), E::PastEnd { tensor: 0, needed: 32, stored: 0 }),
        ("data_trailing", two(0, 32, 96), E::Gap { tensor: 1, needed: 32, stored: 64 }),
        // Names.
        ("duplicate_key", Raw::new(3, 0, 3).key("k", 0).data(1).key("l", 0).data(1).key("k", 4).u32(1),
            E::DuplicateKey { offset: 52 }),
        ("duplicate_tensor", Raw::new(3, 3, 0).tensor("t", &[8], 0, 0).tensor("u", &[8], 0, 32)
            .tensor("t", &[8], 0, 64).pad(32).data(96), E::DuplicateTensor { offset: 24 + 2 * 33 }),
    ]
}

#[test]
fn every_hostile_file_ends_in_its_named_error() {
    for (name, raw, error) in table() {
        assert_eq!(refusal(&raw.0), Some(error), "{name}");
    }
}

#[test]
fn the_folder_holds_the_files_of_the_table() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/hostile");
    let path = |name: &str| folder.join(name).with_extension("gguf");
    if std::env::var_os("TERCET_OVERWRITE").is_some() {
        for (name, raw, _) in table() {
            fs::write(path(name), raw.0).unwrap();
        }
    }
    for (name, raw, _) in table() {
        let found = fs::read(path(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(found, raw.0, "{name}");
    }
    let names: BTreeSet<_> = table().iter().map(|(name, ..)| path(name)).collect();
    let files = fs::read_dir(&folder).unwrap();
    let files: BTreeSet<_> = files.map(|entry| entry.unwrap().path()).collect();
    assert_eq!(names, files);
}

#[test]
fn limits_themselves_are_taken() {
    let key = "k".repeat(65_535);
    for raw in [
        nested(MAX_DEPTH),
        Raw::new(3, 0, 1).key(&key, 0).data(1),
        Raw::new(2, 0, 0),
        Raw::new(3, 0, 1).alignment(1),
        Raw::new(3, 0, 1).alignment(1 << 31),
        tensor(&[1, 1, 1, 8], 0, 0, 32),
        tensor(&[], 0, 0, 4),
        tensor(&[0, 7], 35, 0, 0),
        // The last padding, whole or in part.
        tensor(&[9], 0, 0, 64),
        tensor(&[9], 0, 0, 36),
        tensor(&[128], 36, 0, 64),
        Raw::new(3, 1, 0)
            .tensor("n".repeat(200), &[8], 0, 0)
            .pad(32)
            .data(32),
    ] {
        assert_eq!(refusal(&raw.0), None);
    }
    let long = Raw::new(3, 0, 1).key(&"k".repeat(65_536), 0).data(1);
    let error = GgufError::KeyLength {
        offset: 24,
        len: 65_536,
    };
    assert_eq!(refusal(&long.0), Some(error));
}

#[test]
fn scratch_too_small_is_refused() {
    let raw = two(0, 32, 64);
    let reader = Reader::new(&raw.0).unwrap();
    assert_eq!(reader.name_scratch_len(), 2);
    let error = GgufError::Scratch { needed: 2 };
    assert_eq!(reader.check_names(&mut [0]), Err(error));
}

#[test]
fn inspection_reads_a_fork_and_a_cut_file() {
    let fork = Raw::new(3, 2, 0)
        .tensor("fork", &[2048], 42, 0)
        .tensor("new", &[7], 99, 16 * 34)
        .pad(32)
        .data(16 * 34 + 40);
    let reader = Reader::inspect(&fork.0).unwrap();
    let found: Vec<_> = reader
        .tensors()
        .map(|info| (info.stored_len(), info.data.len(), info.fits()))
        .collect();
    assert_eq!(found, [(544, 544, false), (40, 40, false)]);
    let group_128 = 2048 / 128 * (128 / 4 + 2);
    assert_eq!(reader.tensor("fork").unwrap().stored_len(), group_128);

    let cut = two(0, 32, 40);
    let reader = Reader::inspect(&cut.0).unwrap();
    let fits: Vec<_> = reader.tensors().map(|info| info.fits()).collect();
    assert_eq!(fits, [true, false]);
}
