//! Arenas against a counter, and what they hand out against everything else that is in use.

use std::mem::{MaybeUninit, align_of, size_of};
use std::ops::Range;

use proptest::prelude::*;
use tercet_core::pool::{Arena, ArenaError, Scope, SharedArena, Stats};

const BYTES: usize = 1000;

#[derive(Clone, Debug)]
enum Action {
    /// Elements of 1, 2, 4 or 8 bytes.
    Slice {
        size: u8,
        len: usize,
    },
    Bytes {
        align: u8,
        len: usize,
    },
    Iter {
        len: usize,
    },
    Open,
    Close,
}

fn steps() -> impl Strategy<Value = Vec<Action>> {
    let step = prop_oneof![
        5 => (0..4_u8, 0..40_usize).prop_map(|(size, len)| Action::Slice { size, len }),
        2 => (0..9_u8, 0..60_usize).prop_map(|(align, len)| Action::Bytes { align, len }),
        2 => (0..80_usize).prop_map(|len| Action::Iter { len }),
        2 => Just(Action::Open),
        2 => Just(Action::Close),
    ];
    prop::collection::vec(step, 0..80)
}

/// What the arena should do, by addresses alone.
struct Model {
    start: usize,
    next: usize,
    end: usize,
    peak: usize,
    failures: u32,
}

impl Model {
    fn take(&mut self, bytes: usize, align: usize) -> Option<Range<usize>> {
        if bytes == 0 {
            return Some(0..0);
        }
        let start = self.next.next_multiple_of(align);
        if start + bytes > self.end {
            self.failures += 1;
            return None;
        }
        self.next = start + bytes;
        self.peak = self.peak.max(self.next - self.start);
        Some(start..self.next)
    }

    fn stats(&self) -> Stats {
        Stats {
            capacity: self.end - self.start,
            in_use: self.next - self.start,
            high_water: self.peak,
            failures: self.failures,
        }
    }
}

/// Memory in use: all its bytes hold one number, as long as nobody else writes there.
struct Held<'a> {
    bytes: &'a mut [u8],
    mark: u8,
}

impl<'a> Held<'a> {
    fn new<T: Copy>(slice: &'a mut [T], mark: u8) -> Self {
        let (start, len) = (slice.as_mut_ptr(), size_of_val(slice));
        // SAFETY: the slice is exclusive, and the tests take integers only, of which all bytes are values.
        let bytes = unsafe { std::slice::from_raw_parts_mut(start.cast(), len) };
        bytes.fill(mark);
        Self { bytes, mark }
    }

    fn intact(&self) -> bool {
        self.bytes.iter().all(|&byte| byte == self.mark)
    }
}

/// The outcome of a request is the model's, at the model's address.
fn check<'a, T: Copy>(
    taken: Result<&'a mut [T], ArenaError>,
    expected: Option<Range<usize>>,
    len: usize,
    align: usize,
    mark: u8,
) -> Result<Option<Held<'a>>, TestCaseError> {
    let Ok(slice) = taken else {
        prop_assert_eq!(expected, None);
        return Ok(None);
    };
    prop_assert_eq!(slice.len(), len);
    let address = slice.as_ptr().addr();
    prop_assert_eq!(address % align, 0);
    let expected = expected.expect("the model refuses what the arena gave");
    if !expected.is_empty() {
        prop_assert_eq!(address..address + size_of_val(slice), expected);
    }
    Ok(Some(Held::new(slice, mark)))
}

fn slice<'a, T: Copy + 'a>(
    scope: &mut Scope<'a>,
    model: &mut Model,
    len: usize,
    value: T,
    mark: u8,
) -> Result<Option<Held<'a>>, TestCaseError> {
    let expected = model.take(size_of::<T>() * len, align_of::<T>());
    let taken = scope.alloc_slice(len, value);
    check(taken, expected, len, align_of::<T>(), mark)
}

