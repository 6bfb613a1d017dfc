//! Conversions of a file: mapped, encoded, measured, written, put in place.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tercet_core::block::{self, Format};
use tercet_core::engine::{Output, QuantizeEngine};
use tercet_core::number::Element;
use tercet_core::quant::{Codes, Comparison, Groups, Method, Rule, ScaleRule, int8};
use tercet_core::scalar::Scalar;

use super::{Operation, legal};
use crate::convert::{QuantizeOptions, Target, quantize};
use crate::file::random;
use crate::measure::clock::Clock;
use crate::measure::contender::Contender;
use crate::measure::work::LeastWork;
use crate::measure::{Traffic, input};
use crate::parallel::Threads;
use crate::{Error, TensorFile};

/// The name of the only tensor, and that of its scales.
const NAMES: [&str; 2] = ["w", "w_scale"];

/// A model with one `f32` matrix, in its own folder.
pub(in crate::measure) struct Convert {
    folder: Folder,
    model: TensorFile,
    cols: usize,
    target: Target,
}

impl Convert {
    /// Converts a matrix of normal values to GGUF blocks or to int8 rows.
    ///
    /// # Panics
    /// If there is no room for the file.
    pub(in crate::measure) fn new(target: Target, rows: usize, cols: usize) -> (LeastWork, Self) {
        let values = rows * cols;
        let out = match target {
            Target::Int8 => values + rows * 4,
            _ => legal(Format::Tq2_0.encoded_len(values)),
        };
        // The input is read from the system's cache, and the output is copied there.
        let mut work = LeastWork::pass(values, Traffic::Copy, 2 * out)
            .after_reading(values * 4)
            .by_chosen_backend();
        work.set = values * 4 + out;
        let folder = legal(Folder::new());
        let path = folder.0.join("in.safetensors");
        legal(write_input(&path, rows, cols));
        let model = legal(TensorFile::open(&path));
        // If a mapped file can lose its name, nothing of it remains however the process ends.
        let _ = fs::remove_file(&path);
        let body = Self {
            folder,
            model,
            cols,
            target,
        };
        (work, body)
    }

    fn out(&self) -> PathBuf {
        let name = match self.target {
            Target::Int8 => "out.safetensors",
            _ => "out.gguf",
        };
        self.folder.0.join(name)
    }

    /// Does the whole conversion in plain form, one step after another: all values, all codes, the loss, the file.
    fn plainly(&self, out: &Path) -> Result<(), Error> {
        let bytes = self.model.get(NAMES[0]).map_or(&[][..], |w| w.bytes);
        let read = |bytes: &[u8; 4]| f32::from_le_bytes(*bytes);
        let values: Vec<f32> = bytes.as_chunks().0.iter().map(read).collect();
        let mut restored = vec![0.0; values.len()];
        let mut written = Vec::new();
        match self.target {
            Target::Int8 => {
                let groups = legal(Groups::rows(values.len() / self.cols, self.cols));
                let (mut codes, mut scales) = (vec![0; values.len()], vec![0.0; groups.count]);
                let output = Output {
                    codes: &mut codes,
                    scales: &mut scales,
                    zero_points: &mut [],
                };
                let mut engine = Scalar;
                let mut tensor = legal(engine.tensor(&values, groups, output));
                let method = Method::Symmetric { limit: int8::LIMIT };
                legal(tercet_core::quant::quantize(&mut tensor, method, &mut []));
                legal(int8::dequantize(
                    Codes {
                        codes: &codes,
                        scales: &scales,
                        zero_points: &[],
                        groups,
                    },
                    &mut restored,
                ));
                written.extend(codes.iter().map(|code| *code as u8));
                written.extend(scales.iter().flat_map(|scale| scale.to_le_bytes()));
            }
            _ => {
                let format = Format::Tq2_0;
                written.resize(legal(format.encoded_len(values.len())), 0);
                let (rule, scale) = (Rule::default(), ScaleRule::Rule);
                legal(block::encode(format, rule, scale, &values, &mut written));
                legal(block::decode(format, &written, &mut restored));
            }
        }
        let mut comparison = Comparison::new();
        legal(comparison.push(&values, &restored));
        std::hint::black_box(comparison.finish());
        let save = || {
            let mut file = File::create(out)?;
            file.write_all(&written)?;
            file.sync_all()
        };
        save().map_err(Error::io(out, "write"))
    }
}

impl Operation for Convert {
    fn run(&self, by: Contender, clock: &mut dyn Clock) -> u64 {
        let out = self.out();
        let mut bits = DefaultHasher::new();
        match by {
            Contender::Scalar => {
                clock.time(&mut || legal(self.plainly(&out)));
                legal(fs::read(&out)).hash(&mut bits);
            }
            Contender::Threads { .. } => {
                // With the chosen backend, which is the default.
                let mut engine = Threads::default();
                let options = QuantizeOptions {
                    force: true,
                    ..QuantizeOptions::new(self.target)
                };
                clock.time(&mut || {
                    legal(quantize(&mut engine, &self.model, &options, &out, &()));
                });
                let made = legal(TensorFile::open(&out));
                let parts = NAMES.iter().filter_map(|name| made.get(name));
                let all: Vec<u8> = parts.flat_map(|part| part.bytes.iter().copied()).collect();
                all.hash(&mut bits);
            }
        }
        legal(fs::remove_file(&out));
        bits.finish()
    }
}

/// A folder that is removed when dropped.
struct Folder(PathBuf);

impl Folder {
    /// In memory if the system has such a place, so that no disk is measured.
    fn new() -> io::Result<Self> {
        let new = |place: &Path| {
            let folder = place.join(format!("tercet-{:016x}", random()));
            fs::create_dir(&folder).map(|()| Self(folder))
        };
        new(Path::new("/dev/shm")).or_else(|_| new(&std::env::temp_dir()))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn write_input(path: &Path, rows: usize, cols: usize) -> io::Result<()> {
    let values = input::normals(rows * cols);
    let bytes = values.len() * 4;
    let mut header = format!(
        r#"{{"{}":{{"dtype":"F32","shape":[{rows},{cols}],"data_offsets":[0,{bytes}]}}}}"#,
        NAMES[0]
    );
    while header.len() % 8 != 0 {
        header.push(' ');
    }
    let mut file = io::BufWriter::new(File::create(path)?);
    file.write_all(&(header.len() as u64).to_le_bytes())?;
    file.write_all(header.as_bytes())?;
    for value in values.iter() {
        file.write_all(&value.to_f32().to_le_bytes())?;
    }
    file.into_inner()?.sync_all()
}
