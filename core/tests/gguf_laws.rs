//! Laws of the GGUF reader and writer over random files.

use crate::support::gguf_bytes::Raw;
use proptest::collection::vec;
use proptest::prelude::*;
use tercet_core::gguf::{
    ALIGNMENT_KEY, Array, Full, GgufError, LayoutError, MAX_DEPTH, Reader, Refusal, Sink,
    SliceSink, TensorSpec, TensorType, Value, ValueType, WriteError, Writer,
};

/// A sink that never fails.
#[derive(Debug, Default)]
struct Bytes(Vec<u8>);

impl Sink for Bytes {
    type Error = std::convert::Infallible;

    fn write(&mut self, bytes: &[u8]) -> Result<(), Self::Error> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }
}

/// A file's contents, owned.
#[derive(Clone, Debug)]
struct Contents {
    entries: Vec<(String, Value<'static>)>,
    tensors: Vec<(TensorSpec<'static>, Vec<u8>)>,
}

impl Contents {
    fn write(&self, piece: usize) -> Vec<u8> {
        let specs: Vec<_> = self.tensors.iter().map(|(spec, _)| *spec).collect();
        let mut writer = Writer::new(Bytes::default(), self.entries.len() as u64, &specs).unwrap();
        for (key, value) in &self.entries {
            writer.entry(key, *value).unwrap();
        }
        let mut writer = writer.into_data().unwrap();
        for (spec, data) in &self.tensors {
            writer.begin(spec.name).unwrap();
            for piece in data.chunks(piece) {
                writer.write(piece).unwrap();
            }
        }
        writer.finish().unwrap().0
    }

    /// The same file by an encoder that shares nothing with the writer's.
    fn encode(&self) -> Vec<u8> {
        let mut raw = Raw::new(3, self.tensors.len() as u64, self.entries.len() as u64);
        let mut alignment = 32;
        for (key, value) in &self.entries {
            raw = encode(raw.key(key, value.kind().id()), value);
            if key == ALIGNMENT_KEY {
                alignment = value.as_u64().unwrap() as usize;
            }
        }
        let mut offset = 0;
        for (spec, data) in &self.tensors {
            raw = raw.tensor(spec.name, spec.shape.dims(), spec.kind.0, offset as u64);
            offset = (offset + data.len()).next_multiple_of(alignment);
        }
        self.tensors
            .iter()
            .fold(raw.pad(alignment), |raw, (_, data)| {
                raw.bytes(data).pad(alignment)
            })
            .0
    }
}

fn encode(raw: Raw, value: &Value<'_>) -> Raw {
    match *value {
        Value::U8(x) => raw.bytes(&[x]),
        Value::I8(x) => raw.bytes(&[x as u8]),
        Value::Bool(x) => raw.bytes(&[x as u8]),
        Value::U16(x) => raw.bytes(&x.to_le_bytes()),
        Value::I16(x) => raw.bytes(&x.to_le_bytes()),
        Value::U32(x) => raw.u32(x),
        Value::I32(x) => raw.u32(x as u32),
        Value::F32(x) => raw.u32(x.to_bits()),
        Value::U64(x) => raw.u64(x),
        Value::I64(x) => raw.u64(x as u64),
        Value::F64(x) => raw.u64(x.to_bits()),
        Value::String(text) => raw.string(text),
        Value::Array(array) => {
            let raw = raw.u32(array.kind().id()).u64(array.len() as u64);
            array.iter().fold(raw, |raw, item| encode(raw, &item))
        }
        _ => unreachable!("thirteen types"),
    }
}

/// An array of a slice that lives as long as the test program: values borrow, and strategies own.
fn leak<T: 'static>(items: Vec<T>) -> Array<'static>
where
    Array<'static>: From<&'static [T]>,
{
    Array::from(&*Vec::leak(items))
}

fn text() -> impl Strategy<Value = &'static str> {
    ".{0,9}".prop_map(|text| &*text.leak())
}

fn array(depth: u32) -> BoxedStrategy<Array<'static>> {
    fn of<T: Arbitrary + 'static>() -> BoxedStrategy<Array<'static>>
    where
        Array<'static>: From<&'static [T]>,
    {
        vec(any::<T>(), 0..9).prop_map(leak).boxed()
    }
    let flat = prop_oneof![
        of::<u8>(),
        of::<i8>(),
        of::<u16>(),
        of::<i16>(),
        of::<u32>(),
        of::<i32>(),
        of::<f32>(),
        of::<bool>(),
        of::<u64>(),
        of::<i64>(),
        of::<f64>(),
        vec(text(), 0..9).prop_map(leak),
    ];
    match depth {
        0 => flat.boxed(),
        _ => prop_oneof![3 => flat, 1 => vec(array(depth - 1), 0..4).prop_map(leak)].boxed(),
    }
}

