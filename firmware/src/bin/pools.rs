//! Pools that the program and an interrupt use at once. Nothing is handed out twice, and nothing is lost.
//!
//! SysTick interrupts the program at any place. Both take blocks, write their owner into them, check some steps later
//! that they are intact, and give them back. Together they want more blocks than the pools have. Both also take from
//! one arena, and the handler fills a window that the program reads.

#![no_std]
#![no_main]

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use cortex_m::peripheral::syst::SystClkSource;
use cortex_m_rt::{entry, exception};
use tercet_core::pool::{
    Block, CriticalBlockPool, Guarded, Ring, SharedArena, SharedBlockPool, Stats,
};
use tercet_firmware::text::Text;
use tercet_firmware::{exit, no_panic};

no_panic!();

/// Interrupts until the program ends.
const INTERRUPTS: u32 = 20_000;
/// Minimum number of the program's steps.
const STEPS: u32 = 200_000;
/// Processor cycles between interrupts: not a multiple of any period of the program.
const CYCLES: u32 = 997;
/// Maximum number of blocks that each of the two holds; together more than there are.
const HELD: usize = 8;

type Free = SharedBlockPool<16, 12>;
type Locked = CriticalBlockPool<16, 12>;

static FREE: Free = SharedBlockPool::new();
static LOCKED: Locked = CriticalBlockPool::new();
static ARENA: SharedArena<2048> = SharedArena::new();
static WINDOW: Guarded<Ring<u32, 32>> = Guarded::new(Ring::new(0));

static COUNT: AtomicU32 = AtomicU32::new(0);
static BROKEN: AtomicBool = AtomicBool::new(false);
/// Blocks and words that the handler holds.
static HANDLER: [AtomicU32; 3] = [const { AtomicU32::new(0) }; 3];

/// Content of a block, which names its owner.
#[derive(Clone, Copy, PartialEq)]
struct Record {
    owner: u32,
    number: u32,
    check: u32,
}

impl Record {
    fn new(owner: u32, number: u32) -> Self {
        let check = owner ^ number.rotate_left(13) ^ 0x5EED_5EED;
        Self {
            owner,
            number,
            check,
        }
    }
}

/// The program or the handler.
struct Worker {
    owner: u32,
    number: u32,
    free: [Option<Block<'static, Record, Free>>; HELD],
    locked: [Option<Block<'static, Record, Locked>>; HELD],
    words: [Option<&'static mut [u32]>; 24],
}

impl Worker {
    const fn new(owner: u32) -> Self {
        Self {
            owner,
            number: 0,
            free: [const { None }; HELD],
            locked: [const { None }; HELD],
            words: [const { None }; 24],
        }
    }

    /// Gives a block of each pool back and takes another.
    fn step(&mut self) {
        self.number = self.number.wrapping_add(1);
        let record = Record::new(self.owner, self.number);
        // Two strides, so that blocks are given back in a different order than they were taken.
        let at = (self.number.wrapping_mul(3) % HELD as u32) as usize;
        if let Some(place) = self.free.get_mut(at) {
            whole(place.as_deref(), self.owner);
            // Given back before the next is taken.
            *place = None;
            *place = match FREE.alloc(record) {
                Ok(block) => Some(block),
                Err(back) => {
                    expect(back == record);
                    None
                }
            };
        }
        if let Some(place) = self.locked.get_mut(HELD - 1 - at) {
            whole(place.as_deref(), self.owner);
            *place = None;
            *place = LOCKED.alloc(record).ok();
        }
        let next = self.words.iter_mut().find(|words| words.is_none());
        if let Some(place) = next {
            *place = ARENA.alloc_slice(5, record.check).ok();
        }
        let at = self.number as usize % self.words.len();
        if let Some(Some(words)) = self.words.get(at) {
            expect(words.len() == 5 && words.iter().all(|word| Some(word) == words.first()));
        }
    }

    fn held(&self) -> [u32; 3] {
        let free = self.free.iter().flatten().count();
        let locked = self.locked.iter().flatten().count();
        let words = self.words.iter().flatten().map(|words| words.len()).sum();
        [free, locked, words].map(|count: usize| count as u32)
    }
}

fn whole(record: Option<&Record>, owner: u32) {
    expect(record.is_none_or(|&record| record == Record::new(owner, record.number)));
}

fn expect(right: bool) {
    if !right {
        BROKEN.store(true, Ordering::Relaxed);
    }
}

#[exception]
fn SysTick() {
    static mut WORKER: Worker = Worker::new(1);

    WORKER.step();
    let number = WORKER.number;
    expect(WINDOW.with(|window| window.push(number)).is_some());
    for (shared, held) in HANDLER.iter().zip(WORKER.held()) {
        shared.store(held, Ordering::Relaxed);
    }
    COUNT.store(number, Ordering::Relaxed);
}

#[entry]
fn main() -> ! {
    let Some(mut processor) = cortex_m::Peripherals::take() else {
        exit::failure()
    };
    processor.SYST.set_clock_source(SystClkSource::Core);
    processor.SYST.set_reload(CYCLES - 1);
    processor.SYST.clear_current();
    processor.SYST.enable_interrupt();
    processor.SYST.enable_counter();

    let mut worker = Worker::new(0);
    let mut samples = [0; 32];
    let mut windows = 0u32;
    while worker.number < STEPS || COUNT.load(Ordering::Relaxed) < INTERRUPTS {
        worker.step();
        let copied = WINDOW.with(|window| window.copy_to(&mut samples));
        let held = copied.and_then(|held| samples.get(..held));
        // The values that the handler pushed, in order and without a gap.
        let pairs = held.unwrap_or_default().windows(2);
        expect(
            held.is_some()
                && pairs
                    .clone()
                    .all(|pair| matches!(*pair, [a, b] if b == a + 1)),
        );
        windows += u32::from(pairs.len() == 31);
    }
    processor.SYST.disable_counter();
    processor.SYST.disable_interrupt();

    let [free, locked, words] = worker.held();
    let [free, locked, words] = [
        (FREE.stats(), free, 0),
        (LOCKED.stats(), locked, 1),
        (ARENA.stats(), words, 2),
    ]
    .map(|(stats, own, other)| {
        let other: &AtomicU32 = HANDLER.get(other).unwrap_or(&COUNT);
        (stats, own + other.load(Ordering::Relaxed))
    });
    report("lock-free blocks", &free.0);
    report("blocks in critical sections", &locked.0);
    report("arena bytes", &words.0);
    Text::new()
        .str("# ")
        .number(COUNT.load(Ordering::Relaxed))
        .str(" interrupts, ")
        .number(worker.number)
        .str(" steps, ")
        .number(windows)
        .str(" full windows")
        .end();
    // All of it, since together they wanted more than there is.
    expect(free.0.in_use as u32 == free.1 && free.0.high_water == 12 && free.0.failures > 0);
    expect(locked.0.in_use as u32 == locked.1 && locked.0.high_water == 12);
    expect(locked.0.failures > 0);
    expect(words.0.in_use as u32 == 4 * words.1);
    expect(windows > STEPS / 2);
    if BROKEN.load(Ordering::Relaxed) {
        exit::failure()
    }
    exit::success()
}

fn report(name: &str, stats: &Stats) {
    Text::new()
        .str("# ")
        .str(name)
        .str(": ")
        .number(stats.in_use as u32)
        .str(" of ")
        .number(stats.capacity as u32)
        .str(" in use, at most ")
        .number(stats.high_water as u32)
        .str(", refused ")
        .number(stats.failures)
        .end();
}