/// Runs steps up to the one that closes this scope, and says how many those were.
fn follow(
    mut scope: Scope<'_>,
    steps: &[Action],
    model: &mut Model,
    mark: &mut u8,
) -> Result<usize, TestCaseError> {
    let mark_of_scope = model.next;
    let mut held = Vec::new();
    let mut at = 0;
    while let Some(step) = steps.get(at) {
        at += 1;
        *mark = mark.wrapping_add(1);
        let taken = match *step {
            Action::Slice { size: 0, len } => slice(&mut scope, model, len, 1_u8, *mark)?,
            Action::Slice { size: 1, len } => slice(&mut scope, model, len, 2_u16, *mark)?,
            Action::Slice { size: 2, len } => slice(&mut scope, model, len, 3_u32, *mark)?,
            Action::Slice { len, .. } => slice(&mut scope, model, len, 4_u64, *mark)?,
            Action::Bytes { align, len } => {
                let expected = model.take(len, 1 << align);
                let taken = scope.alloc_bytes(len, 1 << align);
                let taken = taken.map(|bytes| {
                    bytes.fill(MaybeUninit::new(0));
                    // SAFETY: just written.
                    unsafe { &mut *(bytes as *mut [MaybeUninit<u8>] as *mut [u8]) }
                });
                check(taken, expected, len, 1 << align, *mark)?
            }
            Action::Iter { len } => {
                let expected = model.take(4 * len, 4);
                // A filter hides the length.
                let items = (0..2 * len as u32).filter(|item| item % 2 == 0);
                let taken = scope.alloc_from_iter(items);
                if let Ok(slice) = &taken {
                    prop_assert!(
                        slice
                            .iter()
                            .copied()
                            .eq((0..len as u32).map(|item| 2 * item))
                    );
                }
                check(taken, expected, len, 4, *mark)?
            }
            Action::Open => {
                at += follow(scope.scope(), &steps[at..], model, mark)?;
                None
            }
            Action::Close => break,
        };
        held.extend(taken);
        prop_assert_eq!(scope.stats(), model.stats());
        prop_assert_eq!(scope.left(), model.end - model.next);
        prop_assert!(held.iter().all(Held::intact));
    }
    model.next = mark_of_scope;
    Ok(at)
}

proptest! {
    #[test]
    fn an_arena_is_a_counter_with_marks(batches in prop::collection::vec(steps(), 1..4)) {
        let mut arena = Box::new(Arena::<BYTES>::new());
        let (mut peak, mut failures, mut mark) = (0, 0, 0);
        for steps in batches {
            let mut scope = arena.scope();
            let start = scope.alloc_bytes(1, 16).unwrap().as_ptr().addr();
            peak = peak.max(1);
            let mut model = Model { start, next: start + 1, end: start + BYTES, peak, failures };
            follow(scope.scope(), &steps, &mut model, &mut mark)?;
            (peak, failures) = (model.peak, model.failures);
            prop_assert_eq!(scope.left(), BYTES - 1);
        }
        let stats = arena.stats();
        prop_assert_eq!((stats.in_use, stats.high_water, stats.failures), (0, peak, failures));
    }

    #[test]
    fn a_shared_arena_places_as_a_single_owner_does(
        requests in prop::collection::vec((0..9_u8, 0..200_usize), 0..40),
    ) {
        let (mut one, mut shared) = (Box::new(Arena::<BYTES>::new()), Box::new(SharedArena::<BYTES>::new()));
        for _ in 0..2 {
            let mut scope = one.scope();
            // Both buffers start at a multiple of 16 only, so larger alignments may differ.
            for &(align, len) in &requests {
                let align = 1 << (align % 5);
                let a = scope.alloc_bytes(len, align).map(|bytes| bytes.len());
                let b = shared.alloc_bytes(len, align).map(|bytes| bytes.len());
                prop_assert_eq!(a, b);
            }
            prop_assert_eq!(scope.stats(), shared.stats());
            shared.reset();
            prop_assert_eq!(shared.stats().in_use, 0);
        }
        prop_assert_eq!(one.stats(), shared.stats());
    }
}

