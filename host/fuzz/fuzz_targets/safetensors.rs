//! The safetensors reader: any bytes end in an error or in a model whose tensors can be read to the last byte.

#![no_main]

use std::cell::RefCell;

use libfuzzer_sys::fuzz_target;
use tempfile::NamedTempFile;

thread_local! {
    static FILE: RefCell<NamedTempFile> =
        RefCell::new(tempfile::Builder::new().suffix(".safetensors").tempfile().expect("a temporary file"));
}

fuzz_target!(|bytes: &[u8]| {
    FILE.with_borrow_mut(|file| {
        let path = file.path().to_path_buf();
        tercet_fuzz::open(file.as_file_mut(), &path, bytes);
    });
});
