//! Two dot products at once, of int8 rows with one vector.

/// Σ a·x and Σ b·x over the length of the shortest; `value` widens what rows hold. Exact while the sums fit, as they do below 2¹⁷
/// products of 2¹⁴.
///
/// Four columns a round: loads then find their places by offsets, and pointers move a quarter as often.
#[inline(always)]
pub(super) fn dots<T: Copy>(a: &[T], b: &[T], x: &[i8], value: impl Fn(T) -> i32) -> [i32; 2] {
    let mut sums = [0i32; 2];
    let mut add = |a: T, b: T, x: i8| {
        sums[0] = sums[0].wrapping_add(value(a) * i32::from(x));
        sums[1] = sums[1].wrapping_add(value(b) * i32::from(x));
    };
    let len = a.len().min(b.len()).min(x.len());
    let whole = len & !3;
    if let (Some((a, a_rest)), Some((b, b_rest)), Some((x, x_rest))) = (
        a.split_at_checked(whole),
        b.split_at_checked(whole),
        x.split_at_checked(whole),
    ) {
        let fours = a.chunks_exact(4).zip(b.chunks_exact(4));
        for ((a, b), x) in fours.zip(x.chunks_exact(4)) {
            if let (&[a0, a1, a2, a3], &[b0, b1, b2, b3], &[x0, x1, x2, x3]) = (a, b, x) {
                add(a0, b0, x0);
                add(a1, b1, x1);
                add(a2, b2, x2);
                add(a3, b3, x3);
            }
        }
        for ((&a, &b), &x) in a_rest.iter().zip(b_rest).zip(x_rest) {
            add(a, b, x);
        }
    }
    sums
}
