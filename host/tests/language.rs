//! Files of language models: what is written is what was given, and nothing else; what contradicts itself is refused.

use std::path::Path;

use half::f16;
use tercet_core::block::{BlockError, Format, decode};
use tercet_core::gguf::{Reader, Value};
use tercet_host::file::output::Output;
use tercet_host::language::{
    Description, Extras, Merging, Parameters, Slot, TokenKind, Vocabulary, Writer, byte_rows,
    specs, ternary, tiny,
};
use tercet_host::{DType, Error, TensorFile};

use crate::files::Folder;

const TERNARY: [Format; 3] = [Format::Tq1_0, Format::Tq2_0, Format::Q2_0];

/// A tensor's values, whatever its type.
fn values(model: &TensorFile, name: &str) -> Vec<f32> {
    let tensor = model.get(name).unwrap();
    match tensor.dtype {
        DType::Block(format) => {
            let mut values = vec![0.0; tensor.values()];
            decode(format, tensor.bytes, &mut values).unwrap();
            values
        }
        DType::F16 => {
            let halves = tensor.bytes.as_chunks().0.iter();
            halves.map(|&b| f16::from_le_bytes(b).to_f32()).collect()
        }
        DType::F32 => {
            let floats = tensor.bytes.as_chunks().0.iter();
            floats.map(|&b| f32::from_le_bytes(b)).collect()
        }
        other => panic!("{name} is {}", other.name()),
    }
}

#[test]
fn a_tiny_bitnet_has_the_same_weights_in_every_type() {
    let folder = Folder::new();
    let write = |name: &str, dtype| {
        let path = folder.file(name);
        tiny::bitnet(&path, tiny::BITNET, 7, dtype, false).unwrap();
        TensorFile::open(path).unwrap()
    };
    let floats = write("f32.gguf", DType::F32);
    let mut others = vec![write("f16.gguf", DType::F16)];
    others.extend(TERNARY.map(|format| write(format.name(), DType::Block(format))));
    for tensor in floats.tensors() {
        let wanted = values(&floats, tensor.name);
        assert!(wanted.iter().any(|&x| x != 0.0), "{}", tensor.name);
        for other in &others {
            let name = tensor.name;
            assert!(
                values(other, name) == wanted,
                "{name} of {:?}",
                other.path()
            );
        }
    }
}

#[test]
fn a_ternary_matrix_has_one_scale_and_a_row_of_the_embedding_too() {
    let folder = Folder::new();
    for format in TERNARY {
        let path = folder.file(format.name());
        tiny::bitnet(&path, tiny::BITNET, 3, DType::Block(format), false).unwrap();
        let model = TensorFile::open(path).unwrap();
        let scales = |format: Format, bytes: &[u8]| -> Vec<f16> {
            let blocks = bytes.chunks_exact(format.bytes());
            blocks.map(|block| format.scale(block)).collect()
        };
        for tensor in model.tensors().filter(|tensor| tensor.shape.len() == 2) {
            if tensor.name == "token_embd.weight" {
                assert_eq!(tensor.dtype, DType::Block(Format::Q8_0));
                let row = tensor.bytes.len() / tensor.shape[0];
                for row in tensor.bytes.chunks_exact(row) {
                    let scales = scales(Format::Q8_0, row);
                    assert!(scales.iter().all(|scale| *scale == scales[0]));
                }
            } else {
                assert_eq!(tensor.dtype, DType::Block(format));
                let scales = scales(format, tensor.bytes);
                assert!(scales.iter().all(|scale| *scale == scales[0]));
            }
        }
    }
}

#[test]
fn zeros_keep_the_scale() {
    for format in TERNARY {
        let bytes = ternary(format, &[0; 256], f16::from_f32(0.5)).unwrap();
        for block in bytes.chunks_exact(format.bytes()) {
            assert_eq!(format.scale(block), f16::from_f32(0.5));
        }
        let mut values = [1.0; 256];
        decode(format, &bytes, &mut values).unwrap();
        assert_eq!(values, [0.0; 256]);
    }
    let scale = f16::ONE;
    assert_eq!(
        ternary(Format::Q8_0, &[0; 32], scale),
        Err(BlockError::NotTernary)
    );
    let partial = ternary(Format::Tq2_0, &[0; 64], scale);
    assert!(matches!(partial, Err(BlockError::Partial { .. })));
    let partial = byte_rows(48, &[0; 96], &[scale; 2]);
    assert!(matches!(partial, Err(BlockError::Partial { .. })));
    let short = byte_rows(32, &[0; 32], &[scale; 2]);
    assert!(matches!(
        short,
        Err(BlockError::Length {
            expected: 64,
            found: 32
        })
    ));
}

