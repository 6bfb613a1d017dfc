//! Launches, one by one and recorded: what runs, what is refused, and what happens when a kernel fails.

use crate::support::emulator::{device, emulated};
use tercet_gpu::engine::{Argument, Cuda, CudaError, DeviceBuffer, Graph, LaunchGrid};

const MODULE: &str = "dequantize";
const KERNEL: &str = "dequantize_f32";
const LEN: usize = 1000;

/// Codes and scales in groups of 100, and room for the floats that they stand for.
struct Codes {
    codes: DeviceBuffer<i8>,
    scales: DeviceBuffer<f32>,
    floats: DeviceBuffer<f32>,
    copy: DeviceBuffer<f32>,
}

impl Codes {
    fn new(cuda: &mut Cuda) -> Result<Self, CudaError> {
        let codes: Vec<i8> = (0..LEN).map(|i| (i * 37 % 256) as i8).collect();
        let scales: Vec<f32> = (1..=10).map(|group| group as f32 * 0.5).collect();
        Ok(Self {
            codes: cuda.upload(&codes)?,
            scales: cuda.upload(&scales)?,
            floats: cuda.zeros(LEN)?,
            copy: cuda.zeros(LEN)?,
        })
    }

    fn launch(&mut self, cuda: &mut Cuda) -> Result<(), CudaError> {
        let arguments = [
            Argument::from(&self.codes),
            LEN.into(),
            100_u64.into(),
            Argument::from(&self.scales),
            Argument::none(),
            Argument::from(&mut self.floats),
        ];
        let grid = LaunchGrid::strided(LEN, 256, 256, 8);
        // SAFETY: as many codes and floats as the kernel is told, a scale for each hundred of them, all written before.
        unsafe { cuda.launch(MODULE, KERNEL, grid, &arguments) }
    }

    fn both(&mut self, cuda: &mut Cuda) -> Result<(), CudaError> {
        self.launch(cuda)?;
        cuda.copy(&self.floats, &mut self.copy)?;
        cuda.clear(&mut self.floats)
    }

    fn record(&mut self, cuda: &mut Cuda) -> Result<Graph, CudaError> {
        cuda.prepare(MODULE, KERNEL, 0)?;
        cuda.capture(|cuda| self.both(cuda))
    }

    /// What `copy` holds after `both` with these scales.
    fn check(&self, cuda: &mut Cuda, factor: f32) -> Result<(), CudaError> {
        let mut found = vec![1.0; LEN];
        cuda.read(&self.copy, &mut found)?;
        for (i, &x) in found.iter().enumerate() {
            let scale = ((i / 100 + 1) as f32 * 0.5) * factor;
            assert_eq!(x, f32::from((i * 37 % 256) as i8) * scale, "{i}");
        }
        cuda.read(&self.floats, &mut found)?;
        assert!(found.iter().all(|&x| x == 0.0));
        Ok(())
    }
}

#[test]
fn a_recorded_sequence_runs_as_often_as_it_is_asked_for() {
    let Some(device) = device() else { return };
    for seed in 0..4 {
        device.set(&format!("seed={seed}"));
        let mut cuda = Cuda::first().unwrap();
        let mut codes = Codes::new(&mut cuda).unwrap();
        let graph = codes.record(&mut cuda).unwrap();
        // Recording did nothing.
        let mut found = vec![1.0; LEN];
        cuda.read(&codes.copy, &mut found).unwrap();
        assert!(found.iter().all(|&x| x == 0.0));
        for factor in [1.0, 2.0, -4.0] {
            let scales: Vec<f32> = (1..=10).map(|group| group as f32 * 0.5 * factor).collect();
            cuda.write(&scales, &mut codes.scales).unwrap();
            // SAFETY: the buffers are those that were recorded.
            unsafe { cuda.replay(&graph) }.unwrap();
            codes.check(&mut cuda, factor).unwrap();
        }
        // The same by single launches, timed.
        let (milliseconds, ()) = cuda.timed(|cuda| codes.both(cuda)).unwrap();
        assert!(milliseconds >= 0.0);
        codes.check(&mut cuda, -4.0).unwrap();
    }
}

