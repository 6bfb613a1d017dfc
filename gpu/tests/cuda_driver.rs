//! No driver, what is not a driver, an old one, one without devices: each an error in one line, and never a panic.

use crate::support;
use crate::support::{child, library};
use tercet_core::block::Format;
use tercet_core::engine::BlockEngine;
use tercet_core::quant::{Rule, ScaleRule};
use tercet_gpu::engine::{Cuda, CudaError, device_count, driver_version};

/// In a child: what the engine says, by each way to ask, and asked again.
#[test]
fn says() {
    if !child::is_one() {
        return;
    }
    let first = Cuda::first().unwrap_err();
    assert_eq!(Cuda::first().unwrap_err(), first);
    assert_eq!(device_count().unwrap_err(), first);
    if !matches!(first, CudaError::NoDevice { .. }) {
        assert_eq!(driver_version().unwrap_err(), first);
    }
    assert!(first.is_of_the_device() && !first.is_out_of_memory());
    let line = first.to_string();
    assert!(!line.contains('\n'), "{line}");
    child::tell(&line);
}

/// What the engine says where this C is the driver; `None` without a compiler.
fn said_of(source: &str) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    library::compile(folder.path(), source).then(|| said_in(folder.path()))
}

fn said_in(folder: &std::path::Path) -> String {
    let told = child::run(module_path!(), "says", folder, &[]);
    assert_eq!(told.len(), 1, "{told:?}");
    told[0].clone()
}

const STUB: u32 = 34;
const STUB_SAID: &str =
    "the CUDA driver does not work: it is a stub library, which is only for linking";

const VERSION: &str = "unsigned cuDriverGetVersion(int *version) { *version = 12040; return 0; }\n";

/// In a child: which libraries of a driver the machine has. This process may have opened the emulated one.
#[test]
fn finds() {
    if child::is_one() {
        for name in [library::DRIVER, STUB_NAME] {
            // SAFETY: it opens what would be the machine's driver, as the engine would.
            if unsafe { libloading::Library::new(name) }.is_ok() {
                child::tell(name);
            }
        }
    }
}

fn found_in(folder: &std::path::Path) -> Vec<String> {
    child::run(module_path!(), "finds", folder, &[])
}

/// What toolkits call the library that serves only to link with.
const STUB_NAME: &str = "libcuda.so";

#[test]
fn no_driver_is_told() {
    let folder = tempfile::tempdir().unwrap();
    if !found_in(folder.path()).is_empty() {
        return support::skip("this machine has a CUDA driver");
    }
    let said = said_in(folder.path());
    assert_eq!(
        said,
        "no CUDA driver is installed (libcuda.so, on Windows nvcuda.dll)"
    );
    // Something of that name that is no library at all is no driver either.
    for name in [library::DRIVER, STUB_NAME] {
        std::fs::write(folder.path().join(name), "not a library").unwrap();
        assert_eq!(said_in(folder.path()), said);
    }
}

/// A toolkit's folder with a stub may come before the driver's on the loader's path.
#[test]
fn a_stub_beside_a_driver_is_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    const NO_DEVICE: u32 = 100;
    let driver = library::answering(NO_DEVICE, VERSION);
    let stub = library::answering(STUB, VERSION);
    for (name, source) in [(STUB_NAME, &stub), (library::DRIVER, &driver)] {
        if !library::compile_as(folder.path(), name, source) {
            return;
        }
    }
    assert_eq!(
        said_in(folder.path()),
        "no CUDA device 0: this machine has 0"
    );
    // Where there is none, the stub is what there is.
    std::fs::remove_file(folder.path().join(library::DRIVER)).unwrap();
    if found_in(folder.path()) == [STUB_NAME] {
        assert_eq!(said_in(folder.path()), STUB_SAID);
    }
}

#[test]
fn an_empty_library_is_a_broken_driver() {
    let Some(said) = said_of("int unrelated;") else {
        return;
    };
    assert_eq!(
        said,
        "the CUDA driver does not work: it has no function cuDriverGetVersion"
    );
}

#[test]
fn a_driver_without_a_function_is_broken() {
    let all = library::functions();
    // The first, the last, and one that only newer drivers have.
    for missing in [all[0], all[all.len() - 1], "cuMemAllocFromPoolAsync"] {
        let source = library::answering(0, VERSION);
        let source = source.replace(&format!(" {missing}("), " somethingElse(");
        let Some(said) = said_of(&source) else { return };
        let expected = format!("the CUDA driver does not work: it has no function {missing}");
        assert_eq!(said, expected);
    }
}