#[test]
fn a_file_is_the_same_bytes_each_time_and_says_nothing_of_where_it_was_made() {
    let folder = Folder::new();
    let (one, two) = (folder.file("one.gguf"), folder.file("two.gguf"));
    let format = DType::Block(Format::Tq2_0);
    tiny::bitnet(&one, tiny::BITNET, 1, format, false).unwrap();
    tiny::bitnet(&two, tiny::BITNET, 1, format, false).unwrap();
    let bytes = std::fs::read(&one).unwrap();
    assert!(bytes == std::fs::read(two).unwrap());
    let reader = Reader::new(&bytes).unwrap();
    let allowed = [
        "general.architecture",
        "general.file_type",
        "general.quantization_version",
    ];
    for (key, _) in reader.metadata() {
        let known = key.starts_with("bitnet.") || key.starts_with("tokenizer.");
        assert!(known || allowed.contains(&key), "{key}");
    }
    assert_eq!(reader.get("general.file_type"), Some(Value::U32(37)));
    assert_eq!(
        reader.get("bitnet.rope.dimension_count"),
        Some(Value::U32(64))
    );
    let merges = reader
        .get("tokenizer.ggml.merges")
        .unwrap()
        .as_array()
        .unwrap();
    assert!(merges.is_empty(), "llama.cpp wants the key");
    assert!(matches!(
        tiny::bitnet(&one, tiny::BITNET, 1, format, false),
        Err(Error::OutputExists { .. })
    ));
}

#[test]
fn a_tiny_llama_has_what_a_llama_may_have() {
    let folder = Folder::new();
    let path = folder.file("llama.gguf");
    tiny::llama(&path, tiny::LLAMA, 1, false).unwrap();
    let model = TensorFile::open(&path).unwrap();
    for (name, dtype, shape) in [
        ("token_embd.weight", DType::F16, &[297, 96][..]),
        ("rope_freqs.weight", DType::F32, &[12]),
        ("blk.1.attn_q.weight", DType::Block(Format::Q8_0), &[96, 96]),
        ("blk.1.attn_k.weight", DType::Block(Format::Q4_1), &[48, 96]),
        ("blk.1.attn_k.bias", DType::F32, &[48]),
        ("blk.0.attn_v.weight", DType::Bf16, &[48, 96]),
        (
            "blk.0.ffn_up.weight",
            DType::Block(Format::Q5_1),
            &[160, 96],
        ),
        (
            "blk.0.attn_output.weight",
            DType::Block(Format::Q5_0),
            &[96, 96],
        ),
        ("blk.0.ffn_down.weight", DType::F32, &[96, 160]),
        ("output.weight", DType::Block(Format::Q8_0), &[297, 96]),
    ] {
        let tensor = model.get(name).unwrap_or_else(|| panic!("no {name}"));
        assert_eq!((tensor.dtype, tensor.shape), (dtype, shape), "{name}");
    }
}

/// Tries to write a description; gives the refusal.
fn refusal(folder: &Folder, description: &Description<'_>) -> String {
    let slots = description.parameters.tensors(Extras::default());
    let types: Vec<(&Slot, DType)> = slots.iter().map(|slot| (slot, DType::F32)).collect();
    let path = folder.file("refused.gguf");
    let specs = specs(&path, &types).unwrap();
    let output = Output::create(&path, std::iter::empty::<&Path>(), false).unwrap();
    let error = Writer::new(output, description, &specs).unwrap_err();
    assert!(folder.names().is_empty(), "{:?}", folder.names());
    error.to_string()
}

