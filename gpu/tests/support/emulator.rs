//! The device that tests run on: the emulated one, built from the kernels' own sources, or the machine's.

use std::env;
use std::ffi::{CStr, CString, c_char, c_int, c_ulonglong};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};

/// Tests of one binary that use the device do so one after another: its options and counters are the process's.
static TURN: Mutex<()> = Mutex::new(());

/// The device, for one test.
pub struct Device {
    library: Option<&'static Library>,
    /// Memory that was not freed when the test began.
    held: u64,
    // Last, so that the next test begins when all is done.
    _turn: MutexGuard<'static, ()>,
}

/// The device that tests run on; `None` after a call of [`super::skip`] where there is none.
pub fn device() -> Option<Device> {
    let library = if env::var("TERCET_CUDA").as_deref() == Ok("device") {
        None
    } else {
        Some(library()?)
    };
    // A test that failed leaves nothing that the next could not work with.
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut device = Device {
        library,
        held: 0,
        _turn: turn,
    };
    device.held = device.held();
    Some(device)
}

/// Has a program find the emulated driver where it looks for one, or leaves it the machine's own; false after a call of
/// [`super::skip`] where there is none.
pub fn lend(program: &mut Command) -> bool {
    if env::var("TERCET_CUDA").as_deref() == Ok("device") {
        return true;
    }
    match build() {
        Ok(library) => {
            let folder = library.parent().expect("a library lies in a folder");
            program.env("LD_LIBRARY_PATH", folder);
            true
        }
        Err(reason) => {
            super::skip(&reason);
            false
        }
    }
}

/// The emulated device, whose faults and counters a test needs; `None` after a call of [`super::skip`] where there is
/// none.
pub fn emulated() -> Option<Device> {
    let device = device()?;
    if device.library.is_none() {
        super::skip("this needs the emulated device");
        return None;
    }
    Some(device)
}

/// Whether every load and store of kernels is checked, which takes some four times as long: tests of many sizes then
/// take fewer.
pub fn checked() -> bool {
    env::var("TERCET_EMULATOR_VARIANT")
        .is_ok_and(|variant| ["check", "ptx"].contains(&variant.as_str()))
}

impl Device {
    /// Whether it is slow.
    pub const fn is_emulated(&self) -> bool {
        self.library.is_some()
    }

    /// Sets options of the emulated device ("seed=3,fail=alloc:2"); a real one stays as it is.
    pub fn set(&self, options: &str) {
        if let Some(library) = self.library {
            configure(library, options);
        }
    }

    /// Opens the emulated NCCL, so that the loader finds it by its own name from now on; never closed. With a real
    /// device the machine's own is left to be found.
    pub fn open_nccl(&self) {
        if self.library.is_none() {
            return;
        }
        static NCCL: OnceLock<Library> = OnceLock::new();
        NCCL.get_or_init(|| {
            let path = build().unwrap().with_file_name("libnccl.so.2");
            // SAFETY: it has no initialisers: it is a name for functions of the emulated driver.
            unsafe { Library::open(Some(&path), RTLD_NOW) }
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        });
    }

    /// How often the emulated device did something; 0 of a real one.
    pub fn count(&self, what: &str) -> u64 {
        let Some(library) = self.library else {
            return 0;
        };
        let text = CString::new(what).unwrap();
        // SAFETY: the emulator's function has this type and reads a string.
        unsafe {
            let count = library.get::<unsafe extern "C" fn(*const c_char) -> c_ulonglong>(
                b"tercet_emulator_count\0",
            );
            count.unwrap()(text.as_ptr())
        }
    }

    /// What ended the last launch that failed on the emulated device.
    pub fn message(&self) -> String {
        let Some(library) = self.library else {
            return String::new();
        };
        // SAFETY: the emulator's function has this type and gives a string, which is copied before the next call.
        unsafe {
            let message = library
                .get::<unsafe extern "C" fn() -> *const c_char>(b"tercet_emulator_message\0");
            CStr::from_ptr(message.unwrap()())
                .to_string_lossy()
                .into_owned()
        }
    }

    fn held(&self) -> u64 {
        self.count("allocations") - self.count("frees")
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the last launch that failed: {}", self.message());
        }
        self.set("fail=none,seed=1,capability=9.0,late=drawn,peers=1");
        if std::thread::panicking() {
            let message = self.message();
            if !message.is_empty() {
                eprintln!("the emulated device said: {message}");
            }
        } else {
            // Engines and buffers were dropped before.
            assert_eq!(
                self.held(),
                self.held,
                "memory of the device or pinned memory is left"
            );
        }
    }
}

/// The emulated driver, built and opened once a process, and never closed. Its machine has three devices, whoever
/// asks first.
fn library() -> Option<&'static Library> {
    static LIBRARY: OnceLock<Result<Library, String>> = OnceLock::new();
    match LIBRARY.get_or_init(open) {
        Ok(library) => Some(library),
        Err(reason) => {
            super::skip(reason);
            None
        }
    }
}

fn open() -> Result<Library, String> {
    let path = build()?;
    // The loader finds a library that is open by its own name, so that the engine's search for the driver ends at
    // this one.
    // SAFETY: the emulator's initialisers only set up its own state.
    let library = unsafe { Library::open(Some(&path), RTLD_NOW | RTLD_GLOBAL) }
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    // Before the driver starts.
    configure(&library, "devices=3");
    Ok(library)
}

fn configure(library: &Library, options: &str) {
    let text = CString::new(options).unwrap();
    // SAFETY: the emulator's function has this type and reads a string.
    let unread = unsafe {
        let set = library
            .get::<unsafe extern "C" fn(*const c_char) -> c_int>(b"tercet_emulator_configure\0");
        set.unwrap()(text.as_ptr())
    };
    assert_eq!(unread, 0, "{options}");
}

/// Finding out that nothing changed takes a second, and some tests start a hundred programs.
static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();

/// The variable by which a child hears where the library lies that its parent has built.
pub const BUILT_BEFORE: &str = "TERCET_EMULATOR_BUILT";

/// Has `kernels/emulator/build` compile what changed; the library's path.
pub fn build() -> Result<PathBuf, String> {
    BUILT.get_or_init(built).clone()
}

/// Where the library lies, if this process has asked for it.
pub fn built_before() -> Option<&'static Path> {
    BUILT.get()?.as_deref().ok()
}

fn built() -> Result<PathBuf, String> {
    if let Some(library) = env::var_os(BUILT_BEFORE) {
        return Ok(PathBuf::from(library));
    }
    let compiler = env::var("CXX").unwrap_or_else(|_| "g++".to_owned());
    let found = Command::new(&compiler).arg("--version").output();
    if !found.is_ok_and(|found| found.status.success()) {
        return Err(format!(
            "no C++ compiler at {compiler}, which the emulated device is built with; install g++ or set CXX"
        ));
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kernels/emulator/build");
    let variant = env::var("TERCET_EMULATOR_VARIANT").unwrap_or_else(|_| "plain".to_owned());
    let output = Command::new("bash").arg(&script).arg(variant).output();
    let output = output.unwrap_or_else(|error| panic!("{}: {error}", script.display()));
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let printed = String::from_utf8(output.stdout).unwrap();
    Ok(PathBuf::from(printed.trim_end()))
}
