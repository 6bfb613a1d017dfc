//! Several devices as one engine, for tests.

use tercet_core::cluster::{Init, Points, Update};
use tercet_core::engine::ClusterEngine;
use tercet_gpu::engine::{CudaOptions, Cudas, Exchange, device_count};

use super::cluster::{NOTHING, Run, options, run};
use super::emulator::{Device, device, emulated};

/// The emulated machine has three; a machine may have one, which then comes three times.
pub fn devices() -> Option<Device> {
    device()
}

pub fn emulated_devices() -> Option<Device> {
    emulated()
}

/// The emulated devices with an emulated NCCL. Whoever asks first for a device of a process must ask so.
pub fn devices_with_nccl() -> Option<Device> {
    let device = emulated_devices()?;
    device.open_nccl();
    Some(device)
}

/// Small slots, kernels of an old device, and a share for every device however little there is. Sums cross by copies:
/// where the devices are emulated, NCCL of the machine, which Auto would find, could do nothing with them.
pub fn cudas(devices: usize) -> Cudas {
    with_memory(devices, None)
}

pub fn with_memory(devices: usize, memory: Option<usize>) -> Cudas {
    let count = device_count().unwrap();
    let options = |device| CudaOptions {
        device: device % count,
        memory: memory.filter(|_| device + 1 == devices),
        slot: 4096,
        capability: Some((7, 5)),
        ..CudaOptions::default()
    };
    let options: Vec<_> = (0..devices).map(options).collect();
    let cudas = Cudas::new(&options).unwrap().with_least(1);
    cudas.with_exchange(Exchange::Peer)
}

pub fn clustered(
    cudas: &mut Cudas,
    points: Points<'_>,
    k: usize,
    update: Update,
    init: Init,
    batch: usize,
) -> Run {
    let mut problem = cudas.clusters(points, k, update, NOTHING()).unwrap();
    run(&mut problem, &options(init, 7), batch)
}