fn value() -> impl Strategy<Value = Value<'static>> {
    prop_oneof![
        any::<u8>().prop_map(Value::from),
        any::<i8>().prop_map(Value::from),
        any::<u16>().prop_map(Value::from),
        any::<i16>().prop_map(Value::from),
        any::<u32>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        any::<f32>().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        text().prop_map(Value::from),
        array(3).prop_map(Value::Array),
    ]
}

fn tensor(index: usize) -> impl Strategy<Value = (TensorSpec<'static>, Vec<u8>)> {
    let kinds = TensorType::all().iter().copied();
    let kinds: Vec<_> = kinds.chain([TensorType::I2_S]).collect();
    let sides = vec(0u64..4, 0..4);
    (proptest::sample::select(kinds), 0u64..3, sides, any::<u8>()).prop_map(
        move |(kind, blocks, sides, fill)| {
            let row = blocks * kind.layout().map_or(4, |layout| layout.block_len.into());
            let dims = [&[row][..], &sides].concat();
            let spec = TensorSpec::new(format!("t{index}").leak(), &dims, kind).unwrap();
            let len = spec.byte_len().unwrap() as usize;
            let data = (0..len).map(|i| fill.wrapping_add(i as u8)).collect();
            (spec, data)
        },
    )
}

fn contents() -> impl Strategy<Value = Contents> {
    let alignment = (3u32..8).prop_map(|log| 1 << log);
    let tensors = (0usize..5).prop_flat_map(|n| (0..n).map(tensor).collect::<Vec<_>>());
    (vec(value(), 0..7), tensors, proptest::option::of(alignment)).prop_map(
        |(values, tensors, alignment)| {
            let entries = values.into_iter().enumerate();
            let mut entries: Vec<_> = entries.map(|(i, v)| (format!("k.{i}"), v)).collect();
            let alignment = alignment.map(|value| (ALIGNMENT_KEY.into(), Value::U32(value)));
            entries.extend(alignment);
            Contents { entries, tensors }
        },
    )
}

/// Reads everything a reader can reach, down to the innermost value.
fn walk(reader: &Reader<'_>) -> usize {
    fn values(value: Value<'_>) -> usize {
        match value {
            Value::Array(array) => {
                assert_eq!(array.iter().count(), array.len());
                array.iter().map(values).sum()
            }
            _ => 1,
        }
    }
    let entries = reader.metadata();
    assert_eq!(entries.clone().count(), entries.len());
    let tensors = reader.tensors();
    assert_eq!(tensors.clone().count(), tensors.len());
    let _ = reader.check_names(&mut vec![0; reader.name_scratch_len()]);
    for tensor in tensors {
        assert!(reader.tensor(tensor.name).is_some());
        assert!(tensor.data.len() <= tensor.stored.len());
    }
    entries.map(|(_, value)| values(value)).sum()
}

/// Carries a file through the writer.
fn rewrite(reader: &Reader<'_>) -> Result<Vec<u8>, WriteError<std::convert::Infallible>> {
    let specs: Vec<_> = reader
        .tensors()
        .map(|info| TensorSpec {
            name: info.name,
            shape: info.shape,
            kind: info.kind,
        })
        .collect();
    let mut writer = Writer::new(Bytes::default(), reader.metadata().len() as u64, &specs)?;
    for (key, value) in reader.metadata() {
        writer.entry(key, value)?;
    }
    let mut writer = writer.into_data()?;
    for info in reader.tensors() {
        writer.begin(info.name)?;
        writer.write(info.data)?;
    }
    Ok(writer.finish()?.0)
}

