//! ggml's compiled libraries: its reference quantizers, and its kernels for this processor.

use libloading::Library;
use std::ffi::{c_int, c_void};
use std::path::Path;
use std::sync::OnceLock;
use tercet_core::block::Format;

/// `void quantize_row_NAME_ref(const float * x, void * y, int64_t values)`
type Quantize = unsafe extern "C" fn(*const f32, *mut c_void, i64);
/// `void dequantize_row_NAME(const void * x, float * y, int64_t values)`
type Dequantize = unsafe extern "C" fn(*const c_void, *mut f32, i64);

/// Returns the library named by `TERCET_GGML` (`libggml-base.so`), or `None` if the variable is not set.
///
/// # Panics
/// If the variable names a file that does not load.
pub fn library() -> Option<&'static Library> {
    static LIBRARY: OnceLock<Option<Library>> = OnceLock::new();
    let load = || {
        let path = std::env::var_os("TERCET_GGML").filter(|path| !path.is_empty())?;
        // SAFETY: loading runs the library's initialisers; the user vouches for the file by naming it.
        Some(unsafe { Library::new(&path) }.unwrap_or_else(|error| panic!("TERCET_GGML: {error}")))
    };
    LIBRARY.get_or_init(load).as_ref()
}

/// Returns the library of kernels (`libggml-cpu-*.so`) in [`library`]'s folder that rates itself highest on this
/// processor; `None` if there is none.
pub fn cpu() -> Option<&'static Library> {
    static CPU: OnceLock<Option<Library>> = OnceLock::new();
    let load = || {
        library()?;
        let base = std::env::var_os("TERCET_GGML")?;
        let files = Path::new(&base).parent()?.read_dir().ok()?.flatten();
        let libraries = files.filter_map(|file| {
            let name = file.file_name();
            if !name.to_str()?.starts_with("libggml-cpu") {
                return None;
            }
            // SAFETY: as in `library`.
            let library = unsafe { Library::new(file.path()) }.ok()?;
            // SAFETY: `int ggml_backend_score(void)` is what a ggml that has many such libraries asks each of them.
            let score = unsafe {
                let score = library.get::<unsafe extern "C" fn() -> c_int>(b"ggml_backend_score");
                score.ok()?()
            };
            (score > 0).then_some((score, library))
        });
        let (_, best) = libraries.max_by_key(|&(score, _)| score)?;
        // SAFETY: `void ggml_cpu_init(void)`; some kernels read tables that it fills.
        unsafe { best.get::<unsafe extern "C" fn()>(b"ggml_cpu_init").ok()?() };
        Some(best)
    };
    CPU.get_or_init(load).as_ref()
}

/// Returns the encoder of a format, or `None` if this ggml has none.
pub fn encoder(format: Format) -> Option<impl Fn(&[f32], &mut [u8]) + 'static> {
    let name = format!("quantize_row_{}_ref", format.name());
    // SAFETY: the symbol has this type in every ggml that has it.
    let function = *unsafe { library()?.get::<Quantize>(name.as_bytes()) }.ok()?;
    Some(move |values: &[f32], out: &mut [u8]| {
        assert_eq!(format.encoded_len(values.len()), Ok(out.len()));
        assert!(out.as_ptr().addr().is_multiple_of(2));
        // SAFETY: the input holds as many values as it is told, the output their blocks, which start with or hold
        // an f16 and so need 2 bytes of alignment.
        unsafe {
            function(
                values.as_ptr(),
                out.as_mut_ptr().cast(),
                values.len() as i64,
            )
        }
    })
}

/// Returns the decoder of a format, or `None` if this ggml has none.
pub fn decoder(format: Format) -> Option<impl Fn(&[u8], &mut [f32]) + 'static> {
    let name = format!("dequantize_row_{}", format.name());
    // SAFETY: the symbol has this type in every ggml that has it.
    let function = *unsafe { library()?.get::<Dequantize>(name.as_bytes()) }.ok()?;
    Some(move |bytes: &[u8], out: &mut [f32]| {
        assert_eq!(format.encoded_len(out.len()), Ok(bytes.len()));
        assert!(bytes.as_ptr().addr().is_multiple_of(2));
        // SAFETY: as in `encoder`, the other way round.
        unsafe { function(bytes.as_ptr().cast(), out.as_mut_ptr(), out.len() as i64) }
    })
}
