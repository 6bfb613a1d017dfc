//! Layers on the device: every layout, awkward sizes and extremes give the reference's bits.

use crate::support::emulator::{device, emulated};
use tercet_core::block::{self, Format};
use tercet_core::engine::{LinearEngine, Refused};
use tercet_core::f16;
use tercet_core::linear::{
    I8Sym, Layer, Layout, LinearError, Matrix, Requantize, Rescale, Table, pack,
};
use tercet_core::quant::{Rule, ScaleRule};
use tercet_core::scalar::Scalar;
use tercet_gpu::engine::{Cuda, CudaError, CudaOptions};

/// Numbers that look random, the same each time.
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        self.0 >> 33
    }

    fn code(&mut self, (lowest, highest): (i8, i8)) -> i8 {
        let span = i64::from(highest) - i64::from(lowest) + 1;
        (i64::from(lowest) + (self.next() as i64) % span) as i8
    }
}

/// What weights are.
#[derive(Clone, Copy)]
enum Fill {
    /// Random codes; blocks of small, middling and large values, all of whose scales are below 128.
    Drawn,
    /// The code of largest magnitude; in blocks with this scale.
    Largest(f32),
}

fn weights(layout: Layout, rows: usize, cols: usize, fill: Fill, draw: &mut Draw) -> Vec<u8> {
    let mut bytes = vec![0; layout.bytes(rows, cols).unwrap()];
    match layout {
        Layout::Block(format) if !format.can_encode() => {
            for (index, block) in bytes.chunks_mut(format.bytes()).enumerate() {
                let scale = match fill {
                    // Codes and factors of largest magnitude, under an eighth of the scale, since they multiply it.
                    Fill::Largest(scale) => {
                        block.fill(if format == Format::Q6K { 0 } else { 0xFF });
                        if format == Format::Q6K {
                            block[192..208].fill(0x80);
                        }
                        scale / 8.0
                    }
                    Fill::Drawn => {
                        block.fill_with(|| draw.next() as u8);
                        [1e-6, -1e-3, 0.12][index % 3]
                    }
                };
                for (at, value) in [
                    (Some(format.scale_offset()), scale),
                    (format.min_offset(), -scale),
                ] {
                    if let Some(at) = at {
                        block[at..at + 2].copy_from_slice(&f16::from_f32(value).to_le_bytes());
                    }
                }
            }
        }
        Layout::Block(format) => {
            let steps = match format {
                Format::Q8_0 => 127.0,
                Format::Q4_0 => -8.0,
                _ => 1.0,
            };
            let value = |i: usize, draw: &mut Draw| match fill {
                Fill::Largest(scale) => scale * steps,
                Fill::Drawn => {
                    let of_block = [1e-6, 1e-3, 0.12][i / format.len() % 3];
                    ((draw.next() % 2001) as f32 - 1000.0) * of_block
                }
            };
            let values: Vec<f32> = (0..rows * cols).map(|i| value(i, draw)).collect();
            block::encode(format, Rule::AbsMax, ScaleRule::Rule, &values, &mut bytes).unwrap();
        }
        _ => {
            let range = layout.codes();
            let code = |draw: &mut Draw| match fill {
                Fill::Largest(_) => range.0,
                Fill::Drawn => draw.code(range),
            };
            let codes: Vec<i8> = (0..rows * cols).map(|_| code(draw)).collect();
            pack::pack(layout, rows, cols, &codes, &mut bytes).unwrap();
        }
    }
    bytes
}

fn activations(len: usize, extreme: bool, draw: &mut Draw) -> Vec<i8> {
    let code = |draw: &mut Draw| {
        if extreme {
            -127
        } else {
            draw.code((-127, 127))
        }
    };
    (0..len).map(|_| code(draw)).collect()
}

