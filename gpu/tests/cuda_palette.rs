//! Palettes on the device: every width, awkward sizes and special values give the reference's bits.

use crate::support::emulator::{device, emulated};
use half::{bf16, f16};
use tercet_core::engine::{PaletteEngine, Refused};
use tercet_core::number::Element;
use tercet_core::palette::{Encoded, IndexMatrix, Output, Palette, PaletteError, Width};
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

    fn value(&mut self) -> f32 {
        (self.next() % 20_001) as f32 / 10_000.0 - 1.0
    }
}

/// What encoding left.
#[derive(Debug, PartialEq)]
struct Made {
    indices: Vec<u8>,
    codebooks: Vec<i8>,
    scales: Vec<f32>,
    done: Encoded,
}

impl Made {
    fn palette(&self, layout: IndexMatrix) -> Palette<'_> {
        Palette {
            layout,
            indices: &self.indices,
            codebooks: &self.codebooks,
            scales: &self.scales,
        }
    }
}

fn encode<T: Element, E: PaletteEngine>(
    engine: &mut E,
    layout: IndexMatrix,
    values: &[T],
    importances: &[u32],
) -> Result<Made, E::Error> {
    let mut made = Made {
        indices: vec![0xAA; layout.index_bytes()],
        codebooks: vec![1; layout.codebook_len()],
        scales: vec![1.0; layout.groups()],
        done: Encoded::default(),
    };
    let mut scratch = vec![0; layout.scratch_len()];
    let out = Output {
        indices: &mut made.indices,
        codebooks: &mut made.codebooks,
        scales: &mut made.scales,
    };
    made.done = engine.encode_palette(&layout, values, importances, out, &mut scratch)?;
    Ok(made)
}

