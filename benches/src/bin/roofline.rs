//! Prints every case as ratios: `roofline [--mega N] [--only WORD] [--write]`.

use std::process::ExitCode;
use std::time::Instant;
use tercet_benches::peers::ggml;
use tercet_benches::{
    Case, HEAD, Row, blocks, cluster, command, linear, machine, palette, quantize, search, write,
};

const USAGE: &str = "\
usage: roofline [--mega N] [--only WORD] [--write]
  --mega N      only quantizers, blocks, layers and palettes, of N times 2^20 values (otherwise 1, then 16)
  --only WORD   only operations whose name contains it
  --write       also write benches/results/<date>-<machine>.md";

/// Time for each contender of a case, in seconds; never fewer than 3 runs.
const SECONDS: f64 = 0.5;

#[derive(Default)]
struct Options {
    mega: Option<usize>,
    only: String,
    write: bool,
}

/// Reads the command line; `None` where it is not as [`USAGE`] says.
fn options(mut args: impl Iterator<Item = String>) -> Option<Options> {
    let mut options = Options::default();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--mega" => {
                let mega = args.next()?.parse().ok();
                options.mega = Some(mega.filter(|mega| (1..=1024).contains(mega))?);
            }
            "--only" => options.only = args.next()?,
            "--write" => options.write = true,
            _ => return None,
        }
    }
    Some(options)
}

/// Runs the contenders in turn, so that a slow minute of the machine falls on all of them, and keeps each one's
/// best time. The first round is not timed: it faults the buffers in.
fn measure(case: &mut Case) -> Row {
    let mut times: Vec<_> = case
        .contenders
        .iter()
        .map(|(who, _)| (*who, f64::INFINITY))
        .collect();
    for (_, work) in &mut case.contenders {
        work();
    }
    let start = Instant::now();
    let mut rounds = 0;
    while rounds < 3 || start.elapsed().as_secs_f64() < SECONDS * times.len() as f64 {
        for ((_, work), (_, best)) in case.contenders.iter_mut().zip(&mut times) {
            let start = Instant::now();
            work();
            *best = start.elapsed().as_secs_f64().min(*best);
        }
        rounds += 1;
    }
    Row::new(case, times)
}

fn main() -> ExitCode {
    let Some(options) = options(std::env::args().skip(1)) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    if ggml::library().is_none() {
        eprintln!("ggml is left out: TERCET_GGML does not name libggml-base.so");
    }
    println!("{}, {}\n\n{HEAD}", machine::describe(), machine::date());
    let mut rows = Vec::new();
    let sizes = options.mega.map_or(vec![1, 16], |mega| vec![mega]);
    let sizes = sizes.into_iter().map(|mega| mega << 20);
    let sized = sizes.flat_map(|values| {
        quantize(values)
            .chain(blocks(values))
            .chain(linear(values))
            .chain(palette(values))
    });
    let others: Box<dyn Iterator<Item = Case>> = match options.mega {
        None => Box::new(cluster().chain(search())),
        Some(_) => Box::new(std::iter::empty()),
    };
    for mut case in sized.chain(others) {
        if case.name.contains(&options.only) {
            rows.push(measure(&mut case));
            println!("{}", rows[rows.len() - 1]);
        }
    }
    if options.write {
        match write(&rows, &command("roofline")) {
            Ok(path) => println!("\nwritten to {}", path.display()),
            Err(error) => {
                eprintln!("results: {error}");
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}
