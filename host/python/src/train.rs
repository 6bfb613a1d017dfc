//! Training of ternary language models in integers.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use tercet_core::block::Format;
use tercet_core::gguf::Reader;
use tercet_host::file::output::Output;
use tercet_host::language::tokenizer::{Encoding, Tokenizer};
use tercet_host::language::{LanguageFile, Vocabulary};
use tercet_host::parallel::Threads;
use tercet_host::train::{
    Batches, Corpus, Preset, Selection, Tokens, TrainOptions, Trainer, vocabulary,
};

use crate::error::{raised, refused};
use crate::watch::Watch;

/// Trains a model of a text and writes its GGUF file. `on_step` gets the number and the mean loss of each step, and
/// ends the training if it returns `False`; Ctrl-C ends it without a file.
#[pyfunction]
#[pyo3(signature = (text, output, *, preset, steps, tokens, batch, seed, teacher, lean, zeros, keep, clusters, force, on_step))]
#[allow(clippy::too_many_arguments, reason = "they are named in Python")]
pub(crate) fn train<'py>(
    py: Python<'py>,
    text: &[u8],
    output: PathBuf,
    preset: &str,
    steps: u64,
    tokens: u32,
    batch: usize,
    seed: u64,
    teacher: Option<(PathBuf, f32, f32)>,
    lean: bool,
    zeros: Option<f32>,
    keep: Option<f64>,
    clusters: Option<usize>,
    force: bool,
    on_step: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let preset = Preset::from_name(preset)
        .ok_or_else(|| refused(format_args!("no preset is called `{preset}`")))?;
    let out = Output::create(&output, [], force).map_err(raised)?;
    let dict = PyDict::new(py);
    let watch = Watch::new(on_step);
    let (file, done, loss) = watch.run(py, || {
        let teacher = match teacher {
            None => None,
            Some((path, temperature, share)) => {
                let file = LanguageFile::open(&path).map_err(raised)?;
                Some((file, temperature, share))
            }
        };
        let vocabulary = match (&teacher, tokens) {
            // The command's are the teacher's too.
            (Some((file, ..)), _) => {
                let reader = file.reader().map_err(raised)?;
                Vocabulary::read(&reader).map_err(refused)?
            }
            (None, 0) => Vocabulary::bytes(),
            (None, tokens) => vocabulary(text, tokens),
        };
        let parameters = preset.parameters(vocabulary.tokens.len() as u32);
        let mut options = TrainOptions {
            steps,
            seed,
            batch,
            lean,
            zeros,
            ..TrainOptions::new(parameters)
        };
        // As the command has them.
        options.rate = 2e-3 * (options.batch as f32 / 16.0).sqrt();
        options.warmup = steps.div_ceil(20);
        options.micro = options.micro.min(options.batch);
        let header = Trainer::<Threads>::header(&options, &vocabulary).map_err(raised)?;
        let reader = Reader::new(&header).map_err(refused)?;
        let tokenizer = Tokenizer::read(&reader, &header, None).map_err(refused)?;
        let encoding = Encoding {
            ends: false,
            ..Encoding::default()
        };
        let encoded = tokenizer.encode(text, encoding).map_err(refused)?;
        let begin = vocabulary.bos.filter(|_| vocabulary.add_bos);
        let tokens = Tokens::InMemory(encoded);
        let corpus = Corpus::new(tokens, vec![], options.context(), begin, options.seed);
        let mut corpus = corpus.map_err(raised)?;
        if let Some(share) = keep {
            let selection = Selection {
                share,
                clusters,
                seed,
            };
            (corpus, _) = corpus.select(&selection).map_err(raised)?;
        }
        let batches = Batches::new(&Arc::new(corpus), options.batch, 0);
        let workers = options.batch.div_ceil(options.micro);
        let engines = vec![Threads::alone(); workers.min(rayon::current_num_threads())];
        let mut trainer = Trainer::new(engines, &options, vocabulary).map_err(raised)?;
        if let Some((file, temperature, share)) = teacher {
            let learns = trainer.learn_from(file, temperature, share);
            learns.map_err(raised)?;
        }
        let mut loss = f64::NAN;
        while trainer.steps() < steps {
            loss = trainer.step(&batches).map_err(raised)?.mean();
            if !watch.tell((trainer.steps(), loss)) {
                break;
            }
        }
        let file = trainer.export(Format::Tq2_0).map_err(raised)?;
        Ok((file, trainer.steps(), loss))
    })?;
    let mut out = out;
    out.write(&file).map_err(raised)?;
    dict.set_item("bytes", out.finish().map_err(raised)?)?;
    dict.set_item("steps", done)?;
    dict.set_item("loss", loss)?;
    Ok(dict)
}
