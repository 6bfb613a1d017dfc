//! Counts the instructions of the host's hot operations with valgrind's callgrind, and compares them with the
//! committed table.
//!
//! `counts BACKEND SNAPSHOT` runs every case of [`cases`] with that backend in a pool of one thread and prints the
//! table. It fails if a case takes 2 % more than in SNAPSHOT, or if the two have different cases; with
//! TERCET_OVERWRITE=1 it writes SNAPSHOT instead. To count, the program runs itself under valgrind, as `counts run`.

mod callgrind;
mod cases;
mod table;

use std::error::Error;
use std::process::{Command, ExitCode};
use std::{env, fs};

use tercet_host::simd::Backend;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match arguments[..] {
        ["run"] => run(),
        [backend, snapshot] => compare(backend, snapshot),
        _ => Err("usage: counts BACKEND SNAPSHOT".into()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// The part that valgrind watches: prints the description of each case and runs the case twice, the second time in
/// [`counted_by_valgrind`].
fn run() -> Result<(), Box<dyn Error>> {
    Backend::chosen()?;
    // This thread is the pool, so that no other thread waits, spins or is woken meanwhile.
    rayon::ThreadPoolBuilder::new()
        .num_threads(1)
        .use_current_thread()
        .build_global()?;
    for entry in cases::all() {
        println!("{}", cases::run(&entry, counted_by_valgrind));
    }
    Ok(())
}

/// The function that valgrind counts, by this name: see [`callgrind::count`].
// SAFETY: no other symbol of the program has the name. Unmangled, since each valgrind prints mangled ones in its own
// way.
#[unsafe(no_mangle)]
#[inline(never)]
fn counted_by_valgrind(run: &mut dyn FnMut()) {
    run();
    // So that the call above is not in tail position, and this function returns after it.
    std::hint::black_box(run);
}

fn compare(backend: &str, snapshot: &str) -> Result<(), Box<dyn Error>> {
    let (printed, counts) = callgrind::count(backend)?;
    let rows = table::join(&printed, &counts)?;
    let compiler = compiler()?;
    let text = table::table(&compiler, &rows);
    print!("{text}");
    if env::var_os("TERCET_OVERWRITE").is_some() {
        return Ok(fs::write(snapshot, text)?);
    }
    let committed = fs::read_to_string(snapshot).map_err(|error| format!("{snapshot}: {error}"))?;
    let complaints = table::compare(&table::parse(&committed)?, &rows);
    if complaints.is_empty() {
        return Ok(());
    }
    let mut text = String::new();
    for complaint in complaints {
        text += &format!("{backend}: {complaint}\n");
    }
    if !committed.contains(&compiler) {
        text += &format!("{snapshot} is of another compiler than {compiler}\n");
    }
    Err(format!("{text}TERCET_OVERWRITE=1 .ci/test counts renews the tables").into())
}

/// Returns the compiler that cargo uses. It compiled this program if cargo has just done so.
fn compiler() -> Result<String, Box<dyn Error>> {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).arg("--version").output()?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
