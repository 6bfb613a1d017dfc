//! Engines of one layout each.

use tercet_core::block::Format;
use tercet_core::engine::LinearEngine;
use tercet_core::linear::{I8Sym, Layer, Layout, LinearError, Matrix, Requantize, Rescale, pack};
use tercet_core::scalar::{Only, Scalar};

/// A matrix of two rows in each layout.
fn matrices() -> Vec<(Layout, usize, Vec<u8>)> {
    let bytes = |layout: Layout| {
        let cols = 256;
        let mut bytes = vec![0; layout.bytes(2, cols).unwrap()];
        if !matches!(layout, Layout::Block(_)) {
            let codes: Vec<i8> = (0..2 * cols).map(|i| (i % 3) as i8 - 1).collect();
            pack::pack(layout, 2, cols, &codes, &mut bytes).unwrap();
        }
        (layout, cols, bytes)
    };
    Layout::ALL.map(bytes).into()
}

/// Sums, floats, int8.
type Products = (Vec<i64>, Vec<f32>, Vec<i8>);

/// All three products on an engine.
fn products<E: LinearEngine<Error = LinearError>>(
    mut engine: E,
    layer: &Layer<'_>,
) -> Result<Products, LinearError> {
    let codes: Vec<i8> = (0..256).map(|i| (i % 255 - 127) as i8).collect();
    let x = I8Sym::new(&codes)?;
    let mut scratch = vec![0; layer.weights().scratch_len()];
    let (mut sums, mut floats, mut int8) = (vec![0; 2], vec![0.0; 2], vec![0; 2]);
    engine.sums(layer, x, &mut sums, &mut scratch)?;
    engine.matvec(layer, x, 0.5, &mut floats, &mut scratch)?;
    let rescale = Rescale::one(Requantize::from_scale(0.01)?);
    engine.dense(layer, &rescale, x, &mut int8, &mut scratch)?;
    Ok((sums, floats, int8))
}

#[test]
fn an_engine_of_some_layouts_takes_those_and_no_other() {
    macro_rules! each {
        ($($layout:expr),+ $(,)?) => {
            for (layout, cols, bytes) in matrices() {
                let layer = Layer::new(Matrix::new(layout, 2, cols, &bytes).unwrap());
                $({
                    const SET: u32 = Layout::set(&[$layout]);
                    let found = products(Only::<SET>, &layer);
                    if layout == $layout {
                        assert_eq!(found, products(Scalar, &layer), "{layout:?}");
                    } else {
                        assert_eq!(found, Err(LinearError::LeftOut), "{layout:?}");
                    }
                })+
            }
            assert_eq!([$($layout),+], Layout::ALL);
        };
    }
    each!(
        Layout::Int8,
        Layout::Int8Pairs,
        Layout::Int4,
        Layout::TernaryLanes,
        Layout::FiveTrits,
        Layout::Block(Format::Tq1_0),
        Layout::Block(Format::Tq2_0),
        Layout::Block(Format::Q2_0),
        Layout::Block(Format::Q8_0),
        Layout::Block(Format::Q4_0),
        Layout::Block(Format::Q4_1),
        Layout::Block(Format::Q5_0),
        Layout::Block(Format::Q5_1),
        Layout::Block(Format::Q4K),
        Layout::Block(Format::Q6K),
    );
}

#[test]
fn sets_hold_a_bit_for_each_layout() {
    let all = Layout::set(&Layout::ALL);
    assert_eq!(all.count_ones() as usize, Layout::ALL.len());
    assert!(Layout::ALL.iter().all(|layout| layout.is_in(all)));
    assert!(!Layout::Int4.is_in(all & !Layout::Int4.bit()));
}