#[test]
fn what_contradicts_itself_is_refused() {
    let folder = Folder::new();
    let whole = Description {
        parameters: tiny::BITNET,
        vocabulary: Vocabulary::bytes(),
        extras: Vec::new(),
        dtype: DType::F32,
    };
    type Edit = fn(&mut Parameters);
    let parameters: [(Edit, &str); 8] = [
        (|p| p.block_count = 0, "block_count is 0"),
        (|p| p.head_count_kv = 3, "4 heads do not divide among 3"),
        (|p| p.head_length = 63, "a head of 63 values has no pairs"),
        (|p| p.head_length = 32, "have 256 values in all, not 128"),
        (|p| p.rms_epsilon = f32::NAN, "rms_epsilon is NaN"),
        (|p| p.rope_base = 0.0, "rope_base is 0"),
        (|p| p.rope_factor = Some(-1.0), "rope_factor is -1"),
        (
            |p| p.vocab_size = 260,
            "vocab_size is 260, but the vocabulary has 259",
        ),
    ];
    for (edit, said) in parameters {
        let mut description = whole.clone();
        edit(&mut description.parameters);
        let line = refusal(&folder, &description);
        assert!(line.contains(said), "{line}");
    }
    let spm = |scores| Merging::Spm {
        scores,
        add_space_prefix: true,
    };
    let bpe = |merge: &str| Merging::Bpe {
        pre: "gpt-2".into(),
        merges: vec![merge.into()],
    };
    let mut edits: Vec<(Vocabulary, &str)> = Vec::new();
    let mut edit = |change: &dyn Fn(&mut Vocabulary), said| {
        let mut vocabulary = Vocabulary::bytes();
        change(&mut vocabulary);
        edits.push((vocabulary, said));
    };
    edit(
        &|v| v.tokens[5] = "A".into(),
        "tokens 5 and 65 are both `A`",
    );
    edit(
        &|v| v.kinds.push(TokenKind::Normal),
        "259 tokens have 260 kinds",
    );
    edit(
        &|v| v.bos = Some(259),
        "bos_token_id is 259, but there are 259 tokens",
    );
    edit(
        &|v| v.merging = spm(vec![0.0; 3]),
        "259 tokens have 3 scores",
    );
    edit(
        &|v| v.merging = spm(vec![f32::NAN; 259]),
        "the score of token 0",
    );
    edit(&|v| v.merging = bpe("ab"), "merge 0 is not a pair: `ab`");
    for (vocabulary, said) in edits {
        let description = Description {
            vocabulary,
            ..whole.clone()
        };
        let line = refusal(&folder, &description);
        assert!(line.contains(said), "{line}");
    }
    let description = Description {
        dtype: DType::I8,
        ..whole
    };
    let line = refusal(&folder, &description);
    assert!(line.contains("weights cannot be written as i8"), "{line}");
}

#[test]
fn rows_that_do_not_divide_into_blocks_are_refused_by_name() {
    let slots = tiny::LLAMA.tensors(Extras::default());
    let types: Vec<(&Slot, DType)> = slots
        .iter()
        .map(|slot| (slot, DType::Block(Format::Tq2_0)))
        .collect();
    let error = specs(Path::new("out.gguf"), &types)
        .unwrap_err()
        .to_string();
    for part in ["tensor `token_embd.weight`", "96", "256"] {
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn a_writer_takes_each_tensor_once_and_in_full() {
    let folder = Folder::new();
    let path = folder.file("out.gguf");
    let slots = tiny::BITNET.tensors(Extras::default());
    let types: Vec<(&Slot, DType)> = slots.iter().map(|slot| (slot, DType::F16)).collect();
    let specs = specs(&path, &types).unwrap();
    let description = Description {
        parameters: tiny::BITNET,
        vocabulary: Vocabulary::bytes(),
        extras: vec![("tercet.cache".into(), Value::String("int8"))],
        dtype: DType::F16,
    };
    let output = Output::create(&path, std::iter::empty::<&Path>(), false).unwrap();
    let mut writer = Writer::new(output, &description, &specs).unwrap();
    let embedding = vec![0.5; 259 * 256];
    let said = |result: Result<(), Error>| result.unwrap_err().to_string();
    let line = said(writer.values(&embedding[1..]));
    assert!(
        line.contains("`token_embd.weight`: it has 66304 values, but 66303 were given"),
        "{line}"
    );
    let line = said(writer.bytes(&[0; 3]));
    assert!(
        line.contains("it needs 132608 bytes, but 3 were given"),
        "{line}"
    );
    let mut wrong = embedding.clone();
    wrong[9] = 1e6;
    let line = said(writer.values(&wrong));
    assert!(
        line.contains("value 9 is 1000000, too large for f16"),
        "{line}"
    );
    for slot in &slots {
        writer.values(&vec![0.5; slot.values()]).unwrap();
    }
    let line = said(writer.bytes(&[]));
    assert!(line.contains("every tensor is written"), "{line}");
    let len = writer.finish().unwrap();
    let bytes = std::fs::read(&path).unwrap();
    assert_eq!(len, bytes.len() as u64);
    let reader = Reader::new(&bytes).unwrap();
    assert_eq!(reader.get("tercet.cache"), Some(Value::String("int8")));

    let output = Output::create(&path, std::iter::empty::<&Path>(), true).unwrap();
    let writer = Writer::new(output, &description, &specs).unwrap();
    let line = writer.finish().unwrap_err().to_string();
    assert!(
        line.contains("`token_embd.weight`: it was not written"),
        "{line}"
    );
    assert!(std::fs::read(&path).unwrap() == bytes);
}
