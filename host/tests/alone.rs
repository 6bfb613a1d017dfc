//! The engine of one thread wakes up no other.
//!
//! The only test of its binary: what another one gives the pool to do would be taken for its own.
#![cfg(target_os = "linux")]

use std::time::Duration;
use std::{fs, thread};

use tercet_core::conformance;
use tercet_core::engine::{LinearEngine, QuantizeEngine};
use tercet_core::linear::{I8Sym, Layer, Layout, Matrix};
use tercet_core::quant::{HOST_BITS, Histogram};
use tercet_host::parallel::Threads;

/// How often the pool's threads went to sleep, once all of them sleep: on a busy machine that may be a while after
/// their work.
fn sleeps() -> u64 {
    let mut last = None;
    for _ in 0..2000 {
        let now = asleep();
        if now.is_some() && now == last {
            break;
        }
        last = now;
        thread::sleep(Duration::from_millis(5));
    }
    last.expect("threads that have nothing to do sleep")
}

/// How often they did, if all of them sleep now.
fn asleep() -> Option<u64> {
    let tasks = fs::read_dir("/proc/self/task").expect("of this process");
    let mut sum = 0;
    for task in tasks.flatten() {
        let status = fs::read_to_string(task.path().join("status")).unwrap_or_default();
        // The pool's alone: the test runner's thread waits for this one.
        if !status.starts_with("Name:\tpool") {
            continue;
        }
        let field = |name| status.lines().find_map(|line| line.strip_prefix(name));
        if !field("State:")?.trim().starts_with('S') {
            return None;
        }
        let count: u64 = field("voluntary_ctxt_switches:")?.trim().parse().ok()?;
        sum += count;
    }
    Some(sum)
}

fn many_activations(engine: &mut Threads, cols: usize, many: usize) {
    let weights = vec![1; 64 * cols];
    let matrix = Matrix::new(Layout::Int8, 64, cols, &weights).expect("a matrix");
    let mut scratch = vec![0; matrix.scratch_len()];
    let layer = Layer::new(matrix);
    let x = vec![3; many * cols];
    let mut out = vec![0; 64 * many];
    let x = I8Sym::new(&x).expect("none is -128");
    engine
        .sums_many(&layer, x, &mut out, &mut scratch)
        .expect("they fit");
    assert!(out.iter().all(|&sum| sum == 3 * cols as i64));
}

#[test]
fn one_thread_alone_wakes_up_no_other() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(3);
    let pool = pool.thread_name(|index| format!("pool {index}"));
    pool.build_global().expect("the first");
    rayon::join(|| (), || ());
    let before = sleeps();
    assert!(before > 0);
    let mut engine = Threads::alone();
    let mut last = before;
    conformance::run_engine(&mut engine, &mut |operation, _| {
        let now = sleeps();
        // Palettes are made by all threads still.
        let all = operation.starts_with("palette/");
        assert!(now == last || all, "{operation}");
        last = now;
    });
    for many in [4, 40, 400] {
        many_activations(&mut engine, 300, many);
        many_activations(&mut engine, 4000, many);
    }
    // As many values as four threads would share.
    let mut buckets = vec![0; Histogram::<HOST_BITS>::BUCKETS];
    let mut histogram = Histogram::<HOST_BITS>::new(&mut buckets).expect("as many buckets");
    let counted = engine.histogram(&vec![0.5f32; 1 << 20], &mut histogram);
    counted.expect("all are finite");
    assert_eq!(histogram.count(), 1 << 20);
    assert_eq!(sleeps(), last);
    many_activations(&mut Threads::default(), 4000, 400);
    assert!(sleeps() > last, "what wakes them up is seen");
}
