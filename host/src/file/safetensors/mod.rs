//! Safetensors: eight bytes with the header's length, a JSON header, then the tensors back to back.
//!
//! It reads the whole format, single files and files that are sharded under a `*.safetensors.index.json`. It writes
//! tensors ordered by falling alignment, as the format's own library does, so that every tensor is aligned to its type.
//! The header is padded with spaces to eight bytes, and metadata is sorted by key, so that one input gives one file.

mod fault;

use std::collections::BTreeMap;
use std::path::Path;

use safetensors::Dtype;
use safetensors::tensor::Metadata as Header;
use serde::Deserialize;
use serde_json::{Value, json};

use super::OutputTensor;
use super::map::Map;
use super::output::Output;
use crate::Error;
use crate::dtype::DType;
use crate::order::order;
use crate::tensor_file::{Container, Contents, Entry, Metadata};

const FORMAT: &str = "safetensors";
/// The format's own bound on the JSON header.
const MAX_HEADER: u64 = 100_000_000;

/// True if a header of plausible length that begins with `{` follows; anything else is another format.
pub(crate) fn plausible(bytes: &[u8]) -> bool {
    bytes.len() > 8 && bytes[8] == b'{'
}

pub(crate) fn read(map: Map) -> Result<Contents, Error> {
    let (entries, metadata) = parse(map.path(), map.bytes(), 0)?;
    Ok(Contents {
        container: Container::Safetensors,
        maps: vec![map],
        entries,
        metadata: metadata.into_iter().collect(),
    })
}

/// Reads an index: the shards that it names, in the order of their names.
pub(crate) fn read_sharded(index: Map) -> Result<Contents, Error> {
    #[derive(Deserialize)]
    struct Index {
        weight_map: BTreeMap<String, String>,
    }
    let path = index.path();
    let bad = |reason: String| Error::bad(path, "safetensors index", reason);
    let parsed: Index = serde_json::from_slice(index.bytes()).map_err(|e| bad(e.to_string()))?;

    let mut shards: Vec<&str> = Vec::new();
    for shard in parsed.weight_map.values() {
        if let Err(place) = shards.binary_search(&shard.as_str()) {
            shards.insert(place, shard);
        }
    }
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut contents = Contents {
        container: Container::Safetensors,
        maps: Vec::new(),
        entries: Vec::new(),
        metadata: Metadata::new(),
    };
    let mut metadata = BTreeMap::new();
    for (file, shard) in shards.into_iter().enumerate() {
        // An index may come from the network: it must not name files elsewhere.
        if Path::new(shard)
            .file_name()
            .is_none_or(|name| name != shard)
        {
            return Err(bad(format!("shard `{shard}` is not a plain file name")));
        }
        let map = Map::open(&folder.join(shard)).map_err(|error| match error {
            Error::Io { path, source, .. } => Error::Io {
                path,
                action: "open this shard, which the index names",
                source,
            },
            other => other,
        })?;
        let (entries, shard_metadata) = parse(map.path(), map.bytes(), file)?;
        if let Some(stray) = entries.iter().find(|entry| {
            parsed
                .weight_map
                .get(&entry.name)
                .is_none_or(|at| at != shard)
        }) {
            let name = &stray.name;
            return Err(bad(format!(
                "tensor `{name}` is in `{shard}`, but the index names another shard"
            )));
        }
        metadata.extend(shard_metadata);
        contents.entries.extend(entries);
        contents.maps.push(map);
    }
    if let Some(name) = parsed
        .weight_map
        .keys()
        .find(|name| !contents.entries.iter().any(|entry| entry.name == **name))
    {
        let shard = &parsed.weight_map[name];
        return Err(bad(format!(
            "tensor `{name}` is not in its shard `{shard}`"
        )));
    }
    contents.metadata = metadata.into_iter().collect();
    Ok(contents)
}

/// Checks a file and lists its tensors by offset, with its metadata.
fn parse(
    path: &Path,
    bytes: &[u8],
    file: usize,
) -> Result<(Vec<Entry>, BTreeMap<String, String>), Error> {
    let bad = |reason: String| Error::bad(path, FORMAT, reason);
    let length = bytes
        .first_chunk()
        .ok_or_else(|| bad("it ends inside the header length".into()))?;
    let length = u64::from_le_bytes(*length);
    if length > MAX_HEADER {
        return Err(bad(format!(
            "the header claims {length} bytes, but the format allows {MAX_HEADER}"
        )));
    }
    let data = 8 + length as usize;
    let header = bytes.get(8..data).ok_or_else(|| {
        bad(format!(
            "the header claims {length} bytes, but the file has {}",
            bytes.len() - 8
        ))
    })?;
    // Uses only the crate's `Metadata` type: its `read_metadata` adds unchecked header and tensor lengths.
    let header: Header = serde_json::from_slice(header).map_err(|e| match fault::find(header) {
        Some((name, reason)) => Error::tensor(path, &name, format!("bad {FORMAT} file: {reason}")),
        None => bad(e.to_string()),
    })?;
    let present = bytes.len() - data;
    if header.data_len() != present {
        let claimed = header.data_len();
        let reason = format!("the tensors claim {claimed} bytes, but the file has {present}");
        let end = |name: &String| header.info(name).map_or(0, |info| info.data_offsets.1);
        return Err(
            match header
                .offset_keys()
                .into_iter()
                .find(|name| end(name) > present)
            {
                Some(cut) => {
                    let start = header.info(&cut).map_or(0, |info| info.data_offsets.0);
                    let reason = format!(
                        "bad {FORMAT} file: {reason}; this tensor's begin at offset {}",
                        data + start
                    );
                    Error::tensor(path, &cut, reason)
                }
                None => bad(reason),
            },
        );
    }

    let mut entries = Vec::new();
    for name in header.offset_keys() {
        let Some(info) = header.info(&name) else {
            continue;
        };
        entries.push(Entry {
            dtype: read_dtype(info.dtype),
            shape: info.shape.clone(),
            file,
            start: data + info.data_offsets.0,
            len: info.data_offsets.1 - info.data_offsets.0,
            name,
        });
    }
    let metadata = header.metadata().iter().flatten();
    Ok((
        entries,
        metadata.map(|(k, v)| (k.clone(), v.clone())).collect(),
    ))
}

