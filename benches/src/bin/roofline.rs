//! Prints every case as ratios: `roofline [--size VALUES] [--only WORD] [--write]`.

use std::process::ExitCode;

use tercet_benches::peers::ggml;
use tercet_benches::{command, contenders, guests, table, write};
use tercet_host::measure::{Machine, Runner, Settings, catalogue, date};

const USAGE: &str = "\
usage: roofline [--size VALUES] [--only WORD] [--write]
  --size VALUES  about so many values (otherwise each operation's own sizes: `tercet bench --list`)
  --only WORD    only operations whose name contains it
  --write        also write benches/results/<machine>/roofline.md";

#[derive(Default)]
struct Options {
    size: Option<usize>,
    only: String,
    write: bool,
}

/// Reads the command line; `None` if it does not match [`USAGE`].
fn options(mut args: impl Iterator<Item = String>) -> Option<Options> {
    let mut options = Options::default();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--size" => {
                let size = args.next()?.parse().ok();
                options.size = Some(size.filter(|size| (1..=1 << 30).contains(size))?);
            }
            "--only" => options.only = args.next()?,
            "--write" => options.write = true,
            _ => return None,
        }
    }
    Some(options)
}

fn main() -> ExitCode {
    let Some(options) = options(std::env::args().skip(1)) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    if ggml::library().is_none() {
        eprintln!("ggml is left out: TERCET_GGML does not name libggml-base.so");
    }
    println!("{}, {}\n", Machine::here().describe(), date());
    let (contenders, mut runner) = (contenders(), Runner::new(Settings::thorough()));
    let mut results = Vec::new();
    for entry in catalogue(options.size) {
        if !entry.operation.contains(&options.only) {
            continue;
        }
        eprintln!("{}, {}", entry.operation, entry.size);
        let found = runner.run_beside(&entry.build(), &contenders, &mut guests(&entry));
        match found {
            Ok(found) => results.extend(found),
            Err(error) => {
                eprintln!("{error}");
                return ExitCode::FAILURE;
            }
        }
    }
    println!("{}", table(&results));
    if options.write {
        match write(&results, &command("roofline")) {
            Ok(path) => println!("\nwritten to {}", path.display()),
            Err(error) => {
                eprintln!("results: {error}");
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}