proptest! {
    #[test]
    fn the_first_repeated_name_is_found(names in vec(0u16..300, 0..60)) {
        let tensors = names.iter().map(|name| name.to_string());
        let raw = Raw::new(3, names.len() as u64, 0);
        let (raw, offsets) = tensors.fold((raw, Vec::new()), |(raw, mut offsets), name| {
            offsets.push(raw.0.len());
            (raw.tensor(name, &[0], 0, 0), offsets)
        });
        let mut seen = std::collections::HashSet::new();
        let repeated = names.iter().position(|name| !seen.insert(name));
        let error = repeated.map(|i| GgufError::DuplicateTensor { offset: offsets[i] });
        let reader = Reader::new(&raw.0).unwrap();
        let mut scratch = vec![u32::MAX; names.len() + 1];
        prop_assert_eq!(reader.check_names(&mut scratch).err(), error);
    }

    #[test]
    fn what_is_written_is_read(contents in contents(), piece in 1usize..300) {
        let bytes = contents.write(piece);
        prop_assert_eq!(&bytes, &contents.encode());
        let reader = Reader::new(&bytes).unwrap();
        prop_assert_eq!(reader.check_names(&mut vec![0; reader.name_scratch_len()]), Ok(()));
        prop_assert_eq!(reader.metadata().len(), contents.entries.len());
        for ((key, found), (wanted_key, wanted)) in reader.metadata().zip(&contents.entries) {
            prop_assert_eq!(key, wanted_key);
            prop_assert_eq!(&found, wanted);
            prop_assert_eq!(encode(Raw::default(), &found).0, encode(Raw::default(), wanted).0);
        }
        prop_assert_eq!(reader.tensors().len(), contents.tensors.len());
        for (found, (spec, data)) in reader.tensors().zip(&contents.tensors) {
            prop_assert_eq!((found.name, found.shape, found.kind), (spec.name, spec.shape, spec.kind));
            prop_assert_eq!(found.data, data);
        }
        prop_assert_eq!(rewrite(&reader).unwrap(), bytes);
    }

    #[test]
    fn every_prefix_is_refused(contents in contents()) {
        let bytes = contents.write(usize::MAX);
        // What follows the last byte that belongs to a tensor or a description is padding and may be missing.
        let reader = Reader::new(&bytes).unwrap();
        let data_at = bytes.len() - reader.data().len();
        let data = reader.tensors().map(|info| info.offset as usize + info.data.len()).max();
        let needed = match data {
            Some(end) if end > 0 => data_at + end,
            _ => data_at - (reader.alignment() as usize - 1).min(data_at),
        };
        for len in 0..needed {
            let error = Reader::new(&bytes[..len]).err();
            prop_assert!(error.is_some(), "{} of {} bytes", len, bytes.len());
            if let Ok(reader) = Reader::inspect(&bytes[..len]) {
                walk(&reader);
            }
        }
    }

    #[test]
    fn no_mutation_panics(
        contents in contents(),
        changes in vec((any::<prop::sample::Index>(), prop::sample::select(vec![
            0u8, 1, 2, 3, 7, 8, 9, 10, 13, 31, 32, 0x7F, 0x80, 0xFF,
        ])), 1..6),
    ) {
        let mut bytes = contents.write(usize::MAX);
        // Data is never looked at: change what comes before it.
        let header = bytes.len() - Reader::new(&bytes).unwrap().data().len();
        for (at, value) in changes {
            bytes[at.index(header)] = value;
        }
        if let Ok(reader) = Reader::inspect(&bytes) {
            walk(&reader);
        }
        if let Ok(reader) = Reader::new(&bytes) {
            match rewrite(&reader) {
                Ok(again) => {
                    let again = Reader::new(&again).unwrap();
                    prop_assert_eq!(walk(&again), walk(&reader));
                }
                // The writer is stricter than the reader.
                Err(error) => prop_assert!(matches!(error, WriteError::Refused(
                    Refusal::Alignment { .. } | Refusal::NameLength { .. }
                )), "{}", error),
            }
        }
    }
}

#[test]
fn a_slice_too_short_is_reported_with_what_it_needs() {
    let mut slice = [0; 23];
    let error = Writer::new(SliceSink::new(&mut slice), 0, &[]).unwrap_err();
    assert_eq!(error, WriteError::Sink(Full { needed: 24 }));
}