#[test]
fn what_cannot_be_recorded_is_refused_and_nothing_stays_behind() {
    let Some(_device) = device() else { return };
    let mut cuda = Cuda::first().unwrap();
    let mut codes = Codes::new(&mut cuda).unwrap();
    let waits = cuda.capture(|cuda| cuda.synchronize());
    assert!(matches!(waits, Err(CudaError::Driver { .. })), "{waits:?}");
    let loads = cuda.capture(|cuda| codes.both(cuda));
    // A driver that has the module's code at hand may load it.
    assert!(
        matches!(loads, Ok(_) | Err(CudaError::Driver { .. })),
        "{loads:?}"
    );
    cuda.prepare(MODULE, KERNEL, 0).unwrap();
    let reads = cuda.capture(|cuda| {
        codes.both(cuda)?;
        cuda.read(&codes.copy, &mut [0.0; LEN])
    });
    assert!(
        matches!(reads, Err(CudaError::Recording { .. })),
        "{reads:?}"
    );
    let mine = CudaError::OutOfMemory { asked: 1, free: 0 };
    let refused = cuda.capture(|_| Err(mine.clone()));
    assert_eq!(refused.unwrap_err(), mine);
    let graph = codes.record(&mut cuda).unwrap();
    // SAFETY: the buffers are those that were recorded.
    unsafe { cuda.replay(&graph) }.unwrap();
    codes.check(&mut cuda, 1.0).unwrap();
}

/// A driver would take allocations for nodes of the graph, whose memory is there only while it runs.
#[test]
fn a_buffer_cannot_be_made_while_launches_are_recorded() {
    let Some(_device) = device() else { return };
    let mut cuda = Cuda::first().unwrap();
    let mut codes = Codes::new(&mut cuda).unwrap();
    cuda.prepare(MODULE, KERNEL, 0).unwrap();
    let before = cuda.memory().unwrap().bytes.in_use;
    let mut kept = None;
    let made = cuda.capture(|cuda| {
        kept = Some(cuda.zeros::<f32>(LEN)?);
        Ok(())
    });
    if let Some(kept) = &kept {
        let read = cuda.read(kept, &mut [0.0; LEN]);
        panic!("a buffer was made ({made:?}), and reading it gives {read:?}");
    }
    let error = made.unwrap_err();
    assert_eq!(
        error.to_string(),
        "no buffer can be made while launches are recorded"
    );
    // Nor can others be written or read, and no such refusal spoils what is recorded beside it.
    let graph = cuda.capture(|cuda| {
        let copied = Err(CudaError::Recording {
            refused: "copied from or to the host",
        });
        assert_eq!(cuda.upload(&[1, 2, 3]).unwrap_err(), error);
        assert_eq!(cuda.write(&[2.0; 10], &mut codes.scales), copied);
        assert_eq!(cuda.read(&codes.copy, &mut [0.0; LEN]), copied);
        codes.both(cuda)
    });
    let graph = graph.unwrap();
    // SAFETY: the buffers are those that were recorded.
    unsafe { cuda.replay(&graph) }.unwrap();
    codes.check(&mut cuda, 1.0).unwrap();
    assert_eq!(cuda.memory().unwrap().bytes.in_use, before);
}

#[test]
fn buffers_dropped_while_launches_are_recorded_return_after_it() {
    let Some(device) = device() else { return };
    for seed in 0..4 {
        device.set(&format!("seed={seed}"));
        let mut cuda = Cuda::first().unwrap();
        let mut codes = Codes::new(&mut cuda).unwrap();
        cuda.prepare(MODULE, KERNEL, 0).unwrap();
        let in_use = cuda.memory().unwrap().bytes.in_use;
        let [here, there, last] = [1000, 2000, 3000].map(|len| cuda.zeros::<u32>(len).unwrap());
        let graph = cuda.capture(|cuda| {
            drop(here);
            codes.launch(cuda)?;
            std::thread::spawn(move || drop(there)).join().unwrap();
            cuda.copy(&codes.floats, &mut codes.copy)?;
            cuda.clear(&mut codes.floats)
        });
        let graph = graph.unwrap();
        drop(last);
        assert_eq!(cuda.memory().unwrap().bytes.in_use, in_use);
        // SAFETY: the buffers are those that were recorded.
        unsafe { cuda.replay(&graph) }.unwrap();
        codes.check(&mut cuda, 1.0).unwrap();
        // A panic ends what it interrupts.
        let lost = cuda.zeros::<u32>(100).unwrap();
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            cuda.capture(|_| {
                drop(lost);
                panic!("in the middle")
            })
        }));
        assert!(panicked.is_err());
        assert_eq!(cuda.memory().unwrap().bytes.in_use, in_use);
        codes.both(&mut cuda).unwrap();
        codes.check(&mut cuda, 1.0).unwrap();
    }
}

