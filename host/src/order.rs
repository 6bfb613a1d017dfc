//! Sorting of short lists. The code of a sort is compiled once here, and not once per kind of list.

use std::cmp::Ordering;

/// Returns the numbers below `count`, sorted by `compare`. The sort is stable.
pub(crate) fn order(count: usize, compare: &dyn Fn(usize, usize) -> Ordering) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|&a, &b| compare(a, b));
    order
}

/// Inserts a value into a sorted list, behind all values that are not greater.
pub(crate) fn insert<T>(list: &mut Vec<T>, value: T, compare: impl Fn(&T, &T) -> Ordering) {
    let place = list.partition_point(|other| compare(other, &value).is_le());
    list.insert(place, value);
}