#[test]
fn the_writer_refuses_what_the_format_does_not_hold() {
    let header = |entries| Writer::new(Bytes::default(), entries, &[]).unwrap();
    let refused = |result: Result<(), WriteError<_>>| match result {
        Err(WriteError::Refused(refusal)) => refusal,
        other => panic!("{other:?}"),
    };
    let error = |len| Refusal::KeyLength { len };
    assert_eq!(refused(header(1).entry("", 1u8)), error(0));
    assert_eq!(
        refused(header(1).entry(&"k".repeat(65_536), 1u8)),
        error(65_536)
    );
    let error = Refusal::EntryCount { announced: 0 };
    assert_eq!(refused(header(0).entry("k", 1u8)), error);
    let error = Refusal::EntryCount { announced: 1 };
    assert_eq!(header(1).into_data().unwrap_err(), error.into());
    for value in [0, 3, 4, 24] {
        let error = Refusal::Alignment { value };
        assert_eq!(refused(header(1).entry(ALIGNMENT_KEY, value)), error);
    }
    let error = Refusal::AlignmentType;
    assert_eq!(refused(header(1).entry(ALIGNMENT_KEY, 32u64)), error);

    let deepest = (1..MAX_DEPTH).fold(leak(vec![1u8]), |inner, _| leak(vec![inner]));
    header(1).entry("k", Value::Array(deepest)).unwrap();
    let deeper = Value::Array(leak(vec![deepest]));
    assert_eq!(refused(header(1).entry("k", deeper)), Refusal::Depth);

    let name = "n".repeat(65);
    let long = [TensorSpec::new(&name, &[1], TensorType::F32).unwrap()];
    let error = Refusal::NameLength { tensor: 0, len: 65 };
    assert_eq!(
        Writer::new(Bytes::default(), 0, &long).unwrap_err(),
        error.into()
    );
    let error = LayoutError::UnknownType { id: 43 };
    assert_eq!(TensorSpec::new("t", &[1], TensorType(43)), Err(error));
    let most = TensorSpec::new("t", &[(1 << 61) - 1], TensorType::I64).unwrap();
    let most = [most, most];
    let error = Refusal::Layout {
        tensor: 0,
        error: LayoutError::Bytes,
    };
    let writer = Writer::new(Bytes::default(), 0, &most).unwrap();
    assert_eq!(writer.into_data().unwrap_err(), error.into());
}

#[test]
fn the_writer_holds_data_to_what_was_announced() {
    let specs = ["a", "b"].map(|name| TensorSpec::new(name, &[2], TensorType::F32).unwrap());
    let begin = || {
        let writer = Writer::new(Bytes::default(), 0, &specs).unwrap();
        writer.into_data().unwrap()
    };
    let order = |tensor| Refusal::Order { tensor };
    let mut writer = begin();
    assert_eq!(writer.write(&[0]), Err(order(0).into()));
    assert_eq!(writer.begin("b"), Err(order(0)));
    writer.begin("a").unwrap();
    let error = Refusal::TooLong {
        tensor: 0,
        needed: 8,
    };
    assert_eq!(writer.write(&[0; 9]), Err(error.into()));
    writer.write(&[0; 5]).unwrap();
    assert_eq!(writer.missing(), 3);
    let short = Refusal::TooShort {
        tensor: 0,
        missing: 3,
    };
    assert_eq!(writer.begin("b"), Err(short));
    writer.write(&[0; 3]).unwrap();
    // Padding follows the last byte at once.
    assert_eq!(writer.file_len() % 32, 0);
    assert_eq!(writer.begin("a"), Err(order(1)));
    assert_eq!(writer.finish().unwrap_err(), order(1));

    let mut writer = begin();
    for name in ["a", "b"] {
        writer.begin(name).unwrap();
        writer.write(&[0; 8]).unwrap();
    }
    assert_eq!(writer.begin("c"), Err(order(2)));
    assert!(writer.finish().is_ok());
}

#[test]
fn ids_of_value_types_are_their_numbers() {
    for id in 0..13 {
        assert_eq!(ValueType::from_id(id).map(ValueType::id), Some(id));
    }
    assert_eq!(ValueType::from_id(13), None);
}

#[test]
fn integers_of_any_width_are_counts() {
    assert_eq!(Value::I8(-1).as_u64(), None);
    assert_eq!(Value::I8(127).as_u64(), Some(127));
    assert_eq!(Value::U64(u64::MAX).as_u64(), Some(u64::MAX));
    assert_eq!(Value::F32(1.0).as_u64(), None);
}

#[test]
fn a_version_2_file_reads_as_its_version_3_twin() {
    let twin = |version| {
        Raw::new(version, 1, 1)
            .key("k", 8)
            .string("v")
            .tensor("t", &[8], 0, 0)
            .pad(32)
            .data(32)
            .0
    };
    let (two, three) = (twin(2), twin(3));
    let (two, three) = (Reader::new(&two).unwrap(), Reader::new(&three).unwrap());
    assert_eq!((two.version(), three.version()), (2, 3));
    assert_eq!(two.get("k"), three.get("k"));
    assert_eq!(two.data(), three.data());
    let error = Reader::new(&twin(1)).map(|_| ()).unwrap_err();
    assert_eq!(error, GgufError::VersionOne);
}
