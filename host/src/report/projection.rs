//! Projects points of many dimensions on a plane: the two directions along which the centroids differ most.

use tercet_core::number::Random;

use crate::points::Points;

/// Points that are drawn.
pub(super) const SAMPLE: usize = 2000;
/// Rounds of orthogonal iteration; the directions are only for display.
const ROUNDS: usize = 60;
const SEED: u64 = 1;

/// Points and centroids on two axes.
#[derive(Debug)]
pub(super) struct Projection {
    /// Rows of the drawn points, in ascending order, and their places.
    pub(super) points: Vec<(usize, f64, f64)>,
    /// Places of the centroids.
    pub(super) centroids: Vec<(f64, f64)>,
    /// Part of the centroids' variance, weighted by their counts, along the two axes.
    pub(super) held: f64,
}

/// Returns the principal components of the centroids, each weighted by its number of points. If these are on one line,
/// the second axis is the direction in which the points differ most beside it.
///
/// At most [`SAMPLE`] points are drawn: one, with a fixed seed, from each of that many equal runs of rows. O((k + 2000)
/// · d) per round.
pub(super) fn project(points: &Points, centroids: &[f32], counts: &[u64]) -> Projection {
    let dims = points.dims();
    let rows = sample(points.rows());
    let mut values = vec![0.0f32; rows.len() * dims];
    for (&row, out) in rows.iter().zip(values.chunks_mut(dims)) {
        // Rows below n always fit.
        let _ = points.read_row(row, out);
    }
    let mut total = 0.0;
    let mut middle = vec![0.0f64; dims];
    for (centroid, &count) in centroids.chunks(dims).zip(counts) {
        total += count as f64;
        for (sum, &x) in middle.iter_mut().zip(centroid) {
            *sum += count as f64 * f64::from(x);
        }
    }
    middle
        .iter_mut()
        .for_each(|sum| *sum /= f64::max(total, 1.0));
    let moved = |row: &[f32], weight: f64| -> Vec<f64> {
        let weight = weight.sqrt();
        row.iter()
            .zip(&middle)
            .map(|(&x, &middle)| weight * (f64::from(x) - middle))
            .collect()
    };
    let weighted: Vec<Vec<f64>> = centroids
        .chunks(dims)
        .zip(counts)
        .map(|(row, &count)| moved(row, count as f64))
        .collect();
    let (mut axes, variances) = principal(&weighted, dims, None);
    if variances[1] <= 1e-9 * variances[0] {
        let sampled: Vec<Vec<f64>> = values.chunks(dims).map(|row| moved(row, 1.0)).collect();
        if variances[0] == 0.0 {
            axes = principal(&sampled, dims, None).0;
        } else {
            let ([beside, _], _) = principal(&sampled, dims, Some(&axes[0]));
            axes[1] = beside;
        }
    }
    let whole: f64 = weighted.iter().map(|row| dot(row, row)).sum();
    let place = |row: &[f32], jitter: f64| {
        let row = moved(row, 1.0);
        let y = if dims == 1 {
            jitter
        } else {
            dot(&row, &axes[1])
        };
        (dot(&row, &axes[0]), y)
    };
    let mut random = Random::new(SEED);
    Projection {
        points: rows
            .iter()
            .zip(values.chunks(dims))
            .map(|(&row, values)| {
                // With one dimension the other is free: points would hide each other on a line.
                let jitter = random.below(1000) as f64 / 500.0 - 1.0;
                let (x, y) = place(values, jitter);
                (row, x, y)
            })
            .collect(),
        centroids: centroids.chunks(dims).map(|row| place(row, 0.0)).collect(),
        held: if whole > 0.0 {
            (variances[0] + variances[1]) / whole
        } else {
            1.0
        },
    }
}

/// Returns the rows to draw: all, or a random one from each of [`SAMPLE`] equal runs.
fn sample(rows: usize) -> Vec<usize> {
    if rows <= SAMPLE {
        return (0..rows).collect();
    }
    let start = |run: usize| (run as u128 * rows as u128 / SAMPLE as u128) as usize;
    let mut random = Random::new(SEED);
    (0..SAMPLE)
        .map(|run| {
            let (from, to) = (start(run), start(run + 1));
            from + random.below((to - from) as u64) as usize
        })
        .collect()
}

