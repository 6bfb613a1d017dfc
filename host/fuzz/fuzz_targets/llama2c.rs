//! The reader of llama2.c's checkpoints with the vocabulary behind them: any bytes end in an error. Those of a whole
//! file end in the one that comes last, since the output is the input: nothing is written.

#![no_main]

use std::cell::RefCell;
use std::io::{Seek, Write};

use libfuzzer_sys::fuzz_target;
use tempfile::NamedTempFile;
use tercet_host::language::{ImportOptions, import};

thread_local! {
    static FILE: RefCell<NamedTempFile> =
        RefCell::new(tempfile::Builder::new().suffix(".gguf").tempfile().expect("a temporary file"));
}

fuzz_target!(|bytes: &[u8]| {
    FILE.with_borrow_mut(|file| {
        let path = file.path().to_path_buf();
        let file = file.as_file_mut();
        file.rewind().expect("the file seeks");
        file.write_all(bytes).expect("the file takes bytes");
        file.set_len(bytes.len() as u64)
            .expect("the file takes a length");
        let options = ImportOptions {
            to: None,
            tokenizer: None,
            force: true,
        };
        assert!(import(&path, &options, &path, &()).is_err());
    });
});