#[test]
fn a_stub_library_is_told() {
    // The toolkit's answers so in every function; one that tells its version is no better.
    for given in ["", VERSION] {
        let Some(said) = said_of(&library::answering(STUB, given)) else {
            return;
        };
        assert_eq!(said, STUB_SAID);
    }
}

#[test]
fn an_old_driver_is_told_even_where_it_lacks_functions() {
    for (version, name) in [(11070, "11.7"), (11040, "11.4"), (9020, "9.2")] {
        let source = VERSION.replace("12040", &version.to_string());
        let Some(said) = said_of(&source) else { return };
        assert_eq!(
            said,
            format!("the CUDA driver has version {name}; version 11.8 or newer is needed")
        );
    }
}

#[test]
fn a_driver_that_does_not_start_is_broken() {
    const UNKNOWN: u32 = 999;
    let Some(said) = said_of(&library::answering(UNKNOWN, VERSION)) else {
        return;
    };
    assert_eq!(
        said,
        "the CUDA driver does not work: it does not start (CUDA error 999)"
    );
    // A status that no header knows, as of a newer driver.
    let Some(said) = said_of(&library::answering(4_000_000_000, VERSION)) else {
        return;
    };
    assert_eq!(
        said,
        "the CUDA driver does not work: it does not start (CUDA error 4000000000)"
    );
}

#[test]
fn no_device_is_told() {
    const NO_DEVICE: u32 = 100;
    let Some(said) = said_of(&library::answering(NO_DEVICE, VERSION)) else {
        return;
    };
    assert_eq!(said, "no CUDA device 0: this machine has 0");
    let none = "unsigned cuDeviceGetCount(int *count) { *count = 0; return 0; }\n";
    let source = library::answering(0, &format!("{VERSION}{none}"));
    let Some(said) = said_of(&source) else { return };
    assert_eq!(said, "no CUDA device 0: this machine has 0");
}

#[test]
fn a_device_that_cannot_be_used_is_told() {
    const UNAVAILABLE: u32 = 46;
    let found = "unsigned cuInit() { return 0; }
        unsigned cuDeviceGetCount(int *count) { *count = 1; return 0; }
        unsigned cuDeviceGet(int *device) { *device = 0; return 0; }
        unsigned cuGetErrorName(unsigned status, char **name) { *name = \"BUSY\"; return 0; }\n";
    let source = library::answering(UNAVAILABLE, &format!("{VERSION}{found}"));
    let folder = tempfile::tempdir().unwrap();
    if !library::compile(folder.path(), &source) {
        return;
    }
    let told = child::run(module_path!(), "is_busy", folder.path(), &[]);
    assert_eq!(told, ["cuDevicePrimaryCtxRetain failed: BUSY (46)"]);
}

/// In a child: a device that is counted and does not open.
#[test]
fn is_busy() {
    if child::is_one() {
        assert_eq!(device_count(), Ok(1));
        child::tell(&Cuda::first().unwrap_err().to_string());
    }
}

/// In a child: whether what one module does works, and what another does.
#[test]
fn encodes_and_decodes() {
    if !child::is_one() {
        return;
    }
    let _device = support::emulator::device().unwrap();
    let mut cuda = Cuda::first().unwrap();
    let mut blocks = [0; 34];
    let (rule, scale) = (Rule::AbsMax, ScaleRule::Rule);
    let encoded = cuda.encode_blocks(Format::Q8_0, rule, scale, &[1.0f32; 32], &mut blocks);
    child::tell(&format!("encode: {:?}", encoded.map(|_| ())));
    let mut values = [0.0f32; 32];
    let decoded = cuda.decode_blocks(Format::Q8_0, &blocks, &mut values);
    child::tell(&format!("decode: {decoded:?}"));
}

#[test]
fn texts_of_a_folder_take_the_place_of_those_shipped() {
    if support::emulator::device().is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let said = || {
        let variables = [("TERCET_PTX", folder.path().as_os_str())];
        child::run(
            module_path!(),
            "encodes_and_decodes",
            "".as_ref(),
            &variables,
        )
    };
    let worked = ["encode: Ok(())", "decode: Ok(())"];
    assert_eq!(said(), worked, "of an empty folder");
    let text = tercet_kernels::module("block_encode", (9, 0)).unwrap().ptx;
    let write = |text: &str| {
        std::fs::create_dir_all(folder.path().join("75")).unwrap();
        std::fs::write(folder.path().join("75/block_encode.ptx"), text).unwrap();
    };
    write(text);
    assert_eq!(said(), worked, "of the same text");
    write(&text.replace(".version 7.4", ".version 99.0"));
    let told = said();
    assert!(told[0].contains("cuModuleLoadData"), "{told:?}");
    assert_eq!(told[1], worked[1]);
}
