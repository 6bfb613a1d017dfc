//! Plain Rust loops in f32, without checks.
//!
//! The quantizers (a sum, then a division and a rounding per value) take values and the length of a group; all except
//! [`symmetric`] take the values as one group.

/// Output of quantizers.
#[derive(Clone, Debug)]
pub struct Codes {
    /// One per value.
    pub codes: Vec<i8>,
    /// One per group.
    pub scales: Vec<f32>,
    /// One per group.
    pub points: Vec<i8>,
}

/// Computes the mean of |x| with an f32 sum.
pub fn mean(values: &[f32], _: usize, out: &mut Codes) {
    out.scales[0] = values.iter().map(|x| x.abs()).sum::<f32>() / values.len() as f32;
}

/// Computes ternary codes from the mean of |x|.
pub fn abs_mean(values: &[f32], _: usize, out: &mut Codes) {
    let mean = values.iter().map(|x| x.abs()).sum::<f32>() / values.len() as f32;
    for (code, x) in out.codes.iter_mut().zip(values) {
        *code = (x / mean).round().clamp(-1.0, 1.0) as i8;
    }
    out.scales[0] = mean;
}

/// Computes ternary codes of least squared error by sorting all magnitudes and trying every count.
pub fn optimal(values: &[f32], _: usize, out: &mut Codes) {
    let mut sorted: Vec<f32> = values.iter().map(|x| x.abs()).collect();
    sorted.sort_unstable_by(|a, b| b.total_cmp(a));
    let (mut sum, mut best, mut scale, mut threshold) = (0.0f64, 0.0, 0.0, f32::INFINITY);
    for (index, &x) in sorted.iter().enumerate() {
        sum += f64::from(x);
        let count = (index + 1) as f64;
        if sum * sum / count > best {
            (best, scale, threshold) = (sum * sum / count, sum / count, x);
        }
    }
    for (code, x) in out.codes.iter_mut().zip(values) {
        *code = if x.abs() >= threshold {
            x.signum() as i8
        } else {
            0
        };
    }
    out.scales[0] = scale as f32;
}

/// Computes symmetric int8 codes with one scale per group.
pub fn symmetric(values: &[f32], len: usize, out: &mut Codes) {
    let groups = values.chunks(len).zip(out.codes.chunks_mut(len));
    for ((values, codes), scale) in groups.zip(&mut out.scales) {
        *scale = values.iter().fold(0.0f32, |max, x| max.max(x.abs())) / 127.0;
        for (code, x) in codes.iter_mut().zip(values) {
            *code = (x / *scale).round_ties_even().clamp(-127.0, 127.0) as i8;
        }
    }
}

/// Computes affine int8 codes.
pub fn affine(values: &[f32], _: usize, out: &mut Codes) {
    let min = values.iter().fold(0.0f32, |min, &x| min.min(x));
    let max = values.iter().fold(0.0f32, |max, &x| max.max(x));
    let scale = (max - min) / 255.0;
    let point = (-128.0 - min / scale).round_ties_even();
    for (code, x) in out.codes.iter_mut().zip(values) {
        *code = ((x / scale).round_ties_even() + point).clamp(-128.0, 127.0) as i8;
    }
    (out.scales[0], out.points[0]) = (scale, point as i8);
}

/// Multiplies rows of f32 weights by one f32 vector, without quantization.
pub fn dot(weights: &[f32], x: &[f32], out: &mut [f32]) {
    for (row, y) in weights.chunks(x.len()).zip(out) {
        *y = row.iter().zip(x).map(|(w, x)| w * x).sum();
    }
}

/// The state of k-means.
#[derive(Clone, Debug)]
pub struct Means {
    /// One per point.
    pub labels: Vec<u32>,
    /// k rows.
    pub centroids: Vec<f32>,
    /// k rows.
    sums: Vec<f32>,
    /// k counts.
    counts: Vec<u32>,
}

impl Means {
    /// Starts at the first `k` points.
    pub fn new(points: &[f32], dims: usize, k: usize) -> Self {
        Self {
            labels: vec![0; points.len() / dims],
            centroids: points[..k * dims].to_vec(),
            sums: vec![0.0; k * dims],
            counts: vec![0; k],
        }
    }
}

/// Does a step of Lloyd's loop: labels by the least squared distance, then means.
pub fn lloyd_step(points: &[f32], out: &mut Means) {
    let dims = points.len() / out.labels.len();
    out.sums.fill(0.0);
    out.counts.fill(0);
    for (point, label) in points.chunks(dims).zip(&mut out.labels) {
        let mut best = f32::INFINITY;
        for (index, centroid) in out.centroids.chunks(dims).enumerate() {
            let pairs = point.iter().zip(centroid);
            let distance: f32 = pairs.map(|(x, c)| (x - c) * (x - c)).sum();
            if distance < best {
                (best, *label) = (distance, index as u32);
            }
        }
        let index = *label as usize;
        out.counts[index] += 1;
        for (sum, x) in out.sums[index * dims..].iter_mut().zip(point) {
            *sum += x;
        }
    }
    let rows = out.centroids.chunks_mut(dims).zip(out.sums.chunks(dims));
    for ((centroid, sums), &count) in rows.zip(&out.counts) {
        for (c, sum) in centroid.iter_mut().zip(sums) {
            if count > 0 {
                *c = sum / count as f32;
            }
        }
    }
}

/// Returns the `count` rows of largest dot product with a query, best first, with their scores; of largest cosine if
/// `lengths` has the rows' lengths.
pub fn top(
    rows: &[f32],
    lengths: &[f32],
    query: &[f32],
    count: usize,
    out: &mut Vec<(f32, usize)>,
) {
    out.clear();
    for (index, row) in rows.chunks(query.len()).enumerate() {
        let mut score: f32 = row.iter().zip(query).map(|(x, q)| x * q).sum();
        if let Some(length) = lengths.get(index) {
            score /= length;
        }
        if out.len() < count || score > out[count - 1].0 {
            out.truncate(count - 1);
            let place = out.partition_point(|&(other, _)| other >= score);
            out.insert(place, (score, index));
        }
    }
}
