//! Arrays of `ndarray` as input, in any order of their memory.

use ndarray::{Array2, Axis, array, s};
use tercet_host::Quantizer;
use tercet_host::points::Points;

#[test]
fn the_order_of_memory_does_not_show() {
    let rows = array![[0.5f32, -2.0, 1.25], [4.0, 0.0, -1.0]];
    let columns = rows.t().as_standard_layout().into_owned();
    let (a, b) = (rows.view(), columns.t());
    assert!(b.as_slice().is_none());
    let quantizer = Quantizer::int8();
    assert_eq!(quantizer.quantize_rows(a), quantizer.quantize_rows(b));
    assert_eq!(quantizer.quantize_rows(a).unwrap().scales().len(), 2);
    let (a, b) = (rows.clone(), columns.reversed_axes());
    let (a, b) = (Points::try_from(a).unwrap(), Points::try_from(b).unwrap());
    assert_eq!(a.values(), b.values());
    // Elements that are removed or sliced off a row-major array stay in its memory.
    let mut removed = rows.clone();
    removed.remove_index(Axis(0), 0);
    for cut in [removed, rows.slice_move(s![1.., ..])] {
        let cut = Points::try_from(cut).unwrap();
        assert_eq!(cut.to_f32()[..], [4.0, 0.0, -1.0]);
    }
}

#[test]
fn nothing_to_take_is_refused() {
    assert!(Points::try_from(Array2::<f32>::zeros((0, 3))).is_err());
    assert!(Points::try_from(Array2::<i8>::zeros((3, 0))).is_err());
    assert!(Points::try_from(array![[f32::NAN]]).is_err());
    let empty = Array2::<f32>::zeros((0, 3));
    assert!(Quantizer::int8().quantize_rows(empty.view()).is_err());
}
