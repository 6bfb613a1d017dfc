//! Language models.

use std::path::PathBuf;

use numpy::{IntoPyArray, PyArrayDyn, PyArrayMethods, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tercet_host::LanguageModel;
use tercet_host::language::Sampler;
use tercet_host::language::tokenizer::{Encoding, Specials};
use tercet_host::parallel::Threads;

use crate::error::{raised, refused};
use crate::watch::Watch;

/// A GGUF model: text in, text out.
#[pyclass(frozen, module = "tercet")]
pub(crate) struct Model(LanguageModel);

#[pymethods]
impl Model {
    /// Opens a GGUF file.
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        py.detach(|| LanguageModel::open(&path))
            .map(Self)
            .map_err(raised)
    }

    /// Number of positions that the model was trained for.
    #[getter]
    fn context(&self) -> usize {
        self.0.context()
    }

    /// Continues a text and returns what was written: the text, the tokens and the digest of the logits. `on_text` gets
    /// each piece as it comes, and ends the text if it returns `False`.
    #[pyo3(signature = (
        prompt, *, tokens = 128, temperature = 0.0, top_k = 0, penalty = 1.0, seed = 0, on_text = None
    ))]
    #[allow(clippy::too_many_arguments, reason = "they are named in Python")]
    fn generate<'py>(
        &self,
        py: Python<'py>,
        prompt: &str,
        tokens: usize,
        temperature: f32,
        top_k: usize,
        penalty: f32,
        seed: u64,
        on_text: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let sampler = Sampler {
            temperature,
            top_k,
            penalty,
            seed,
            ..Sampler::GREEDY
        };
        let watch = Watch::new(on_text);
        let written = watch.run(py, || {
            let prompt = self.0.prompt(prompt).tokens(tokens).sample(sampler);
            let written = prompt.generate_on(&mut Threads::default(), |piece| watch.tell((piece,)));
            written.map_err(raised)
        })?;
        let dict = PyDict::new(py);
        dict.set_item("text", written.text)?;
        dict.set_item("tokens", written.tokens)?;
        dict.set_item("ended", written.ended)?;
        dict.set_item("digest", format!("{:016x}", written.digest))?;
        Ok(dict)
    }

    /// Returns the tokens of a text.
    #[pyo3(signature = (text, *, ends, special))]
    fn tokenize(
        &self,
        py: Python<'_>,
        text: &str,
        ends: bool,
        special: bool,
    ) -> PyResult<Vec<u32>> {
        let encoding = Encoding {
            ends,
            special,
            ..Encoding::default()
        };
        py.detach(|| self.0.tokenizer().encode(text.as_bytes(), encoding))
            .map_err(refused)
    }

    /// Returns the text of tokens.
    #[pyo3(signature = (tokens, *, special))]
    fn detokenize(&self, tokens: PyReadonlyArray1<'_, u32>, special: bool) -> PyResult<String> {
        let specials = match special {
            true => Specials::Shown,
            false => Specials::Hidden,
        };
        let tokens = tokens.as_slice().map_err(refused)?;
        let bytes = self.0.tokenizer().decode(tokens, specials);
        Ok(String::from_utf8_lossy(&bytes.map_err(refused)?).into_owned())
    }

    /// Returns the logits after the last token, or after each: a row per token.
    #[pyo3(signature = (tokens, *, each))]
    fn logits<'py>(
        &self,
        py: Python<'py>,
        tokens: PyReadonlyArray1<'_, u32>,
        each: bool,
    ) -> PyResult<Bound<'py, PyArrayDyn<f32>>> {
        let tokens = tokens.as_slice().map_err(refused)?;
        let found = py.detach(|| self.0.logits(tokens, each)).map_err(raised)?;
        let rows = tokens.len();
        let shape = match each {
            true => vec![rows, found.len() / rows],
            false => vec![found.len()],
        };
        found.into_pyarray(py).reshape(shape)
    }

    /// Measures how well the model predicts a text: perplexity, bits per byte, and the sum that both come from.
    fn evaluate<'py>(&self, py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyDict>> {
        let watch = Watch::new(None);
        let cost = watch.run(py, || {
            let told = &mut |_| {
                watch.tell(());
            };
            self.0.evaluate_with(text, told).map_err(raised)
        })?;
        let dict = PyDict::new(py);
        dict.set_item("perplexity", cost.perplexity())?;
        dict.set_item("bits_per_byte", cost.bits_per_byte())?;
        dict.set_item("sum", cost.sum)?;
        dict.set_item("count", cost.count)?;
        Ok(dict)
    }
}
