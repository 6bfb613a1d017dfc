//! A cache in a file: safetensors of tokens, keys and values, which can be restored only to the same model and options.

use std::path::{Path, PathBuf};

use tercet_core::conformance::Digest;
use tercet_core::model::{CacheType, Gate, ModelError, PAGE, PageCodes};

use super::answer::CachedTokens;
use super::session::ModelId;
use crate::engine::FlowEngine;
use crate::file::output::Output;
use crate::file::{OutputTensor, safetensors};
use crate::language::run::Decoder;
use crate::tensor_file::Container;
use crate::{DType, Error, TensorFile};

/// The format that the file states.
const FORMAT: &str = "tercet cache 1";

/// Names of the tensors: tokens; and for each needed page, layer, head and position of 64 the codes and the scale of
/// keys and of values. Codes of FP8 are its bytes.
const NAMES: [&str; 5] = ["tokens", "keys", "key_scales", "values", "value_scales"];

/// A file with the keys and values of a sequence.
#[derive(Debug)]
pub struct Kept {
    path: PathBuf,
    model: TensorFile,
    tokens: Vec<u32>,
}

/// Returns what keys and values depend on beside the tokens, with the names in the file.
fn origin<E: FlowEngine>(
    decoder: &Decoder<'_, '_, E>,
    model: &ModelId,
) -> [(&'static str, String); 7] {
    let pattern = decoder.pattern();
    let attended = format!(
        "window {}, sinks {}, stride {}",
        pattern.window, pattern.sinks, pattern.stride
    );
    let shape = decoder.cache.shape();
    [
        ("format", FORMAT.to_owned()),
        ("model_bytes", model.bytes.to_string()),
        ("model_digest", model.digest.clone()),
        ("cache_type", CacheType::name(shape.kind).to_owned()),
        (
            "cache_shape",
            format!(
                "{} layers, {} heads of {}",
                shape.layers, shape.heads, shape.head
            ),
        ),
        ("attended", attended),
        (
            "activation",
            match decoder.model().config().gate {
                Gate::Silu => "silu",
                Gate::SquaredRelu => "relu2",
            }
            .to_owned(),
        ),
    ]
}

/// Appends the little-endian bytes of codes.
fn bytes(codes: PageCodes<'_>, into: &mut Vec<u8>) {
    match codes {
        PageCodes::Narrow(codes) => into.extend(codes.iter().map(|&code| code as u8)),
        PageCodes::Wide(codes) => into.extend(codes.iter().flat_map(|code| code.to_le_bytes())),
    }
}

impl Kept {
    /// Writes the data that sequence 0 needs to continue, completely or not at all, and returns the file's size.
    ///
    /// # Errors
    /// [`Error::OutputExists`] if there is already a file that may not be overwritten; [`Error::Io`].
    pub fn write<E: FlowEngine>(
        path: &Path,
        decoder: &Decoder<'_, '_, E>,
        held: &CachedTokens,
        model: &ModelId,
        overwrite: bool,
    ) -> Result<u64, Error> {
        let output = Output::create(path, [], overwrite)?;
        let shape = *decoder.cache.shape();
        let sequence = &decoder.sequences[0];
        let pages: Vec<u32> = sequence.kept().collect();
        let mut all: [Vec<u8>; 5] = Default::default();
        all[0].extend(held.tokens().iter().flat_map(|token| token.to_le_bytes()));
        for &page in &pages {
            let place = sequence.page(page * PAGE).unwrap_or_default();
            // Only the existing positions of the last page.
            let count = (sequence.len() - page * PAGE).min(PAGE) as usize;
            for layer in 0..shape.layers {
                for head in 0..shape.heads {
                    let keys = decoder.cache.keys(place, layer, head);
                    let values = decoder.cache.values(place, layer, head);
                    let width = count * shape.head;
                    for (index, (codes, scales)) in [(1, keys), (3, values)] {
                        let (start, codes_size) = (all[index].len(), size(codes) * PAGE as usize);
                        bytes(first(codes, width), &mut all[index]);
                        all[index].resize(start + codes_size * shape.head, 0);
                        let scales = scales[..count].iter().chain([&0.0; PAGE as usize]);
                        let scales = scales.take(PAGE as usize);
                        all[index + 1].extend(scales.flat_map(|scale| scale.to_le_bytes()));
                    }
                }
            }
        }
        let outer = [pages.len(), shape.layers, shape.heads, PAGE as usize];
        let code = |wide: bool| if wide { DType::I16 } else { DType::I8 };
        let types = [
            DType::U32,
            code(shape.kind.wide_keys()),
            DType::F32,
            code(shape.kind.wide_values()),
            DType::F32,
        ];
        let parts: Vec<OutputTensor> = (0..5)
            .map(|index| OutputTensor {
                name: NAMES[index].to_owned(),
                shape: match index {
                    0 => vec![held.tokens().len()],
                    1 | 3 => [&outer[..], &[shape.head]].concat(),
                    _ => outer.to_vec(),
                },
                dtype: types[index],
                bytes: all[index].len() as u64,
            })
            .collect();
        let mut metadata: Vec<(String, String)> = origin(decoder, model)
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect();
        let parts_of = all.iter().map(Vec::as_slice);
        metadata.push(("digest".to_owned(), digest(parts_of)));
        let mut writer = safetensors::Writer::new(output, &metadata, &parts)?;
        for (index, bytes) in all.iter().enumerate() {
            writer.write(index, bytes)?;
        }
        writer.finish()
    }

    /// Opens a file and checks that its tensors are complete; [`Kept::put_back`] checks their origin.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::UnknownFile`], [`Error::BadFile`], [`Error::Tensor`].
    pub fn open(path: &Path) -> Result<Self, Error> {
        let model = TensorFile::open(path)?;
        let bad = |reason: &str| Error::bad(path, "cache", reason);
        if model.container() != Container::Safetensors || value(&model, "format") != Some(FORMAT) {
            return Err(bad("its format is not `tercet cache 1`"));
        }
        let mut all = Vec::new();
        for name in NAMES {
            let tensor = model.get(name);
            let tensor = tensor.ok_or_else(|| Error::tensor(path, name, "it is missing"))?;
            all.push(tensor.bytes);
        }
        let found = digest(all.iter().copied());
        if value(&model, "digest") != Some(&found) {
            return Err(bad("its tensors changed after they were written"));
        }
        let tokens = model.get(NAMES[0]).filter(|it| it.dtype == DType::U32);
        let tokens = tokens.ok_or_else(|| Error::tensor(path, NAMES[0], "it is not of u32"))?;
        let tokens = tokens.bytes.as_chunks().0.iter();
        let tokens = tokens.map(|&bytes| u32::from_le_bytes(bytes)).collect();
        Ok(Self {
            path: path.to_path_buf(),
            model,
            tokens,
        })
    }

    /// Restores keys and values to sequence 0, and returns its new content.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a cache of another model or of a run with other options, with the difference; for
    /// more positions than there is room for, and for codes and scales that no cache has. The sequence is then empty.
    pub fn put_back<E: FlowEngine>(
        &self,
        decoder: &mut Decoder<'_, '_, E>,
        model: &ModelId,
    ) -> Result<CachedTokens, Error> {
        for (name, expected) in origin(decoder, model) {
            let found = value(&self.model, name).unwrap_or_default();
            if found != expected {
                let reason = format!("its {name} is `{found}`, not `{expected}`");
                return Err(Error::unsupported(&self.path, reason));
            }
        }
        let vocabulary = decoder.model().config().vocabulary;
        let unknown = self.tokens.iter().find(|&&it| it as usize >= vocabulary);
        if let Some(token) = unknown {
            let reason = format!("token {token} is not in the model's vocabulary");
            return Err(Error::unsupported(&self.path, reason));
        }
        let done = self.fill(decoder);
        if let Err(error) = done {
            decoder.reset(0);
            return Err(Error::unsupported(&self.path, error));
        }
        Ok(CachedTokens::of(self.tokens.clone()))
    }

    fn fill<E: FlowEngine>(&self, decoder: &mut Decoder<'_, '_, E>) -> Result<(), ModelError> {
        let expected = "those of as many positions as there are tokens";
        let wrong = ModelError::Stored { expected };
        let shape = *decoder.cache.shape();
        let len = u32::try_from(self.tokens.len()).map_err(|_| ModelError::TooLarge)?;
        let (cache, sequence) = (&mut decoder.cache, &mut decoder.sequences[0]);
        sequence.restore(len, cache)?;
        let pages: Vec<u32> = sequence.kept().collect();
        let rows = pages.len() * shape.layers * shape.heads;
        // Shape and type of a tensor match its bytes, so two of the three are enough.
        let tensor = |index: usize, wide: Option<bool>| {
            let size = match wide {
                Some(wide) => shape.head * (1 + usize::from(wide)),
                None => 4,
            };
            let bytes = self.model.get(NAMES[index])?.bytes;
            (bytes.len() == rows * PAGE as usize * size).then_some(bytes)
        };
        let keys = tensor(1, Some(shape.kind.wide_keys())).ok_or(wrong)?;
        let key_scales = tensor(2, None).ok_or(wrong)?;
        let values = tensor(3, Some(shape.kind.wide_values())).ok_or(wrong)?;
        let value_scales = tensor(4, None).ok_or(wrong)?;
        let mut row = 0;
        for page in pages {
            let place = sequence.page(page * PAGE).ok_or(wrong)?;
            let count = (len - page * PAGE).min(PAGE) as usize;
            for layer in 0..shape.layers {
                for head in 0..shape.heads {
                    let part = |bytes, wide| Codes::of(bytes, wide, row, count * shape.head, rows);
                    let keys = part(keys, shape.kind.wide_keys());
                    let values = part(values, shape.kind.wide_values());
                    let scales = |bytes: &[u8]| -> Vec<f32> {
                        let bytes = &bytes[row * PAGE as usize * 4..][..count * 4];
                        let floats = bytes.as_chunks().0.iter();
                        floats.map(|&bytes| f32::from_le_bytes(bytes)).collect()
                    };
                    cache.load(
                        (place, layer, head),
                        (keys.view(), &scales(key_scales)),
                        (values.view(), &scales(value_scales)),
                    )?;
                    row += 1;
                }
            }
        }
        Ok(())
    }
}

/// Codes of a page, decoded from their bytes.
enum Codes {
    Narrow(Vec<i8>),
    Wide(Vec<i16>),
}

impl Codes {
    /// Returns the first `count` values of one of `rows` equal rows.
    fn of(bytes: &[u8], wide: bool, row: usize, count: usize, rows: usize) -> Self {
        let len = bytes.len() / rows;
        let bytes = &bytes[row * len..][..count * (1 + usize::from(wide))];
        match wide {
            false => Self::Narrow(bytes.iter().map(|&byte| byte as i8).collect()),
            true => {
                let pairs = bytes.as_chunks().0.iter();
                Self::Wide(pairs.map(|&pair| i16::from_le_bytes(pair)).collect())
            }
        }
    }

    fn view(&self) -> PageCodes<'_> {
        match self {
            Self::Narrow(codes) => PageCodes::Narrow(codes),
            Self::Wide(codes) => PageCodes::Wide(codes),
        }
    }
}

/// Returns the bytes per code.
fn size(codes: PageCodes<'_>) -> usize {
    match codes {
        PageCodes::Narrow(_) => 1,
        PageCodes::Wide(_) => 2,
    }
}

fn first(codes: PageCodes<'_>, count: usize) -> PageCodes<'_> {
    match codes {
        PageCodes::Narrow(codes) => PageCodes::Narrow(&codes[..count]),
        PageCodes::Wide(codes) => PageCodes::Wide(&codes[..count]),
    }
}

fn value<'m>(model: &'m TensorFile, name: &str) -> Option<&'m str> {
    let mut all = model.metadata().iter();
    all.find(|(key, _)| key == name)
        .map(|(_, value)| value.as_str())
}

fn digest<'b>(parts: impl Iterator<Item = &'b [u8]>) -> String {
    let mut digest = Digest::new();
    for part in parts {
        digest.bytes(part);
    }
    format!("{:016x}", digest.value())
}
