//! Network files: any bytes are refused, or are a network that runs within the memory it asks for.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tercet_core::linear::I8Sym;
use tercet_core::linear::network::{Buffers, Network};
use tercet_core::scalar::Scalar;

/// Larger ones would only be slow.
const MOST: usize = 1 << 20;

fuzz_target!(|bytes: &[u8]| {
    let Ok(network) = Network::<4>::new(bytes) else {
        return;
    };
    let weights: usize = network
        .layers()
        .map(|layer| layer.weights().bytes().len())
        .sum();
    assert!(weights <= bytes.len());
    if network.activations_len().max(network.outputs()) > MOST {
        return;
    }
    let mut buffers = Buffers {
        activations: &mut vec![0; network.activations_len()],
        scratch: &mut vec![0; network.scratch_len()],
    };
    let mut sums = vec![0; network.outputs()];
    for value in [127, -127, 1] {
        let x = vec![value; network.inputs()];
        let x = I8Sym::new(&x).expect("none is -128");
        network
            .run(&mut Scalar, x, &mut buffers, &mut sums)
            .expect("the lengths are those it asks for");
        assert!(network.class(&sums) < sums.len());
    }
});