#[test]
fn alignments_up_to_a_page_are_kept_wherever_the_arena_lies() {
    #[repr(align(64))]
    #[derive(Clone, Copy)]
    struct Line([u8; 64]);
    #[repr(align(128))]
    #[derive(Clone, Copy)]
    struct Pair(u8);

    // Moved about on the stack by 16 bytes at a time.
    let mut room = [const { Arena::<8500>::new() }; 5];
    for arena in &mut room {
        let mut scope = arena.scope();
        scope.alloc(1_u8).unwrap();
        let line = scope.alloc(Line([3; 64])).ok().unwrap();
        let pairs = scope.alloc_slice(3, Pair(5)).unwrap();
        let page = scope.alloc_bytes(1, 4096).unwrap();
        assert_eq!(std::ptr::from_mut(line).addr() % 64, 0);
        assert_eq!(pairs.as_ptr().addr() % 128, 0);
        assert_eq!(size_of_val(pairs), 384);
        assert_eq!(page.as_ptr().addr() % 4096, 0);
        assert_eq!((line.0[63], pairs[2].0), (3, 5));
    }
}

#[test]
fn types_without_size_take_nothing() {
    let mut arena = Arena::<0>::new();
    let mut scope = arena.scope();
    assert_eq!(scope.alloc(()), Ok(&mut ()));
    assert_eq!(scope.alloc_slice(usize::MAX, ()).unwrap().len(), usize::MAX);
    let aligned = scope.alloc_slice(3, [0_u64; 0]).unwrap();
    assert_eq!((aligned.len(), aligned.as_ptr().addr() % 8), (3, 0));
    let items = scope
        .alloc_from_iter(std::iter::repeat_n((), 1000))
        .unwrap();
    assert_eq!(items.len(), 1000);
    assert_eq!(scope.alloc_copy::<u32>(&[]).unwrap().len(), 0);
    assert_eq!(
        scope
            .alloc_from_iter(std::iter::empty::<u64>())
            .unwrap()
            .len(),
        0
    );
    assert_eq!(scope.stats(), Stats::default());
    assert_eq!(scope.alloc(7_u8), Err(7));
    assert!(scope.alloc_from_iter([7_u8]).is_err());
    assert_eq!(scope.stats().failures, 2);
}

#[test]
fn sizes_that_wrap_are_refused_and_leave_the_arena_as_it_was() {
    let mut arena = Arena::<64>::new();
    let mut scope = arena.scope();
    scope.alloc(1_u8).unwrap();
    let sizes = [
        usize::MAX / 8 + 1,
        usize::MAX / 2,
        usize::MAX - 1,
        usize::MAX,
    ];
    for len in sizes {
        assert_eq!(
            scope.alloc_slice(len, 0_u64).unwrap_err(),
            ArenaError::TooLong
        );
        assert!(scope.alloc_slice(len, 0_u8).is_err());
        assert!(scope.alloc_bytes(len, 1 << 20).is_err());
    }
    for align in [0, 3, 48, usize::MAX] {
        assert_eq!(
            scope.alloc_bytes(1, align).unwrap_err(),
            ArenaError::Alignment { align }
        );
        assert_eq!(
            scope.alloc_bytes(0, align).unwrap_err(),
            ArenaError::Alignment { align }
        );
    }
    assert!(scope.alloc_bytes(1, 1 << (usize::BITS - 1)).is_err());
    assert_eq!(scope.left(), 63);
    assert_eq!(scope.stats().failures, 3 * sizes.len() as u32 + 9);

    let shared = SharedArena::<64>::new();
    for len in sizes {
        assert_eq!(
            shared.alloc_slice(len, 0_u64).unwrap_err(),
            ArenaError::TooLong
        );
        assert!(shared.alloc_slice(len, 0_u8).is_err());
    }
    assert_eq!(shared.alloc([0_u8; 65]), Err([0; 65]));
    assert!(shared.alloc([1_u8; 64]).is_ok());
    assert_eq!(shared.stats().in_use, 64);
}

