//! Whether a device has room, asked before it is needed.

use std::ffi::OsStr;

use crate::support::child;
use crate::support::emulator::emulated;
use tercet_gpu::engine::{Cuda, CudaOptions};

fn small(memory: usize) -> Cuda {
    let options = CudaOptions {
        memory: Some(memory),
        ..CudaOptions::default()
    };
    Cuda::new(&options).unwrap()
}

/// In a process of its own, whose device is a small one from the start.
#[test]
fn room_is_what_device_and_pool_have() {
    let name = "room_is_what_device_and_pool_have";
    let small_device = ("TERCET_EMULATOR", OsStr::new("memory=16M"));
    if !child::alone(module_path!(), name, &[small_device]) {
        return;
    }
    let Some(_device) = emulated() else { return };
    let mut cuda = Cuda::first().unwrap();
    let free = cuda.available().unwrap();
    assert!(free <= 16 << 20 && free > 15 << 20, "{free}");
    assert!(cuda.can_allocate(&[]).unwrap() && cuda.can_allocate(&[0, 0]).unwrap());
    assert!(cuda.can_allocate(&[8 << 20, 4 << 20]).unwrap());
    assert!(!cuda.can_allocate(&[8 << 20, 4 << 20, 8 << 20]).unwrap());
    assert!(!cuda.can_allocate(&[usize::MAX]).unwrap());
    assert!(
        !cuda
            .can_allocate(&[usize::MAX / 2, usize::MAX / 2, usize::MAX / 2])
            .unwrap()
    );
    let held = cuda.zeros::<u8>(8 << 20).unwrap();
    let left = cuda.available().unwrap();
    assert!(left <= free - (8 << 20), "{left} of {free}");
    // Another engine's memory is not the pool's, and is gone all the same.
    let mut other = small(4 << 20);
    let theirs = other.zeros::<u8>(4 << 20).unwrap();
    assert!(cuda.available().unwrap() <= left - (4 << 20));
    assert_eq!(other.available().unwrap(), 0);
    // What a buffer gave back, the pool keeps.
    drop(held);
    assert!(cuda.available().unwrap() >= 8 << 20);
    drop(theirs);
    // Rounded to its class, 33,000 bytes are more than 36,000.
    let tight = small(36_000);
    assert_eq!(tight.available().unwrap(), 36_000);
    assert!(!tight.can_allocate(&[33_000]).unwrap());
    assert!(tight.can_allocate(&[32_768]).unwrap());
}
