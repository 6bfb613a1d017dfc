//! What the fuzz targets share.

use std::fs::File;
use std::io::{Seek, Write};
use std::path::Path;

use tercet_host::TensorFile;

/// Puts `bytes` into `file` and opens it as a model: that ends in an error, or every tensor can be read, as bytes and
/// as values.
pub fn open(file: &mut File, path: &Path, bytes: &[u8]) {
    file.rewind().expect("the file seeks");
    file.write_all(bytes).expect("the file takes bytes");
    file.set_len(bytes.len() as u64)
        .expect("the file takes a length");
    let Ok(model) = TensorFile::open(path) else {
        return;
    };
    let mut stored = 0;
    for tensor in model.tensors() {
        // Reads every byte, so that a view past the end faults.
        std::hint::black_box(tensor.bytes.iter().fold(0u8, |all, byte| all ^ byte));
        assert_eq!(
            model.get(tensor.name).map(|found| found.bytes.len()),
            Some(tensor.bytes.len())
        );
        let row = tensor.row();
        assert!(tensor.values() == 0 || tensor.values().is_multiple_of(row));
        stored += tensor.bytes.len();
    }
    assert!(stored <= bytes.len());
    // Reads values through scales, palettes and blocks: damaged ones are refused.
    let _ = tercet_host::inspect(
        &mut tercet_host::parallel::Threads::default(),
        &model,
        None,
        &(),
    );
}
