//! The conformance table for a WebAssembly host without a console: `table` hands each line to the imported `line`.
//!
//! `.ci/wasm.mjs` runs it in node. On other targets this example is empty.

#![cfg(target_arch = "wasm32")]

use tercet_core::conformance;

#[link(wasm_import_module = "host")]
unsafe extern "C" {
    /// The host reads `len` bytes of UTF-8 at `text`, before it returns.
    fn line(text: *const u8, len: usize);
}

/// Runs every operation and hands over one line each; returns how many differ from the committed table.
#[unsafe(no_mangle)]
pub extern "C" fn table() -> u32 {
    let mut differ = 0;
    conformance::run(&mut |name, digest| {
        let text = format!("{name} {digest:016x}");
        // SAFETY: `text` lives through the call, and the host only reads it.
        unsafe { line(text.as_ptr(), text.len()) };
        differ += u32::from(conformance::expected(name) != Some(digest));
    });
    differ
}
