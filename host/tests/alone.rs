//! The engine of one thread wakes up no other.
//!
//! The only test of its binary: what another one gives the pool to do would be taken for its own.
#![cfg(target_os = "linux")]

use std::time::Duration;
use std::{fs, thread};

use tercet_core::conformance;
use tercet_core::engine::LinearEngine;
use tercet_core::linear::{I8Sym, Layer, Layout, Matrix};
use tercet_host::parallel::Threads;

/// How often the other threads of this process went to sleep.
fn sleeps() -> u64 {
    let own = fs::read_link("/proc/thread-self").expect("of this thread");
    let tasks = fs::read_dir("/proc/self/task").expect("of this process");
    let others = tasks.filter_map(|task| {
        let task = task.ok()?;
        let status = (task.file_name() != own.file_name()?)
            .then(|| fs::read_to_string(task.path().join("status")).ok())??;
        // The pool's alone: the test runner's thread waits for this one.
        status.starts_with("Name:\tpool").then_some(())?;
        let mut lines = status.lines();
        let count = lines.find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
        count.trim().parse::<u64>().ok()
    });
    others.sum()
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
    // They look for work for a while before they sleep.
    thread::sleep(Duration::from_millis(200));
    let before = sleeps();
    assert!(before > 0);
    let mut engine = Threads::alone();
    let mut last = before;
    conformance::run_engine(&mut engine, &mut |operation, _| {
        thread::sleep(Duration::from_millis(5));
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
    thread::sleep(Duration::from_millis(50));
    assert_eq!(sleeps(), last);
    many_activations(&mut Threads::default(), 4000, 400);
    thread::sleep(Duration::from_millis(50));
    assert!(sleeps() > last, "what wakes them up is seen");
}