/// Returns the two directions with the most variance of `rows`, orthogonal to `not`, and their variances, by orthogonal
/// iteration. A direction without variance is zero.
fn principal(rows: &[Vec<f64>], dims: usize, not: Option<&Vec<f64>>) -> ([Vec<f64>; 2], [f64; 2]) {
    let mut random = Random::new(SEED);
    let mut axes = [(); 2].map(|()| -> Vec<f64> {
        (0..dims)
            .map(|_| random.below(2001) as f64 / 1000.0 - 1.0)
            .collect()
    });
    let mut variances = [0.0; 2];
    for _ in 0..ROUNDS {
        for axis in &mut axes {
            let mut next = vec![0.0; dims];
            for row in rows {
                add(&mut next, dot(row, axis), row);
            }
            *axis = next;
        }
        let [first, second] = &mut axes;
        variances = [0.0; 2];
        for axis in [&mut *first, &mut *second] {
            if let Some(not) = not {
                let along = dot(axis, not);
                add(axis, -along, not);
            }
        }
        variances[0] = unit(first);
        let before = dot(second, second).sqrt();
        let along = dot(second, first);
        add(second, -along, first);
        // The rounding error of a missing direction is no direction.
        if dot(second, second).sqrt() <= 1e-9 * before {
            second.fill(0.0);
        }
        variances[1] = unit(second);
    }
    for axis in &mut axes {
        // Signs are arbitrary: the largest component is positive.
        let largest = axis
            .iter()
            .fold(0.0f64, |a, &b| if b.abs() > a.abs() { b } else { a });
        if largest < 0.0 {
            axis.iter_mut().for_each(|x| *x = -*x);
        }
    }
    (axes, variances)
}

/// Scales to length 1 and returns the length; a zero vector stays zero.
fn unit(axis: &mut [f64]) -> f64 {
    let length = dot(axis, axis).sqrt();
    if length > 0.0 {
        axis.iter_mut().for_each(|x| *x /= length);
    }
    length
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn add(to: &mut [f64], factor: f64, row: &[f64]) {
    for (to, x) in to.iter_mut().zip(row) {
        *to += factor * x;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::points::Values;

    #[test]
    fn a_plane_in_space_is_found() {
        // Points on the plane of e1 + e3 and e2, in ten dimensions, as their own centroids.
        let mut values = Vec::new();
        for i in 0..40 {
            let (u, v) = ((i % 8) as f32 - 3.5, (i / 8) as f32 * 0.5 - 1.0);
            values.extend([u, v, u, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
        }
        let points = Points::new("plane", 40, 10, Values::F32(values.clone())).unwrap();
        let found = project(&points, &values, &[1; 40]);
        assert!((found.held - 1.0).abs() < 1e-9, "{}", found.held);
        for (row, x, y) in &found.points {
            let (u, v) = ((row % 8) as f64 - 3.5, (row / 8) as f64 * 0.5 - 1.0);
            assert!((x - u * 2f64.sqrt()).abs() < 1e-6, "{row}: {x}");
            assert!((y - v).abs() < 1e-6, "{row}: {y}");
        }
    }

    #[test]
    fn two_centroids_leave_the_second_axis_to_the_points() {
        let values = vec![
            -5.0, 1.0, 0.0, -5.0, -1.0, 0.0, 5.0, 2.0, 0.0, 5.0, -2.0, 0.0f32,
        ];
        let points = Points::new("pairs", 4, 3, Values::F32(values)).unwrap();
        let found = project(&points, &[-5.0, 0.0, 0.0, 5.0, 0.0, 0.0], &[2, 2]);
        let heights: Vec<f64> = found.points.iter().map(|point| point.2.abs()).collect();
        for (found, expected) in heights.iter().zip([1.0, 1.0, 2.0, 2.0]) {
            assert!((found - expected).abs() < 1e-6, "{heights:?}");
        }
    }

    #[test]
    fn points_in_one_place_are_drawn_in_one_place() {
        let points = Points::new("same", 3, 2, Values::F32(vec![4.0; 6])).unwrap();
        let found = project(&points, &[4.0, 4.0], &[3]);
        assert!(found.points.iter().all(|&(_, x, y)| (x, y) == (0.0, 0.0)));
        assert_eq!(found.held, 1.0);
    }

    #[test]
    fn samples_are_distinct_and_in_order() {
        let rows = sample(12_345);
        assert_eq!(rows.len(), SAMPLE);
        assert!(rows.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(rows.iter().all(|&row| row < 12_345));
    }
}
