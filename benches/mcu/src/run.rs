//! Runs a program's cases and prints a line for each.

use core::fmt;

use semihosting::{eprintln, println, process};

use crate::board::BoardClock;
use crate::counter::Counter;
use crate::memory::Memory;

/// A case to count.
pub trait Case {
    /// Returns the columns that name it; without spaces within a column.
    fn name(&self) -> Name;

    /// Returns the units of work per run: multiply-accumulates, operations.
    fn work(&self) -> usize;

    /// Returns the bytes of working memory that the caller must lend, besides inputs and outputs.
    fn scratch(&self) -> usize {
        0
    }

    /// Does the work. It is called at least three times.
    fn run(&mut self);

    /// Returns true if the last run's result is right.
    fn check(&mut self) -> bool;
}

/// The case of a line of the table.
#[derive(Clone, Copy, Debug)]
pub struct Name {
    /// The operation.
    pub operation: &'static str,
    /// The layout of the data.
    pub layout: &'static str,
    /// The shape of the data.
    pub shape: Shape,
    /// The code: the engine's (`kernel`), plain loops (`plain`), or a peer's name.
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
    /// A wrong result, or a different second count, makes the program fail.
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

    /// Returns the counter, for cases that consist of many small ones.
    pub fn counter(&self) -> &Counter<BoardClock> {
        &self.counter
    }

    /// Makes the program fail, with a reason.
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

/// The content of a line.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    /// The case.
    pub name: Name,
    /// Total instructions.
    pub instructions: u64,
    /// Total units of work.
    pub work: usize,
    /// Bytes that the caller lends.
    pub scratch: usize,
    /// The address of the function that did the work.
    pub code: usize,
}

/// A number in thousandths.
struct Thousandths(u64);

impl fmt::Display for Thousandths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>4}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}

/// Runs the counted code in a function with its own address. Its size is that of all code reachable from there.
#[inline(never)]
fn enter<C: Case>(case: &mut C) {
    case.run();
}

/// Checks that the clock follows instructions, then runs `body`. Fails if anything was wrong.
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
