//! Quantizers as plain Rust loops: f32 sums, a division and a rounding for each value, no checks.
//!
//! The quantizers take values and the length of a group; all but [`symmetric`] take them as one group.

/// Where quantizers write.
#[derive(Clone, Debug)]
pub struct Codes {
    /// One a value.
    pub codes: Vec<i8>,
    /// One a group.
    pub scales: Vec<f32>,
    /// One a group.
    pub points: Vec<i8>,
}

/// Ternary codes by the mean of |x|.
pub fn abs_mean(values: &[f32], _: usize, out: &mut Codes) {
    let mean = values.iter().map(|x| x.abs()).sum::<f32>() / values.len() as f32;
    for (code, x) in out.codes.iter_mut().zip(values) {
        *code = (x / mean).round().clamp(-1.0, 1.0) as i8;
    }
    out.scales[0] = mean;
}

/// Ternary codes of the least squared error, by sorting all magnitudes and trying every count.
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

/// Symmetric int8 codes with one scale a group.
pub fn symmetric(values: &[f32], len: usize, out: &mut Codes) {
    let groups = values.chunks(len).zip(out.codes.chunks_mut(len));
    for ((values, codes), scale) in groups.zip(&mut out.scales) {
        *scale = values.iter().fold(0.0f32, |max, x| max.max(x.abs())) / 127.0;
        for (code, x) in codes.iter_mut().zip(values) {
            *code = (x / *scale).round_ties_even().clamp(-127.0, 127.0) as i8;
        }
    }
}

/// Affine int8 codes.
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

/// The product without quantization: f32 weights in rows, times one f32 vector.
pub fn dot(weights: &[f32], x: &[f32], out: &mut [f32]) {
    for (row, y) in weights.chunks(x.len()).zip(out) {
        *y = row.iter().zip(x).map(|(w, x)| w * x).sum();
    }
}