/// Every form of a layer's product by both engines.
fn compare(cuda: &mut Cuda, layer: &Layer<'_>, x: &[i8]) {
    let (rows, cols) = (layer.weights().rows(), layer.weights().cols());
    let count = x.len() / cols;
    let context = format!(
        "{:?} {rows} x {cols}, {count} rows",
        layer.weights().layout()
    );
    let mut scratch = vec![0; layer.weights().scratch_len()];
    let x = I8Sym::new(x).unwrap();
    let scales: Vec<f32> = (0..count).map(|i| 0.013 + i as f32 / 7.0).collect();
    let (mut sums, mut sums2) = (vec![1; rows * count], vec![2; rows * count]);
    Scalar.sums_many(layer, x, &mut sums, &mut scratch).unwrap();
    cuda.sums_many(layer, x, &mut sums2, &mut scratch).unwrap();
    assert_eq!(sums2, sums, "{context}");
    let (mut out, mut out2) = (vec![1.0; rows * count], vec![2.0; rows * count]);
    Scalar
        .matmat(layer, x, &scales, &mut out, &mut scratch)
        .unwrap();
    cuda.matmat(layer, x, &scales, &mut out2, &mut scratch)
        .unwrap();
    assert_eq!(out2, out, "{context}");
    let multipliers: Vec<i32> = (0..rows as i32).map(|row| (1 << 30) + 9999 * row).collect();
    let shifts: Vec<u8> = (0..rows).map(|row| 33 + (row % 25) as u8).collect();
    let rescale = Rescale::rows(Table::Words(&multipliers), &shifts).unwrap();
    let (mut codes, mut codes2) = (vec![1; rows * count], vec![2; rows * count]);
    Scalar
        .dense_many(layer, &rescale, x, &mut codes, &mut scratch)
        .unwrap();
    cuda.dense_many(layer, &rescale, x, &mut codes2, &mut scratch)
        .unwrap();
    assert_eq!(codes2, codes, "{context}");
    // With everything resident, the device makes the floats.
    let there = cuda.layer(layer).unwrap();
    assert_eq!((there.rows(), there.cols()), (rows, cols));
    let x_there = cuda.activations(&there, x).unwrap();
    let scales_there = cuda.upload(&scales).unwrap();
    let mut out_there = cuda.zeros(rows * count).unwrap();
    cuda.multiply(&there, &x_there, &scales_there, &mut out_there)
        .unwrap();
    cuda.read(&out_there, &mut out2).unwrap();
    assert_eq!(out2, out, "resident {context}");
    let mut sums_there = cuda.zeros(rows * count).unwrap();
    cuda.row_sums(&there, &x_there, &mut sums_there).unwrap();
    cuda.read(&sums_there, &mut sums2).unwrap();
    assert_eq!(sums2, sums, "resident {context}");
    let Some(first) = x.rows(cols).next() else {
        return;
    };
    let (mut one, mut one2) = (vec![1; rows], vec![2; rows]);
    Scalar.sums(layer, first, &mut one, &mut scratch).unwrap();
    cuda.sums(layer, first, &mut one2, &mut scratch).unwrap();
    assert_eq!(one2, one, "{context}");
    let (mut out, mut out2) = (vec![1.0; rows], vec![2.0; rows]);
    Scalar
        .matvec(layer, first, 0.3, &mut out, &mut scratch)
        .unwrap();
    cuda.matvec(layer, first, 0.3, &mut out2, &mut scratch)
        .unwrap();
    assert_eq!(out2, out, "{context}");
    let rescale = Rescale::one(Requantize::from_scale(1e-4).unwrap());
    let (mut codes, mut codes2) = (vec![1; rows], vec![2; rows]);
    Scalar
        .dense(layer, &rescale, first, &mut codes, &mut scratch)
        .unwrap();
    cuda.dense(layer, &rescale, first, &mut codes2, &mut scratch)
        .unwrap();
    assert_eq!(codes2, codes, "{context}");
}

/// Columns that make sense for a layout: whole blocks, or anything.
fn columns(layout: Layout) -> Vec<usize> {
    match layout {
        Layout::Block(format) => [1, 5].map(|blocks| blocks * format.len()).to_vec(),
        _ => vec![1, 60, 65, 300],
    }
}

