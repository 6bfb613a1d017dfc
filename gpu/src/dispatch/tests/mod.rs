//! Tests of the whole dispatcher, with made-up devices and costs.

mod bottlenecks;
mod choices;
mod faults;
mod forms;
mod overhead;
mod regret;
mod resident;
mod stress;

use std::sync::{Arc, Mutex};

use tercet_core::scalar::Scalar;

use super::{Builder, Costs, Dispatcher, Notice, Settings};

/// The notices received, in order.
type Told = Arc<Mutex<Vec<Notice>>>;

/// Returns a dispatcher with built-in costs for four threads, the scalar engine as its device, and its notices.
fn with_device(settings: Settings) -> (Dispatcher<Scalar>, Told) {
    with_costs(settings, Costs::builtin(4))
}

fn with_costs(settings: Settings, costs: Costs) -> (Dispatcher<Scalar>, Told) {
    let told = Told::default();
    let tell = Arc::clone(&told);
    let dispatcher = Builder::new(settings)
        .costs(costs)
        .device(|| Ok(Scalar))
        .listener(move |notice| tell.lock().unwrap().push(notice.clone()))
        .build();
    (dispatcher, told)
}

/// The same without a device.
fn without_device(settings: Settings) -> (Dispatcher<Scalar>, Told) {
    let told = Told::default();
    let tell = Arc::clone(&told);
    let dispatcher = Builder::new(settings)
        .costs(Costs::builtin(4))
        .device(|| Err::<Scalar, _>("not in this test".into()))
        .listener(move |notice| tell.lock().unwrap().push(notice.clone()))
        .build();
    (dispatcher, told)
}
