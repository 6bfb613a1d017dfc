//! What a call took of memory is seen, and what a run of training takes is what was planned.
//!
//! The only test of its binary: the system counts for the whole process, and what another test gave back meanwhile
//! would hide it.

use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tercet_core::train::Activations;
use tercet_host::TensorFile;
use tercet_host::language::{Parameters, Vocabulary};
use tercet_host::measure::Growth;
use tercet_host::parallel::Threads;
use tercet_host::train::{
    Batches, Corpus, MemoryPlan, PlannedRun, Preset, Tokens, TrainOptions, Trainer, Watch,
};

/// The system's allocator, which counts the bytes that are in use and the most of them.
struct Counted {
    now: AtomicUsize,
    most: AtomicUsize,
}

#[global_allocator]
static COUNTED: Counted = Counted {
    now: AtomicUsize::new(0),
    most: AtomicUsize::new(0),
};

impl Counted {
    fn add(&self, bytes: usize) {
        let now = self.now.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.most.fetch_max(now, Ordering::Relaxed);
    }

    /// Returns the most bytes that a call had in use, beyond those before it.
    fn of(&self, work: impl FnOnce()) -> usize {
        let before = self.now.load(Ordering::Relaxed);
        self.most.store(before, Ordering::Relaxed);
        work();
        self.most.load(Ordering::Relaxed) - before
    }
}

// SAFETY: the system's allocator does everything; only counters are added.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.add(layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        self.add(layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        self.now.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        self.now.fetch_sub(layout.size(), Ordering::Relaxed);
        self.add(size);
        // SAFETY: the caller's promise.
        unsafe { System.realloc(at, layout, size) }
    }
}

#[test]
fn a_large_buffer_shows_and_training_takes_what_was_planned() {
    large_buffer();
    let tiny = Preset::Tiny.parameters(259);
    let long = Parameters {
        context_length: 128,
        ..tiny
    };
    let short = Parameters {
        context_length: 16,
        ..tiny
    };
    // Mostly weights and sums; mostly activations; and few of them, since layers are computed twice.
    for (parameters, micro, workers, recompute, saves, lean) in [
        (short, 1, 2, false, true, false),
        (short, 1, 1, false, true, true),
        (long, 3, 2, false, false, false),
        (long, 4, 1, true, false, false),
    ] {
        let options = TrainOptions {
            // Enough parts that every worker gets one.
            batch: 2 * micro * workers,
            micro,
            recompute,
            lean,
            factored: lean,
            activations: match (parameters == long, recompute) {
                (true, false) => Activations::Int8,
                _ => Activations::F32,
            },
            steps: 1,
            watch: Watch {
                every: 1,
                plateau: None,
                patience: saves.then_some(1),
            },
            ..TrainOptions::new(parameters)
        };
        planned(&options, (workers, saves), None, None);
        if parameters == short && lean {
            // The same with the sums of two tensors, and then with adapters of its file.
            let mut whole = TrainOptions {
                batch: 1,
                ..options
            };
            whole.adamw.clip = f32::INFINITY;
            let model = planned(&whole, (workers, saves), None, None);
            let adapters = TrainOptions {
                adapters: Some(4),
                factored: false,
                ..whole
            };
            planned(&adapters, (workers, saves), Some(&model), None);
            // A teacher of the same size needs as much for a sequence as an evaluation, and here more than that.
            let taught = TrainOptions {
                micro: 2,
                batch: 4,
                ..options
            };
            planned(&taught, (workers, saves), None, Some(&model));
        }
    }
}

/// A run of one step with an evaluation, a checkpoint if it saves, and the file, which is returned.
fn planned(
    options: &TrainOptions,
    (workers, saves): (usize, bool),
    from: Option<&[u8]>,
    teacher: Option<&[u8]>,
) -> Vec<u8> {
    let text = (0..4096u32).map(|at| (at * at / 7) % 256);
    let tokens = Tokens::InMemory(text.clone().collect());
    let held_out = text.take(300).collect();
    let corpus = Corpus::new(tokens, held_out, options.context(), Some(256), 1).unwrap();
    let corpus = Arc::new(corpus);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("checkpoint.safetensors");
    let from = from.map(|bytes| {
        let path = folder.path().join("model.gguf");
        std::fs::write(&path, bytes).unwrap();
        TensorFile::open(&path).unwrap()
    });
    // Mapped, as the command has it.
    let teacher = teacher.map(|bytes| {
        let path = folder.path().join("teacher.gguf");
        std::fs::write(&path, bytes).unwrap();
        path
    });
    let teacher =
        || (teacher.as_ref()).map(|path| tercet_host::language::LanguageFile::open(path).unwrap());
    let engine = Threads::alone();
    let (pool, vocabulary) = (rayon::ThreadPoolBuilder::new(), Vocabulary::bytes());
    let pool = pool.num_threads(workers).build().unwrap();
    pool.install(|| {
        let file = teacher();
        let run = PlannedRun {
            saves,
            teacher: file.as_ref(),
            ..PlannedRun::on(workers)
        };
        let plan = MemoryPlan::of(engine, options, &vocabulary, &corpus, &run).unwrap();
        let mut file = Vec::new();
        let used = COUNTED.of(|| {
            let engines = vec![engine; workers];
            let mut trainer = match &from {
                None => Trainer::new(engines, options, vocabulary).unwrap(),
                Some(model) => {
                    Trainer::from_model(engines, options, vocabulary, model, None).unwrap()
                }
            };
            if let Some(teacher) = teacher() {
                trainer.learn_from(teacher, 2.0, 0.5).unwrap();
            }
            let batches = Batches::new(&corpus, options.batch, 0);
            trainer.step(&batches).unwrap();
            let cost = trainer.evaluate(Threads::alone, &corpus, &|_| 1).unwrap();
            trainer.watch(&cost);
            if saves {
                trainer.save(&path, &corpus).unwrap();
            }
            file = trainer.export(tercet_core::block::Format::Tq2_0).unwrap();
            assert_eq!(file.len(), plan.file);
        });
        let (total, used) = (plan.total() as f64, used as f64);
        let off = used / total - 1.0;
        println!(
            "{plan:?}: {total} planned, {used} used, {:+.2} %",
            100.0 * off
        );
        assert!(off.abs() < 0.05, "{plan:?}: {used}, {off}");
        file
    })
}

fn large_buffer() {
    let grown = Growth::of(|| {
        black_box(vec![1u8; 128 << 20]);
    });
    // Only Linux tells, and containers may hide it.
    if let Some(Growth { peak, added }) = grown {
        assert!(added >= 32 << 20 && peak >= added, "{added}, {peak}");
    }
}