#[test]
fn every_layout_gives_the_references_bits() {
    let Some(device) = device() else { return };
    let mut draw = Draw(7);
    for capability in ["7.5", "8.0", "9.0"] {
        device.set(&format!("capability={capability}"));
        let mut cuda = Cuda::first().unwrap();
        for layout in Layout::ALL {
            for cols in columns(layout) {
                for (rows, count) in [
                    (1, 1),
                    (3, 2),
                    (33, 5),
                    (50, 8),
                    (7, 19),
                    (7, 41),
                    (5, 0),
                    (0, 2),
                ] {
                    let bytes = weights(layout, rows, cols, Fill::Drawn, &mut draw);
                    let matrix = Matrix::new(layout, rows, cols, &bytes).unwrap();
                    let x = activations(count * cols, false, &mut draw);
                    compare(&mut cuda, &Layer::new(matrix), &x);
                }
            }
        }
    }
}

#[test]
fn extremes_are_exact() {
    let Some(_device) = device() else { return };
    let mut cuda = Cuda::first().unwrap();
    let mut draw = Draw(8);
    for layout in Layout::ALL {
        let bytes = weights(layout, 9, 4096, Fill::Largest(470.0), &mut draw);
        let matrix = Matrix::new(layout, 9, 4096, &bytes).unwrap();
        let x = activations(2 * 4096, true, &mut draw);
        compare(&mut cuda, &Layer::new(matrix), &x);
    }
    let cols = 1 << 16;
    let bytes = weights(Layout::Int8, 2, cols, Fill::Largest(470.0), &mut draw);
    let matrix = Matrix::new(Layout::Int8, 2, cols, &bytes).unwrap();
    compare(&mut cuda, &Layer::new(matrix), &vec![-127; cols]);
}

#[test]
fn scales_and_biases_are_the_references() {
    let Some(_device) = device() else { return };
    let mut cuda = Cuda::first().unwrap();
    let mut draw = Draw(9);
    let (rows, cols) = (21, 512);
    let bias: Vec<i32> = (0..rows)
        .map(|i| [i32::MIN, -5, 0, 7, i32::MAX][i % 5])
        .collect();
    let scales: Vec<i32> = (0..rows)
        .map(|i| ((i as f32 - 9.5) * 0.037).to_bits().cast_signed())
        .collect();
    for layout in Layout::ALL {
        let bytes = weights(layout, rows, cols, Fill::Drawn, &mut draw);
        let x = activations(3 * cols, false, &mut draw);
        let matrix = Matrix::new(layout, rows, cols, &bytes).unwrap();
        for shift in [0, 9, 30] {
            let layer = Layer::new(matrix)
                .with_bias(Table::Words(&bias), shift)
                .unwrap();
            compare(&mut cuda, &layer, &x);
        }
        if let Ok(scaled) = matrix.with_row_scales(Table::Words(&scales)) {
            compare(&mut cuda, &Layer::new(scaled), &x);
            compare(&mut cuda, &Layer::new(matrix.with_scale(-0.7).unwrap()), &x);
        }
    }
}