#[test]
fn other_arguments_than_the_kernels_are_refused() {
    let Some(_device) = device() else { return };
    let mut cuda = Cuda::first().unwrap();
    let mut other = Cuda::first().unwrap();
    let codes = Codes::new(&mut cuda).unwrap();
    let theirs = other.zeros::<f32>(LEN).unwrap();
    let right = || {
        [
            Argument::from(&codes.codes),
            LEN.into(),
            100_u64.into(),
            Argument::from(&codes.scales),
            Argument::none(),
            Argument::from(&codes.floats),
        ]
    };
    let grid = LaunchGrid::new(1, 256);
    let kernel = KERNEL;
    let mut refused = |arguments: &[Argument<'_>], index| {
        // SAFETY: nothing is launched.
        let result = unsafe { cuda.launch(MODULE, KERNEL, grid, arguments) };
        assert_eq!(result, Err(CudaError::Argument { kernel, index }));
    };
    refused(&right()[..5], 5);
    refused(&[right().as_slice(), &right()].concat(), 12);
    let wrong: [(usize, Argument<'_>); 4] = [
        (1, 1000_u32.into()),
        (2, 100.0_f64.into()),
        (3, 1.0_f32.into()),
        (5, (&theirs).into()),
    ];
    for (index, argument) in wrong {
        let mut arguments = right();
        arguments[index] = argument;
        refused(&arguments, index);
    }
    // SAFETY: nothing is launched.
    let absent = unsafe { cuda.launch(MODULE, "no_such_kernel", grid, &[]) };
    assert_eq!(
        absent,
        Err(CudaError::NoKernel {
            kernel: "no_such_kernel"
        })
    );
    let absent = cuda.prepare("no_such_module", "any", 0);
    assert_eq!(absent, Err(CudaError::NoKernel { kernel: "any" }));
    // More threads than a block has, which the driver refuses.
    // SAFETY: nothing is launched.
    let many = unsafe { cuda.launch(MODULE, KERNEL, LaunchGrid::new(1, 5000), &right()) };
    let Err(CudaError::Launch { kernel: KERNEL, .. }) = many else {
        panic!("{many:?}")
    };
    // More shared memory than the device has.
    let shared = cuda.prepare(MODULE, KERNEL, 1 << 30);
    assert!(
        matches!(shared, Err(CudaError::Driver { .. })),
        "{shared:?}"
    );
    // No blocks, no launch.
    // SAFETY: nothing is launched.
    unsafe { cuda.launch(MODULE, KERNEL, LaunchGrid::new(0, 256), &right()) }.unwrap();
    cuda.synchronize().unwrap();
}

#[test]
fn graphs_and_kernels_that_fail_are_errors() {
    let Some(device) = emulated() else { return };
    let mut injected = 0;
    for kind in [
        "module",
        "launch",
        "capture",
        "instantiate",
        "graph",
        "lost",
    ] {
        for nth in 1.. {
            device.set(&format!("fail=none,fail={kind}:{nth}"));
            let faults = device.count("faults");
            let work = |cuda: &mut Cuda| {
                let mut codes = Codes::new(cuda)?;
                let graph = codes.record(cuda)?;
                for _ in 0..2 {
                    // SAFETY: the buffers are those that were recorded.
                    unsafe { cuda.replay(&graph) }?;
                    codes.check(cuda, 1.0)?;
                }
                codes.both(cuda)?;
                codes.check(cuda, 1.0)
            };
            let mut cuda = Cuda::first().unwrap();
            let result = work(&mut cuda);
            device.set("fail=none");
            if device.count("faults") == faults {
                assert_eq!(result, Ok(()));
                break;
            }
            injected += 1;
            match result.unwrap_err() {
                lost @ CudaError::Lost { .. } => {
                    assert_eq!(work(&mut cuda), Err(lost.clone()), "it stays lost");
                    assert_eq!(cuda.synchronize(), Err(lost));
                }
                error => {
                    assert_ne!(kind, "lost", "{error}");
                    // The same engine does the same work now.
                    work(&mut cuda).unwrap();
                }
            }
        }
    }
    println!("{injected} faults injected");
    assert!(injected > 8, "{injected}");
}

/// A device that was lost is lost for all engines on it; the next, after them, begins anew.
#[test]
fn all_engines_of_a_lost_device_say_so() {
    let Some(device) = emulated() else { return };
    let (mut cuda, mut other) = (Cuda::first().unwrap(), Cuda::first().unwrap());
    let mut codes = Codes::new(&mut cuda).unwrap();
    let theirs = other.zeros::<u8>(10).unwrap();
    device.set("fail=lost:1");
    codes.launch(&mut cuda).unwrap();
    let lost = cuda.synchronize().unwrap_err();
    assert!(
        lost.to_string()
            .starts_with("the CUDA device was lost: CUDA_ERROR_LAUNCH_FAILED (719)"),
        "{lost}"
    );
    assert_eq!(other.read(&theirs, &mut [0; 10]), Err(lost.clone()));
    assert_eq!(other.zeros::<u8>(10).unwrap_err(), lost);
    assert_eq!(cuda.device_info().unwrap_err(), lost);
}