#[test]
fn what_a_request_that_fails_would_have_needed_is_named() {
    let mut arena = Arena::<64>::new();
    let mut scope = arena.scope();
    scope.alloc(1_u8).unwrap();
    let full = ArenaError::Full {
        needed: 67,
        left: 63,
    };
    assert_eq!(scope.alloc_slice(16, 0_u32).unwrap_err(), full);
    assert_eq!(scope.alloc_from_iter(0..16_u32).unwrap_err(), full);
    assert_eq!(scope.alloc_slice(15, 7_u32).unwrap(), [7; 15]);
    assert_eq!(scope.left(), 0);
}

#[test]
fn an_iterator_that_panics_takes_nothing() {
    let mut arena = Arena::<64>::new();
    let mut scope = arena.scope();
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _ = scope
            .alloc_from_iter((0..5_u8).map(|item| if item == 4 { panic!("four") } else { item }));
    }));
    assert!(caught.is_err());
    assert_eq!(scope.left(), 64);
    assert_eq!(scope.alloc_slice(64, 9_u8).unwrap(), [9; 64]);
}

#[test]
fn values_made_by_index_and_copies_arrive() {
    let mut arena = Arena::<256>::new();
    let mut scope = arena.scope();
    let squares = scope
        .alloc_slice_with(9, |index| (index * index) as u16)
        .unwrap();
    let copy = scope.alloc_copy(squares).unwrap();
    squares[0] = 1;
    assert_eq!(copy, [0, 1, 4, 9, 16, 25, 36, 49, 64]);
    // A reference is no type with a destructor, so it may lie in the arena.
    let lines = scope.alloc_copy(&["one", "two"]).unwrap();
    assert_eq!(lines.concat(), "onetwo");
    let room = scope.alloc_uninit::<u32>(3).unwrap();
    assert_eq!(room.len(), 3);
}

#[test]
fn memory_of_a_static_arena_lives_for_ever() {
    static SHARED: SharedArena<64> = SharedArena::new();
    fn keep(value: &'static mut u32) -> u32 {
        *value += 1;
        *value
    }
    assert_eq!(keep(SHARED.alloc(6).unwrap()), 7);

    // An arena within an arena.
    let mut scope: Scope<'static> = SHARED.alloc(Arena::<16>::new()).ok().unwrap().scope();
    assert_eq!(keep(scope.alloc(7).unwrap()), 8);
}

#[test]
fn threads_never_get_the_same_bytes() {
    const THREADS: u8 = 4;
    let mut arena = Box::new(SharedArena::<30_011>::new());
    for _ in 0..3 {
        let taken = std::thread::scope(|threads| {
            let arena = &*arena;
            let workers: Vec<_> = (0..THREADS)
                .map(|id| {
                    threads.spawn(move || {
                        let mut mine: Vec<(&mut [u64], u64)> = Vec::new();
                        for len in (0..).map(|step| step % 7) {
                            let stamp = u64::from(id) << 32 | mine.len() as u64;
                            match arena.alloc_slice(len, stamp) {
                                Ok(slice) => mine.push((slice, stamp)),
                                Err(ArenaError::Full { .. }) => break,
                                Err(other) => panic!("{other}"),
                            }
                        }
                        // All is as this thread wrote it, after every other thread has written too.
                        let intact = mine
                            .iter()
                            .all(|(slice, stamp)| slice.iter().all(|v| v == stamp));
                        assert!(intact);
                        mine.iter().map(|(slice, _)| slice.len()).sum::<usize>()
                    })
                })
                .collect();
            workers
                .into_iter()
                .map(|worker| worker.join().unwrap())
                .sum::<usize>()
        });
        let stats = arena.stats();
        assert_eq!(stats.in_use, taken * 8);
        assert!(stats.in_use + 6 * 8 > stats.capacity - 8);
        arena.reset();
    }
    assert_eq!(arena.stats().failures, 3 * u32::from(THREADS));
}