/// Any bytes are weights of most layouts, also such as no packer makes; one of them is wider than a byte.
#[test]
fn patterns_that_no_packer_makes_are_weights_too() {
    let Some(_device) = device() else { return };
    let mut cuda = Cuda::first().unwrap();
    let mut draw = Draw(10);
    for layout in [
        Layout::Int8,
        Layout::Int8Pairs,
        Layout::Int4,
        Layout::FiveTrits,
    ] {
        for (rows, cols) in [(9, 77), (4, 8)] {
            let len = layout.bytes(rows, cols).unwrap();
            let bytes: Vec<u8> = (0..len).map(|_| draw.next() as u8).collect();
            let matrix = Matrix::new(layout, rows, cols, &bytes).unwrap();
            let x = activations(2 * cols, false, &mut draw);
            let layer = Layer::new(matrix);
            if cuda.layer(&layer).is_ok() {
                compare(&mut cuda, &layer, &x);
            }
        }
    }
    // Even column −1, odd column 127 + 1.
    let mut bytes = vec![0; 32];
    bytes[..2].copy_from_slice(&[0xFF, 0x7F]);
    let layer = Layer::new(Matrix::new(Layout::Int8Pairs, 4, 8, &bytes).unwrap());
    let refused = cuda.layer(&layer).unwrap_err();
    assert_eq!(
        refused,
        CudaError::Refused(Refused::Linear(LinearError::CodeRange { row: 0, col: 1 }))
    );
    let x = I8Sym::new(&[1, 2, 0, 0, 0, 0, 0, 0]).unwrap();
    let (mut out, mut scratch) = ([0; 4], vec![0; layer.weights().scratch_len()]);
    cuda.sums(&layer, x, &mut out, &mut scratch).unwrap();
    assert_eq!(out, [255, 0, 0, 0]);
    let quarters = Rescale::one(Requantize::from_scale(0.25).unwrap());
    let twice = I8Sym::new(&[1, 2, 0, 0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0, 0]).unwrap();
    let mut out = [1; 8];
    cuda.dense_many(&layer, &quarters, twice, &mut out, &mut scratch)
        .unwrap();
    assert_eq!(out, [64, 0, 0, 0, -32, 0, 0, 0]);
}

#[test]
fn little_memory_takes_more_parts() {
    let Some(_device) = device() else { return };
    let options = CudaOptions {
        memory: Some(24 << 10),
        ..CudaOptions::default()
    };
    let mut cuda = Cuda::new(&options).unwrap();
    let mut draw = Draw(11);
    let bytes = weights(Layout::Int8, 100, 500, Fill::Drawn, &mut draw);
    let layer = Layer::new(Matrix::new(Layout::Int8, 100, 500, &bytes).unwrap());
    let x = activations(500, false, &mut draw);
    let x = I8Sym::new(&x).unwrap();
    let (mut sums, mut sums2) = (vec![0; 100], vec![0; 100]);
    let mut scratch = vec![0; layer.weights().scratch_len()];
    Scalar.sums(&layer, x, &mut sums, &mut scratch).unwrap();
    cuda.sums(&layer, x, &mut sums2, &mut scratch).unwrap();
    assert_eq!(sums, sums2);
    assert!(cuda.layer(&layer).unwrap_err().is_out_of_memory());
}

