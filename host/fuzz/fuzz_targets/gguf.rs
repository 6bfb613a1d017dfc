//! The GGUF reader: any bytes end in an error or in a file of which everything can be read and written again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tercet_core::gguf::{MAX_DEPTH, Reader, Refusal, Sink, TensorSpec, Value, WriteError, Writer};

struct Bytes(Vec<u8>);

impl Sink for Bytes {
    type Error = std::convert::Infallible;

    fn write(&mut self, bytes: &[u8]) -> Result<(), Self::Error> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }
}

/// Reads down to the innermost values and counts them.
fn count(value: Value<'_>, depth: usize) -> usize {
    assert!(depth <= MAX_DEPTH);
    match value {
        Value::Array(array) => {
            assert_eq!(array.iter().count(), array.len());
            array.iter().map(|item| count(item, depth + 1)).sum()
        }
        _ => 1,
    }
}

fn walk(reader: &Reader<'_>) -> usize {
    assert_eq!(reader.metadata().count(), reader.metadata().len());
    assert_eq!(reader.tensors().count(), reader.tensors().len());
    let tensors = reader.tensors().map(|info| info.data.len());
    let values = reader.metadata().map(|(_, value)| count(value, 0));
    tensors.sum::<usize>() + values.sum::<usize>()
}

fn rewrite(reader: &Reader<'_>) -> Result<Vec<u8>, WriteError<std::convert::Infallible>> {
    let specs: Vec<_> = reader
        .tensors()
        .map(|info| TensorSpec {
            name: info.name,
            shape: info.shape,
            kind: info.kind,
        })
        .collect();
    let mut writer = Writer::new(Bytes(Vec::new()), reader.metadata().len() as u64, &specs)?;
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

fuzz_target!(|bytes: &[u8]| {
    let Ok(reader) = Reader::inspect(bytes) else {
        assert!(Reader::new(bytes).is_err());
        return;
    };
    let found = walk(&reader);
    let _ = reader.check_names(&mut vec![0; reader.name_scratch_len()]);
    // A huge alignment would be padded to.
    if Reader::new(bytes).is_err() || reader.alignment() > 1 << 16 {
        return;
    }
    match rewrite(&reader) {
        Ok(again) => assert_eq!(Reader::new(&again).map(|again| walk(&again)), Ok(found)),
        // The writer is stricter than the reader.
        Err(WriteError::Refused(Refusal::Alignment { .. } | Refusal::NameLength { .. })) => {}
        Err(error) => panic!("{error}"),
    }
});
