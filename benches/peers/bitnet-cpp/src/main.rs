//! Times bitnet.cpp as llama-bench times llama.cpp: a prompt of made-up tokens, then a text of as many steps, each once.
//!
//! Prints a JSON object with `prompt` and `text`, in tokens a second.

use std::error::Error;
use std::ffi::{CString, c_char, c_int, c_void};
use std::time::Instant;
use std::{env, ptr};

use bitnet_llm_sys as llama;

/// Lines of the library are dropped.
unsafe extern "C" fn quiet(_: c_int, _: *const c_char, _: *mut c_void) {}

/// A context with an empty cache.
struct Context(*mut llama::llama_context);

impl Context {
    fn forget(&mut self) {
        // SAFETY: the context lives until the program ends.
        unsafe { llama::llama_kv_cache_clear(self.0) }
    }

    /// Evaluates tokens from a position on, in one batch, with logits of the last.
    fn decode(&mut self, tokens: &mut [i32], position: usize) -> Result<(), Box<dyn Error>> {
        // SAFETY: the batch points to `tokens`, which outlive the call, and the library copies the logits.
        let status = unsafe {
            let (count, position) = (tokens.len() as i32, position as i32);
            let batch = llama::llama_batch_get_one(tokens.as_mut_ptr(), count, position, 0);
            llama::llama_decode(self.0, batch)
        };
        match status {
            0 => Ok(()),
            _ => Err(format!("llama_decode returned {status}").into()),
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [model, threads, prompt, text] = arguments.as_slice() else {
        return Err("usage: tercet-bitnet-cpp MODEL THREADS PROMPT_TOKENS TEXT_TOKENS".into());
    };
    let (threads, prompt, text): (i32, usize, usize) =
        (threads.parse()?, prompt.parse()?, text.parse()?);
    let path = CString::new(model.as_str())?;
    // SAFETY: the parameters are the library's own with numbers changed, the path ends with a zero and outlives the
    // call, and neither model nor context is freed.
    let context = unsafe {
        llama::llama_log_set(Some(quiet), ptr::null_mut());
        llama::llama_backend_init();
        let loaded =
            llama::llama_load_model_from_file(path.as_ptr(), llama::llama_model_default_params());
        if loaded.is_null() {
            return Err(format!("{model}: not loaded").into());
        }
        let mut parameters = llama::llama_context_default_params();
        parameters.n_ctx = u32::try_from(prompt.max(text))?.next_multiple_of(256);
        parameters.n_threads = threads;
        parameters.n_threads_batch = threads;
        llama::llama_new_context_with_model(loaded, parameters)
    };
    if context.is_null() {
        return Err(format!("{model}: no context").into());
    }
    let mut context = Context(context);
    // All of them are bytes in every vocabulary of ours.
    let mut tokens: Vec<i32> = (0..prompt.max(text) as i32)
        .map(|at| 3 + at * 89 % 250)
        .collect();

    // The first evaluation also reads the file.
    context.decode(&mut tokens[..1], 0)?;
    context.forget();

    let start = Instant::now();
    context.decode(&mut tokens[..prompt], 0)?;
    let prompt = prompt as f64 / start.elapsed().as_secs_f64();
    context.forget();

    let start = Instant::now();
    for (position, token) in tokens[..text].chunks_mut(1).enumerate() {
        context.decode(token, position)?;
    }
    let text = text as f64 / start.elapsed().as_secs_f64();
    println!(r#"{{"prompt": {prompt}, "text": {text}}}"#);
    Ok(())
}
