//! `tercet info`: shows the machine, and the engine that works on it.

use serde::Serialize;
use tercet_host::measure::{Cache, Machine, Processor};
use tercet_host::simd::Backend;

use crate::failure::Failure;
use crate::gpus::{self, Gpu};
use crate::table::{Align, Table};
use crate::{format, output, tune};

const EXAMPLES: &str = "\
Examples:
  tercet info
  tercet info --json
  TERCET_BACKEND=avx2 tercet info        what a run with this variable would use

The processor can run every instruction set listed, and all of them give the same bits. Work uses the last one \
unless TERCET_BACKEND names another. Clock rates are the highest that the driver reports, not the current ones.

A machine without a GPU, or with a driver that does not work, is not an error: the reason is printed in place of the \
GPUs.

JSON (--json): version, processor (name, architecture, system, cores, threads, caches[] (level, holds, bytes, \
threads)), instruction_sets (found[], used, why: best or TERCET_BACKEND), threads (that work is shared out to), \
gpus[] (device, name, capability, memory, free, multiprocessors, cache, clock, memory_clock (MHz), memory_bus \
(bits), driver, refused (null, or why it cannot be used)), no_gpu (null, or why there is none), tuning (file (null \
where TERCET_TUNING is off), made (null, or the day), device, refused (null, or why the file is not used)).";

/// Show the processor, its instruction sets, GPUs, and the engines in use
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Report as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Info {
    version: &'static str,
    processor: Described,
    instruction_sets: Sets,
    /// Threads that share the work.
    threads: usize,
    gpus: Vec<Gpu>,
    no_gpu: Option<String>,
    tuning: tune::File,
}

#[derive(Debug, Serialize)]
struct Described {
    name: String,
    architecture: &'static str,
    system: &'static str,
    cores: Option<usize>,
    threads: Option<usize>,
    caches: Vec<Cache>,
}

#[derive(Debug, Serialize)]
struct Sets {
    found: Vec<&'static str>,
    used: &'static str,
    why: &'static str,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let info = Info::here()?;
    if arguments.json {
        output::json(&info)
    } else {
        output::text(&info.people())
    }
}

impl Info {
    fn here() -> Result<Self, Failure> {
        let (machine, processor) = (Machine::here(), Processor::here());
        let named = std::env::var_os("TERCET_BACKEND").is_some_and(|name| !name.is_empty());
        let (gpus, no_gpu) = match gpus::all() {
            Ok(gpus) => (gpus, None),
            Err(reason) => (Vec::new(), Some(reason)),
        };
        Ok(Self {
            version: env!("CARGO_PKG_VERSION"),
            processor: Described {
                name: processor.name,
                architecture: machine.architecture,
                system: machine.system,
                cores: processor.cores,
                threads: processor.threads,
                caches: processor.caches,
            },
            instruction_sets: Sets {
                found: machine.backends,
                used: Backend::default().isa().name(),
                why: if named { "TERCET_BACKEND" } else { "best" },
            },
            threads: machine.threads,
            gpus,
            no_gpu,
            tuning: tune::File::here()?,
        })
    }

    fn people(&self) -> String {
        let Described {
            name,
            architecture,
            system,
            cores,
            threads,
            caches,
        } = &self.processor;
        let count = |count: usize, thing| format::counted(count as u64, thing);
        let told = |number: Option<usize>, thing| {
            number.map_or_else(String::new, |number| format!(", {}", count(number, thing)))
        };
        let (cores, hardware) = (told(*cores, "core"), told(*threads, "thread"));
        let why = match self.instruction_sets.why {
            "best" => "the best of them",
            variable => variable,
        };
        let mut text = format!(
            "tercet            {}\nprocessor         {name}{cores}{hardware}, {system} on {architecture}\n",
            self.version,
        );
        if !caches.is_empty() {
            let caches: Vec<String> = caches.iter().map(words).collect();
            text += &format!("caches            {}\n", caches.join(", "));
        }
        text += &format!(
            "instruction sets  {}\nused              {} ({why}) on {}\n",
            self.instruction_sets.found.join(", "),
            self.instruction_sets.used,
            count(self.threads, "thread"),
        );
        text += &format!("tuning            {}\n", self.tuning.words());
        match &self.no_gpu {
            Some(reason) => text + &format!("GPUs              none: {reason}\n"),
            None => text + "\n" + &table(&self.gpus),
        }
    }
}

/// Formats `L1 data 48 KiB`, with the number of threads that share it if there are several.
fn words(cache: &Cache) -> String {
    let Cache {
        level,
        holds,
        bytes,
        threads,
    } = cache;
    let holds = match holds.as_str() {
        "unified" => String::new(),
        holds => format!(" {holds}"),
    };
    let shared = match threads {
        0 | 1 => String::new(),
        threads => format!(" (shared by {threads} threads)"),
    };
    format!("L{level}{holds} {}{shared}", format::bytes(*bytes))
}

fn table(gpus: &[Gpu]) -> String {
    use Align::{Left, Right};
    let mut table = Table::new(&[
        ("GPU", Left),
        ("device", Right),
        ("capability", Right),
        ("memory", Right),
        ("free", Right),
        ("multiprocessors", Right),
        ("clock", Right),
        ("memory clock", Right),
        ("driver", Right),
        ("", Left),
    ]);
    let clock =
        |clock: Option<u32>| clock.map_or_else(|| "-".to_owned(), |mhz| format!("{mhz} MHz"));
    for gpu in gpus {
        table.row([
            gpu.name.clone(),
            gpu.device.to_string(),
            gpu.capability.clone(),
            format::bytes(gpu.memory),
            format::bytes(gpu.free),
            gpu.multiprocessors.to_string(),
            clock(gpu.clock),
            clock(gpu.memory_clock),
            gpu.driver.clone(),
            gpu.refused
                .map_or_else(String::new, |reason| format!("not used: {reason}")),
        ]);
    }
    table.render()
}
