//! The activation between gate and up, and its gradient, with AVX2.

use std::arch::x86_64::*;

use tercet_core::model::Gate;

use super::avx2::exp2_neg_steps;

/// Values per vector.
const LANES: usize = 8;

/// Does [`Gate::apply`] in vectors of 32 bytes, even if there are longer ones: its table look-ups are gathered value by
/// value in any case, and the emulated processor that tests the sets with longer vectors (`.ci/amx`) cannot gather with
/// the registers that they add.
#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
pub(in crate::simd) fn apply(gate: Gate, x: &mut [f32], up: &[f32]) {
    let len = x.len().min(up.len());
    let whole = match gate {
        Gate::Silu => len - len % LANES,
        Gate::SquaredRelu => 0,
    };
    let (vectors, ups) = (&mut x[..whole], &up[..whole]);
    let vectors = vectors.as_chunks_mut::<LANES>().0.iter_mut();
    for (x, up) in vectors.zip(ups.as_chunks::<LANES>().0) {
        // SAFETY: eight values are in each.
        unsafe {
            let value = _mm256_loadu_ps(x.as_ptr());
            let (sigma, _) = sigmoid(value);
            let gated = _mm256_mul_ps(value, sigma);
            let gated = _mm256_mul_ps(gated, _mm256_loadu_ps(up.as_ptr()));
            _mm256_storeu_ps(x.as_mut_ptr(), gated);
        }
    }
    gate.apply(&mut x[whole..], &up[whole..]);
}

/// Does [`tercet_core::train::gate`].
#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
pub(in crate::simd) fn gradient(gate: Gate, x: &mut [f32], up: &mut [f32], dh: &[f32]) {
    let len = x.len().min(up.len()).min(dh.len());
    let whole = match gate {
        Gate::Silu => len - len % LANES,
        Gate::SquaredRelu => 0,
    };
    let vectors = x[..whole].as_chunks_mut::<LANES>().0.iter_mut();
    let ups = up[..whole].as_chunks_mut::<LANES>().0;
    for ((x, up), dh) in vectors.zip(ups).zip(dh[..whole].as_chunks::<LANES>().0) {
        // SAFETY: eight values are in each.
        unsafe {
            let value = _mm256_loadu_ps(x.as_ptr());
            let (sigma, tau) = sigmoid(value);
            let gated = _mm256_mul_ps(value, sigma);
            let slope = _mm256_add_ps(_mm256_set1_ps(1.0), _mm256_mul_ps(value, tau));
            let slope = _mm256_mul_ps(sigma, slope);
            let dh = _mm256_loadu_ps(dh.as_ptr());
            let both = _mm256_mul_ps(dh, _mm256_loadu_ps(up.as_ptr()));
            _mm256_storeu_ps(x.as_mut_ptr(), _mm256_mul_ps(both, slope));
            _mm256_storeu_ps(up.as_mut_ptr(), _mm256_mul_ps(dh, gated));
        }
    }
    tercet_core::train::gate(gate, &mut x[whole..], &mut up[whole..], &dh[whole..]);
}

/// Returns σ and 1 − σ of core's [gate](tercet_core::model::Gate).
#[inline]
#[target_feature(enable = "avx2")]
fn sigmoid(x: __m256) -> (__m256, __m256) {
    let one = _mm256_set1_ps(2_147_483_648.0);
    let magnitude = _mm256_andnot_ps(_mm256_set1_ps(-0.0), x);
    let e = exp2_neg_steps(magnitude);
    // At most 2³¹, of which a signed conversion has the upper and the lower bits: both are exact, and so is all but the
    // sum, which rounds once.
    let high = _mm256_cvtepi32_ps(_mm256_srli_epi32::<16>(e));
    let low = _mm256_cvtepi32_ps(_mm256_and_si256(e, _mm256_set1_epi32(0xFFFF)));
    let e = _mm256_add_ps(_mm256_mul_ps(high, _mm256_set1_ps(65_536.0)), low);
    // False for NaN, as in core.
    let positive = _mm256_cmp_ps::<_CMP_GE_OQ>(x, _mm256_setzero_ps());
    let sum = _mm256_add_ps(one, e);
    (
        _mm256_div_ps(_mm256_blendv_ps(e, one, positive), sum),
        _mm256_div_ps(_mm256_blendv_ps(one, e, positive), sum),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of all sizes, zeros of both signs, and what is not finite.
    fn values() -> Vec<f32> {
        let odd = [
            0.0,
            -0.0,
            f32::INFINITY,
            f32::NEG_INFINITY,
            f32::NAN,
            1e-40,
            22.173,
            22.18,
        ];
        let powers =
            (-40..40).flat_map(|power| [1.0, -1.37, 1.913].map(|x: f32| x * 2f32.powi(power)));
        let even = (-3000..3000).map(|at| at as f32 * 0.0083);
        odd.into_iter().chain(powers).chain(even).collect()
    }

    #[test]
    fn gates_and_their_gradients_have_the_bits_of_plain_loops() {
        if !is_x86_feature_detected!("avx2") || !is_x86_feature_detected!("fma") {
            return;
        }
        let x = values();
        let up: Vec<f32> = x.iter().rev().map(|x| x * 0.37).collect();
        let dh: Vec<f32> = x.iter().map(|x| 1.3 - x * 0.61).collect();
        let bits = |of: &[f32]| -> Vec<u32> {
            let nan = |x: &f32| if x.is_nan() { f32::NAN } else { *x };
            of.iter().map(|x| nan(x).to_bits()).collect()
        };
        for gate in [Gate::Silu, Gate::SquaredRelu] {
            let (mut found, mut expected) = (x.clone(), x.clone());
            // SAFETY: the set runs here.
            unsafe { apply(gate, &mut found, &up) };
            gate.apply(&mut expected, &up);
            assert_eq!(bits(&found), bits(&expected));

            let (mut found, mut expected) = ((x.clone(), up.clone()), (x.clone(), up.clone()));
            // SAFETY: the set runs here.
            unsafe { gradient(gate, &mut found.0, &mut found.1, &dh) };
            tercet_core::train::gate(gate, &mut expected.0, &mut expected.1, &dh);
            assert_eq!(bits(&found.0), bits(&expected.0));
            assert_eq!(bits(&found.1), bits(&expected.1));
        }
    }
}