fn read_dtype(dtype: Dtype) -> DType {
    match dtype {
        Dtype::F64 => DType::F64,
        Dtype::F32 => DType::F32,
        Dtype::F16 => DType::F16,
        Dtype::BF16 => DType::Bf16,
        Dtype::I64 => DType::I64,
        Dtype::I32 => DType::I32,
        Dtype::I16 => DType::I16,
        Dtype::I8 => DType::I8,
        Dtype::U64 => DType::U64,
        Dtype::U32 => DType::U32,
        Dtype::U16 => DType::U16,
        Dtype::U8 => DType::U8,
        Dtype::BOOL => DType::Bool,
        other => DType::Safetensors(other),
    }
}

/// Returns the safetensors type of a type; `None` if it has none.
pub(crate) fn write_dtype(dtype: DType) -> Option<Dtype> {
    Some(match dtype {
        DType::F64 => Dtype::F64,
        DType::F32 => Dtype::F32,
        DType::F16 => Dtype::F16,
        DType::Bf16 => Dtype::BF16,
        DType::I64 => Dtype::I64,
        DType::I32 => Dtype::I32,
        DType::I16 => Dtype::I16,
        DType::I8 => Dtype::I8,
        DType::U64 => Dtype::U64,
        DType::U32 => Dtype::U32,
        DType::U16 => Dtype::U16,
        DType::U8 => Dtype::U8,
        DType::Bool => Dtype::BOOL,
        DType::Safetensors(other) => other,
        _ => return None,
    })
}

/// Writes tensors, each in pieces, in any order of tensors.
#[derive(Debug)]
pub(crate) struct Writer {
    output: Output,
    /// Next free position and end of each part, in the given order.
    parts: Vec<(u64, u64)>,
}

impl Writer {
    /// Lays the file out and writes its header.
    pub(crate) fn new(
        mut output: Output,
        metadata: &Metadata,
        parts: &[OutputTensor],
    ) -> Result<Self, Error> {
        let width = |index: usize| width(parts[index].dtype);
        // The widest first; tensors of equal width keep their order.
        let order = order(parts.len(), &|a, b| width(b).cmp(&width(a)));

        let mut header = serde_json::Map::new();
        if !metadata.is_empty() {
            let mut sorted = BTreeMap::new();
            for (key, value) in metadata {
                sorted.insert(key.clone(), value.clone());
            }
            header.insert("__metadata__".into(), json!(sorted));
        }
        let mut spans = vec![(0, 0); parts.len()];
        let mut offset = 0u64;
        for index in order {
            let part = &parts[index];
            let unsupported = |reason: String| Error::tensor(output.path(), &part.name, reason);
            let dtype = write_dtype(part.dtype).ok_or_else(|| {
                unsupported(format!(
                    "safetensors has no type {}; write .gguf",
                    part.dtype.name()
                ))
            })?;
            let end = offset
                .checked_add(part.bytes)
                .ok_or_else(|| unsupported("the file's size overflows".into()))?;
            let info = json!({
                "dtype": dtype, "shape": part.shape, "data_offsets": [offset, end],
            });
            if part.name == "__metadata__" || header.insert(part.name.clone(), info).is_some() {
                return Err(unsupported(
                    "another tensor of the output has this name".into(),
                ));
            }
            spans[index] = (offset, end);
            offset = end;
        }
        let mut text = Value::Object(header).to_string().into_bytes();
        text.resize(text.len().next_multiple_of(8), b' ');
        output.write(&(text.len() as u64).to_le_bytes())?;
        output.write(&text)?;
        let data = 8 + text.len() as u64;
        for (start, end) in &mut spans {
            *start += data;
            *end += data;
        }
        Ok(Self {
            output,
            parts: spans,
        })
    }

    /// Appends bytes to a part.
    pub(crate) fn write(&mut self, part: usize, bytes: &[u8]) -> Result<(), Error> {
        let (at, end) = &mut self.parts[part];
        assert!(
            *at + bytes.len() as u64 <= *end,
            "a part is longer than was planned"
        );
        self.output.write_at(*at, bytes)?;
        *at += bytes.len() as u64;
        Ok(())
    }

    /// Puts the file in place and returns its size.
    pub(crate) fn finish(self) -> Result<u64, Error> {
        assert!(
            self.parts.iter().all(|(at, end)| at == end),
            "a part is shorter than was planned"
        );
        self.output.finish()
    }
}

/// Returns the alignment of a type in bytes.
fn width(dtype: DType) -> usize {
    match dtype.block() {
        (1, bytes) => bytes,
        (values, bytes) => (bytes / values).max(1),
    }
}
