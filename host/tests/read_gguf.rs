//! GGUF files that are refused: the message names the tensor, not its number alone.

use std::path::Path;

use crate::files::Folder;
use tercet_core::gguf::{GgufError, Reader};
use tercet_host::{Error, TensorFile};

/// The hostile files of the reader's own tests.
#[test]
fn a_refusal_that_counts_tensors_names_the_tensor() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../core/tests/hostile");
    let mut named = Vec::new();
    for entry in std::fs::read_dir(corpus).unwrap() {
        let path = entry.unwrap().path();
        let bytes = std::fs::read(&path).unwrap();
        let Err(refusal) = Reader::new(&bytes) else {
            continue;
        };
        let Some((offset, name)) = refusal
            .tensor()
            .and_then(|tensor| Reader::described(&bytes, tensor))
        else {
            continue;
        };
        // A description begins with the name's length and the name.
        let described = &bytes[offset..];
        assert_eq!(described[..8], (name.len() as u64).to_le_bytes());
        assert!(described[8..].starts_with(name.as_bytes()));
        let error = TensorFile::open(&path).unwrap_err();
        assert!(
            matches!(&error, Error::Tensor { tensor, .. } if tensor == name),
            "{error}"
        );
        let expected = format!("{refusal} (it is described at offset {offset})");
        assert!(error.to_string().ends_with(&expected), "{error}");
        named.push(std::mem::discriminant(&refusal));
    }
    let kinds = [
        GgufError::OffsetAlignment {
            tensor: 0,
            offset: 0,
        },
        GgufError::OffsetOrder {
            tensor: 0,
            offset: 0,
        },
        GgufError::PastEnd {
            tensor: 0,
            needed: 0,
            stored: 0,
        },
        GgufError::Overlap {
            tensor: 0,
            needed: 0,
            stored: 0,
        },
        GgufError::Gap {
            tensor: 0,
            needed: 0,
            stored: 0,
        },
    ];
    for kind in kinds {
        let kind_named = named.contains(&std::mem::discriminant(&kind));
        assert!(kind_named, "no file of the corpus is refused so: {kind}");
    }
}

/// The name at fault is that of the right tensor, not always the first.
#[test]
fn the_second_tensor_is_named_where_it_is_at_fault() {
    let folder = Folder::new();
    let path = folder.file("two.gguf");
    let mut bytes = b"GGUF".to_vec();
    bytes.extend(3u32.to_le_bytes());
    bytes.extend([2u64, 0].map(u64::to_le_bytes).concat());
    let mut at = 0;
    for (name, kind) in [("first weight", 0u32), ("☃", 99)] {
        at = bytes.len();
        bytes.extend((name.len() as u64).to_le_bytes());
        bytes.extend(name.as_bytes());
        bytes.extend(1u32.to_le_bytes());
        bytes.extend(8u64.to_le_bytes());
        bytes.extend(kind.to_le_bytes());
        bytes.extend(if kind == 0 { 0u64 } else { 32 }.to_le_bytes());
    }
    bytes.resize(bytes.len().next_multiple_of(32) + 64, 0);
    std::fs::write(&path, &bytes).unwrap();
    let expected = format!(
        "{}: tensor `☃`: bad GGUF file: tensor 1: tensor type 99 is unknown (it is described at offset {at})",
        path.display()
    );
    assert_eq!(TensorFile::open(&path).unwrap_err().to_string(), expected);
}

#[test]
fn two_tensors_of_one_name_are_refused_by_name() {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../core/tests/hostile/duplicate_tensor.gguf");
    let error = TensorFile::open(&path).unwrap_err();
    let Error::Tensor { tensor, reason, .. } = &error else {
        panic!("{error}");
    };
    assert_eq!(reason, "two tensors have this name");
    let bytes = std::fs::read(&path).unwrap();
    let names = Reader::new(&bytes).unwrap();
    assert_eq!(
        names.tensors().filter(|info| info.name == tensor).count(),
        2
    );
}