#[test]
fn what_does_not_fit_is_refused() {
    let Some(_device) = device() else { return };
    let mut cuda = Cuda::first().unwrap();
    let bytes: Vec<u8> = (0..30).collect();
    let layer = Layer::new(Matrix::new(Layout::Int8, 3, 10, &bytes).unwrap());
    let other = Layer::new(Matrix::new(Layout::Int8, 2, 15, &bytes).unwrap());
    let x = I8Sym::new(&[1; 20]).unwrap();
    let mut scratch = vec![0; layer.weights().scratch_len()];
    let length = |expected, found| {
        Err(CudaError::Refused(Refused::Linear(LinearError::Length {
            expected,
            found,
        })))
    };
    assert_eq!(
        cuda.sums(&layer, x, &mut [0; 3], &mut scratch),
        length(10, 20)
    );
    assert_eq!(
        cuda.sums_many(&layer, x, &mut [0; 5], &mut scratch),
        length(6, 5)
    );
    assert_eq!(
        cuda.matmat(&layer, x, &[1.0], &mut [0.0; 6], &mut scratch),
        length(2, 1)
    );
    let one = Rescale::one(Requantize::from_scale(0.5).unwrap());
    let two = Rescale::rows(Table::Words(&[1 << 30; 2]), &[40; 2]).unwrap();
    let mut dense = |rescale, x, outputs: usize| {
        cuda.dense_many(&layer, rescale, x, &mut vec![0; outputs], &mut scratch)
    };
    assert_eq!(dense(&one, x, 6), Ok(()));
    assert_eq!(dense(&one, x, 5), length(6, 5));
    assert_eq!(dense(&two, x, 6), length(3, 2));
    let none = I8Sym::new(&[]).unwrap();
    assert_eq!(dense(&two, none, 0), length(3, 2));
    // The device unpacks on the device: nothing of the caller's is asked for.
    assert_eq!(cuda.product_scratch_len(layer.weights()), 0);
    assert_eq!(cuda.sums_many(&layer, x, &mut [0; 6], &mut []), Ok(()));
    let (there, other) = (cuda.layer(&layer).unwrap(), cuda.layer(&other).unwrap());
    let x = cuda.activations(&there, x).unwrap();
    let mut sums = cuda.zeros(6).unwrap();
    assert_eq!(cuda.row_sums(&other, &x, &mut sums), length(15, 10));
    let mut sums = cuda.zeros(5).unwrap();
    let refused = cuda.row_sums(&there, &x, &mut sums);
    assert_eq!(
        refused,
        Err(CudaError::Length {
            expected: 6,
            found: 5
        })
    );
    let odd = I8Sym::new(&[1; 11]).unwrap();
    assert_eq!(cuda.activations(&there, odd).map(|_| ()), length(10, 11));
}

#[test]
fn faults_are_errors_and_leave_nothing_behind() {
    let Some(device) = emulated() else { return };
    let bytes: Vec<u8> = (0..60).collect();
    let layer = Layer::new(Matrix::new(Layout::Int8, 3, 20, &bytes).unwrap());
    let x = I8Sym::new(&[1; 20]).unwrap();
    let mut scratch = vec![0; layer.weights().scratch_len()];
    let mut expected = [0; 3];
    Scalar.sums(&layer, x, &mut expected, &mut scratch).unwrap();
    let mut failed = 0;
    for kind in ["alloc", "copy", "launch", "module"] {
        for at in 1..=4 {
            let mut cuda = Cuda::first().unwrap();
            device.set(&format!("fail={kind}:{at}"));
            let mut out = [0; 3];
            let result = cuda.sums(&layer, x, &mut out, &mut scratch);
            device.set("fail=none");
            match result {
                Ok(()) => assert_eq!(out, expected),
                Err(_) => failed += 1,
            }
        }
    }
    assert!(failed >= 5, "{failed}");
}

/// Below 128 a block's scale is a number of 32 bits, and tensor cores take part; from there on they do not.
#[test]
fn scales_at_the_border_of_32_bits_are_exact() {
    let Some(_device) = device() else { return };
    let mut cuda = Cuda::first().unwrap();
    let mut draw = Draw(13);
    for layout in Layout::ALL {
        let Layout::Block(format) = layout else {
            continue;
        };
        for scale in [127.9375, -127.9375, 128.0] {
            let cols = 6 * format.len().max(64);
            let bytes = weights(layout, 5, cols, Fill::Largest(scale), &mut draw);
            let layer = Layer::new(Matrix::new(layout, 5, cols, &bytes).unwrap());
            for count in [2, 11, 35] {
                compare(
                    &mut cuda,
                    &layer,
                    &activations(count * cols, true, &mut draw),
                );
            }
        }
    }
}

/// More than one tile both ways, and a last one of each that is not whole.
#[test]
fn many_rows_of_activations_take_tiles() {
    let Some(_device) = device() else { return };
    let mut cuda = Cuda::first().unwrap();
    let mut draw = Draw(12);
    for layout in Layout::ALL {
        let bytes = weights(layout, 131, 512, Fill::Drawn, &mut draw);
        let matrix = Matrix::new(layout, 131, 512, &bytes).unwrap();
        let x = activations(130 * 512, false, &mut draw);
        compare(&mut cuda, &Layer::new(matrix), &x);
    }
}