fn compare<T: Element>(cuda: &mut Cuda, layout: IndexMatrix, values: &[T], importances: &[u32]) {
    let expected = encode(&mut Scalar, layout, values, importances).unwrap();
    let found = encode(cuda, layout, values, importances).unwrap();
    assert_eq!(found, expected, "{layout:?}");
    let palette = expected.palette(layout);
    let (mut out, mut out2) = (vec![0.0; layout.values()], vec![1.0; layout.values()]);
    Scalar.decode_palette(&palette, &mut out).unwrap();
    cuda.decode_palette(&palette, &mut out2).unwrap();
    assert_eq!(bits(&out2), bits(&out), "{layout:?}");
    let x: Vec<i8> = (0..layout.cols())
        .map(|i| (i * 37 % 256) as u8 as i8)
        .collect();
    let (mut y, mut y2) = (vec![0.0; layout.rows()], vec![1.0; layout.rows()]);
    Scalar.multiply_palette(&palette, &x, 0.37, &mut y).unwrap();
    cuda.multiply_palette(&palette, &x, 0.37, &mut y2).unwrap();
    assert_eq!(bits(&y2), bits(&y), "{layout:?}");
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

#[test]
fn every_width_gives_the_references_bits() {
    let Some(_device) = device() else { return };
    let mut cuda = Cuda::first().unwrap();
    let mut draw = Draw(1);
    for width in Width::ALL {
        for (rows, cols, group_rows) in
            [(1, 1, 1), (5, 31, 2), (3, 300, 3), (40, 9, 1), (2, 1000, 2)]
        {
            let layout = IndexMatrix::with_rows(width, rows, cols, group_rows).unwrap();
            let values: Vec<f32> = (0..layout.values()).map(|_| draw.value()).collect();
            compare(&mut cuda, layout, &values, &[]);
            let importances: Vec<u32> =
                values.iter().map(|_| (draw.next() % 1000) as u32).collect();
            compare(&mut cuda, layout, &values, &importances);
        }
    }
}

#[test]
fn halves_large_groups_and_special_values_are_the_references() {
    let Some(_device) = device() else { return };
    let mut cuda = Cuda::first().unwrap();
    let mut draw = Draw(2);
    let width = Width::new(3).unwrap();
    // More than one block a group, the last group shorter.
    let layout = IndexMatrix::new(width, 70, 1001, 2).unwrap();
    let values: Vec<f32> = (0..layout.values()).map(|_| draw.value()).collect();
    compare(&mut cuda, layout, &values, &[]);
    let small = IndexMatrix::new(width, 6, 50, 3).unwrap();
    let values = &values[..small.values()];
    compare(
        &mut cuda,
        small,
        &values.iter().map(|&x| f16::from_f32(x)).collect::<Vec<_>>(),
        &[],
    );
    compare(
        &mut cuda,
        small,
        &values
            .iter()
            .map(|&x| bf16::from_f32(x))
            .collect::<Vec<_>>(),
        &[],
    );
    // Zeros, subnormals whose scale is 0, the largest floats, halves of a step.
    for value in [0.0, -0.0, 1e-45, f32::MAX, -f32::MAX, f32::MIN_POSITIVE] {
        let mut values = values.to_vec();
        values[..100].fill(value);
        compare(&mut cuda, small, &values, &[]);
    }
    let halves: Vec<f32> = (0..300)
        .map(|i| {
            if i % 50 == 0 {
                127.0
            } else {
                i as f32 / 2.0 - 60.0
            }
        })
        .collect();
    compare(&mut cuda, small, &halves, &[]);
    // No value of a group is of importance: all count alike.
    let mut importances = vec![u32::MAX; 300];
    importances[100..200].fill(0);
    compare(&mut cuda, small, values, &importances);
}

#[test]
fn refusals_are_the_references() {
    let Some(_device) = device() else { return };
    let mut cuda = Cuda::first().unwrap();
    let layout = IndexMatrix::new(Width::new(2).unwrap(), 6, 50, 3).unwrap();
    for (at, bad) in [
        (0, f32::NAN),
        (137, f32::INFINITY),
        (299, f32::NEG_INFINITY),
    ] {
        let mut values = vec![0.5; 300];
        values[at] = bad;
        values[299] = f32::NAN;
        let index = at as u64;
        let refused = encode(&mut cuda, layout, &values, &[]).unwrap_err();
        assert_eq!(
            refused,
            CudaError::Refused(Refused::Palette(PaletteError::NotFinite { index }))
        );
        assert_eq!(
            encode(&mut Scalar, layout, &values, &[]).unwrap_err(),
            PaletteError::NotFinite { index }
        );
    }
    let refused = encode(&mut cuda, layout, &[1.0; 299], &[]).unwrap_err();
    let length = |expected, found| {
        CudaError::Refused(Refused::Palette(PaletteError::Length { expected, found }))
    };
    assert_eq!(refused, length(300, 299));
    let made = encode(&mut Scalar, layout, &[1.0; 300], &[]).unwrap();
    let palette = made.palette(layout);
    assert_eq!(
        cuda.decode_palette(&palette, &mut [0.0; 299]).unwrap_err(),
        length(300, 299)
    );
    assert_eq!(
        cuda.multiply_palette(&palette, &[0; 49], 1.0, &mut [0.0; 6])
            .unwrap_err(),
        length(50, 49)
    );
    assert_eq!(
        cuda.multiply_palette(&palette, &[0; 50], 1.0, &mut [0.0; 5])
            .unwrap_err(),
        length(6, 5)
    );
    let scales = [1.0, f32::NAN, 1.0];
    let broken = Palette {
        scales: &scales,
        ..palette
    };
    let refused = cuda.decode_palette(&broken, &mut [0.0; 300]).unwrap_err();
    assert_eq!(
        refused,
        CudaError::Refused(Refused::Palette(PaletteError::ScaleNotFinite { group: 1 }))
    );
    let there = cuda.palette(&palette).unwrap();
    let mut short = cuda.zeros::<f32>(299).unwrap();
    let refused = cuda.decode_resident_palette(&there, &mut short);
    assert_eq!(
        refused,
        Err(CudaError::Length {
            expected: 300,
            found: 299
        })
    );
}

#[test]
fn little_memory_takes_more_parts() {
    let Some(_device) = device() else { return };
    let options = CudaOptions {
        memory: Some(48 << 10),
        ..CudaOptions::default()
    };
    let mut cuda = Cuda::new(&options).unwrap();
    let mut draw = Draw(3);
    let layout = IndexMatrix::new(Width::new(4).unwrap(), 21, 700, 7).unwrap();
    let values: Vec<f32> = (0..layout.values()).map(|_| draw.value()).collect();
    compare(&mut cuda, layout, &values, &[]);
}

#[test]
fn faults_are_errors_and_leave_nothing_behind() {
    let Some(device) = emulated() else { return };
    let layout = IndexMatrix::new(Width::new(4).unwrap(), 3, 40, 1).unwrap();
    let values: Vec<f32> = (0..120).map(|i| i as f32 - 50.0).collect();
    let expected = encode(&mut Scalar, layout, &values, &[]).unwrap();
    let mut failed = 0;
    for kind in ["alloc", "copy", "launch", "module", "lost"] {
        for at in 1..=3 {
            let mut cuda = Cuda::first().unwrap();
            device.set(&format!("fail={kind}:{at}"));
            let result = encode(&mut cuda, layout, &values, &[]);
            device.set("fail=none");
            match result {
                Ok(made) => assert_eq!(made, expected),
                Err(error) => {
                    assert!(error.is_of_the_device());
                    failed += 1;
                }
            }
        }
    }
    assert!(failed >= 8, "{failed}");
}
