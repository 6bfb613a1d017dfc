//! The order of short lists, for which a sort is compiled once and not for every list.

use std::cmp::Ordering;

/// The numbers below `count` in the order that `compare` has them in; equal ones stay in theirs.
pub(crate) fn order(count: usize, compare: &dyn Fn(usize, usize) -> Ordering) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|&a, &b| compare(a, b));
    order
}

/// Puts a value into a list in order, behind those that are no greater.
pub(crate) fn insert<T>(list: &mut Vec<T>, value: T, compare: impl Fn(&T, &T) -> Ordering) {
    let place = list.partition_point(|other| compare(other, &value).is_le());
    list.insert(place, value);
}
