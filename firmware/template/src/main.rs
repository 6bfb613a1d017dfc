//! Reads a handwritten digit with the network in `net.gguf`, which stays in flash.

#![no_std]
#![no_main]

use core::panic::PanicInfo;

use cortex_m as _; // its critical section
use cortex_m_rt::entry;
use cortex_m_semihosting::{debug, hprintln};
use tercet_core::gguf::Aligned;
use tercet_core::linear::network::{Buffers, LayerSize};
use tercet_core::{Network, Only};

mod net {
    //! The sizes that the build script read in `net.gguf`.
    include!(concat!(env!("OUT_DIR"), "/net.rs"));
}
use net::{INPUTS, LAYERS, LAYOUTS, OUTPUTS, SIZES};

// Aligned, because the kernels load whole words; without it they take three times the instructions.
static FILE: &Aligned<[u8]> = &Aligned(*include_bytes!("../net.gguf"));

/// Returns the class of the values; `None` if the file is no network or a value is not finite.
fn classify(values: &[f32; INPUTS]) -> Option<usize> {
    let mut codes = [0; INPUTS];
    let mut activations = [0; LayerSize::activations_len(&SIZES)];
    let mut scratch = [0; LayerSize::scratch_len(&SIZES)];
    let mut logits = [0; OUTPUTS];
    let network = Network::<LAYERS>::new(&FILE.0).ok()?;
    // Floats become int8 codes by the scale that the file has from its calibration.
    let codes = network.quantize(values, &mut codes).ok()?;
    let mut buffers = Buffers {
        activations: &mut activations,
        scratch: &mut scratch,
    };
    // `Only` leaves the code of other layouts out of the image.
    network
        .run(&mut Only::<LAYOUTS>, codes, &mut buffers, &mut logits)
        .ok()?;
    Some(network.class(&logits))
}

/// A handwritten 4 that the network was not trained on (UCI, CC BY 4.0).
#[rustfmt::skip]
const IMAGE: [[f32; 8]; 8] = [
    [0.0,  0.0,  0.0,  4.0, 15.0,  6.0, 0.0, 0.0],
    [0.0,  0.0,  0.0, 13.0, 13.0,  1.0, 0.0, 0.0],
    [0.0,  0.0,  7.0, 16.0,  2.0,  0.0, 0.0, 0.0],
    [0.0,  4.0, 15.0,  8.0,  0.0,  5.0, 0.0, 0.0],
    [0.0, 11.0, 14.0,  1.0,  6.0, 16.0, 5.0, 0.0],
    [1.0, 16.0, 14.0, 12.0, 16.0, 16.0, 3.0, 0.0],
    [0.0, 10.0, 12.0, 10.0, 16.0, 10.0, 0.0, 0.0],
    [0.0,  0.0,  0.0,  6.0, 16.0,  2.0, 0.0, 0.0],
];

/// The inputs of this network: the pixels, then what each differs by from its right, lower and lower right neighbour.
fn features(image: &[[f32; 8]; 8]) -> [f32; INPUTS] {
    core::array::from_fn(|i| {
        let (part, row, column) = (i / 64, i / 8 % 8, i % 8);
        let (down, right) = [(0, 0), (0, 1), (1, 0), (1, 1)][part];
        let neighbour = image
            .get(row + down)
            .and_then(|row| row.get(column + right));
        match part {
            0 => image[row][column],
            _ => image[row][column] - neighbour.unwrap_or(&0.0),
        }
    })
}

#[entry]
fn main() -> ! {
    let status = match classify(&features(&IMAGE)) {
        Some(class) => {
            hprintln!("digit {}", class);
            debug::EXIT_SUCCESS
        }
        None => debug::EXIT_FAILURE,
    };
    end(status)
}

#[panic_handler]
fn panicked(_: &PanicInfo<'_>) -> ! {
    end(debug::EXIT_FAILURE)
}

/// Ends the emulator with this exit status. On a real board, a debugger takes its place.
fn end(status: debug::ExitStatus) -> ! {
    loop {
        debug::exit(status);
    }
}
