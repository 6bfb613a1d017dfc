//! Runs a program's cases and prints a line for each.

use core::fmt;

use semihosting::{eprintln, println, process};

use crate::board::BoardClock;
use crate::counter::Counter;
use crate::memory::Memory;

/// One thing to count.
pub trait Case {
    /// The columns that name it; no spaces within one.
    fn name(&self) -> Name;

    /// How many units of work a run does: multiply-accumulates, operations.
    fn work(&self) -> usize;

    /// Bytes of working memory that the caller must lend, besides inputs and outputs.
    fn scratch(&self) -> usize {
        0
    }

    /// The work. Runs at least three times.
    fn run(&mut self);

    /// Whether the last run's result is right.
    fn check(&mut self) -> bool;
}

/// What a line of the table is about.
#[derive(Clone, Copy, Debug)]
pub struct Name {
    /// The operation.
    pub operation: &'static str,
    /// How the data lies.
    pub layout: &'static str,
    /// How much of it.
    pub shape: Shape,
    /// Which code: the engine's (`kernel`), plain loops (`plain`), or a peer's name.
    pub code: &'static str,
}

/// Two lengths, such as rows and columns.
#[derive(Clone, Copy, Debug)]
pub struct Shape(pub usize, pub usize);

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>4}x{:<4}", self.0, self.1)
    }
}

/// Counts cases.
#[derive(Debug)]
pub struct Bench {
    counter: Counter<BoardClock>,
    failures: u32,
}

impl Bench {
    /// Runs a case, checks its result, counts it twice, and prints its line.
    ///
    /// A wrong result, and a count that is not the same again, fail the program.
    pub fn case<C: Case>(&mut self, case: &mut C) {
        let Name {
            operation,
            layout,
            shape,
            code,
        } = case.name();
        enter(case);
        if !case.check() {
            eprintln!("{operation} {layout} {shape} {code}: wrong result");
            self.failures += 1;
            return;
        }
        let count = self.counter.count(&mut || enter(case));
        let again = self.counter.count(&mut || enter(case));
        if count != again {
            eprintln!("{operation} {layout} {shape} {code}: {count} instructions, then {again}");
            self.failures += 1;
        }
        self.line(&Line {
            name: case.name(),
            instructions: count,
            work: case.work(),
            scratch: case.scratch(),
            code: enter::<C> as *const () as usize,
        });
    }

    /// The counter, for cases that are many small ones.
    pub fn counter(&self) -> &Counter<BoardClock> {
        &self.counter
    }

    /// Fails the program, with a reason.
    pub fn fail(&mut self, reason: &str) {
        eprintln!("{reason}");
        self.failures += 1;
    }

    /// Prints a line.
    pub fn line(&self, line: &Line) {
        let Name {
            operation,
            layout,
            shape,
            code,
        } = line.name;
        let (count, scratch, address) = (line.instructions, line.scratch, line.code);
        let work = line.work.max(1) as u64;
        let each = Thousandths((count * 1000 + work / 2) / work);
        println!(
            "{operation:<9} {layout:<14} {shape} {code:<8} {count:>9} {work:>7} {each} {scratch:>7} {address:#010x}"
        );
    }
}

/// What a line says.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    /// Whose.
    pub name: Name,
    /// Instructions, all together.
    pub instructions: u64,
    /// Over how many units of work.
    pub work: usize,
    /// Bytes that the caller lends.
    pub scratch: usize,
    /// The address of the function that did it.
    pub code: usize,
}

/// A number in thousandths.
struct Thousandths(u64);

impl fmt::Display for Thousandths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>4}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}

/// The code that is counted, under an address of its own: what is reachable from there is its size.
#[inline(never)]
fn enter<C: Case>(case: &mut C) {
    case.run();
}

/// Checks that the clock follows instructions, then runs `body`; fails where anything was wrong.
pub fn run(body: fn(&mut Bench, Memory<'static>)) -> ! {
    let counter = Counter::new(BoardClock::start());
    if let Err((expected, counted)) = counter.verify() {
        eprintln!("{expected} instructions were counted as {counted}; QEMU wants -icount shift=7");
        process::exit(1)
    }
    println!(
        "{:<9} {:<14} {:<9} {:<8} {:>9} {:>7} {:>8} {:>7} {:<10}",
        "# what", "layout", "shape", "code", "instr", "work", "each", "scratch", "address"
    );
    let mut bench = Bench {
        counter,
        failures: 0,
    };
    body(&mut bench, Memory::take());
    process::exit(i32::from(bench.failures > 0))
}
