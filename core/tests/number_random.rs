//! The generator's stream against `rand_xoshiro`'s, and what its draws look like.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use tercet_core::number::Random;

#[test]
fn the_stream_equals_rand_xoshiro() {
    for seed in [0, 1, 7, 0xDEAD_BEEF, 1 << 63, u64::MAX] {
        let mut ours = Random::new(seed);
        let mut theirs = Xoshiro256PlusPlus::seed_from_u64(seed);
        for _ in 0..10_000 {
            assert_eq!(ours.next_u64(), theirs.next_u64());
        }
    }
}

/// Written out too, so that the stream stays should the reference change.
#[test]
fn the_first_draws_are_fixed() {
    let mut random = Random::new(42);
    let draws = [random.next_u64(), random.next_u64(), random.next_u64()];
    let fixed = [
        15_021_278_609_987_233_951,
        5_881_210_131_331_364_753,
        18_149_643_915_985_481_100,
    ];
    assert_eq!(draws, fixed);
    let mut random = Random::new(42);
    let floats = [random.unit_f32(), random.signed_f32(), random.normal()];
    // From the definition, by a program in another language.
    assert_eq!(floats, [0.814_305_1, -0.362_357_97, -1.204_883_6]);
}

#[test]
fn draws_below_n_are_even_and_below_n() {
    let mut random = Random::new(3);
    assert_eq!(random.below(0), 0);
    assert_eq!(random.below(1), 0);
    let mut counts = [0u32; 7];
    for _ in 0..70_000 {
        counts[random.below(7) as usize] += 1;
    }
    // Binomial: 10,000 with a deviation of 93; five of them.
    let even = counts.iter().all(|count| count.abs_diff(10_000) < 465);
    assert!(even, "{counts:?}");
    for _ in 0..1000 {
        let n = random.next_u64().max(1);
        assert!(random.below(n) < n);
    }
    // The high half of the product.
    let draw = Random::new(9).next_u64();
    let high = (u128::from(draw) * 10) >> 64;
    assert_eq!(u128::from(Random::new(9).below(10)), high);
}

#[test]
fn float_draws_lie_in_their_range_on_their_grid() {
    let mut random = Random::new(4);
    let (mut unit_mean, mut signed_mean) = (0.0, 0.0);
    for _ in 0..100_000 {
        let unit = random.unit_f32();
        assert!((0.0..1.0).contains(&unit) && (unit * 16_777_216.0).fract() == 0.0);
        unit_mean += f64::from(unit) / 1e5;
        let signed = random.signed_f32();
        assert!((-1.0..1.0).contains(&signed) && (signed * 16_777_216.0).fract() == 0.0);
        signed_mean += f64::from(signed) / 1e5;
    }
    // Five standard errors: 0.289 / √100,000, and twice that.
    assert!((unit_mean - 0.5).abs() < 0.0046, "{unit_mean}");
    assert!(signed_mean.abs() < 0.0092, "{signed_mean}");
}

#[test]
fn normal_draws_have_the_moments_of_twelve_uniforms() {
    const N: usize = 1_000_000;
    let mut random = Random::new(5);
    let mut moments = [0f64; 4];
    for _ in 0..N {
        let x = f64::from(random.normal());
        assert!(x.abs() < 6.0 && (x * 2_097_152.0).fract() == 0.0);
        for (power, moment) in (1..).zip(&mut moments) {
            *moment += x.powi(power) / N as f64;
        }
    }
    let [mean, variance, third, fourth] = moments;
    // Five standard errors each: 1, √1.9, √14 and √85 over √N.
    assert!(mean.abs() < 0.005, "{mean}");
    assert!((variance - 1.0).abs() < 0.007, "{variance}");
    assert!(third.abs() < 0.019, "{third}");
    assert!((fourth - 2.9).abs() < 0.047, "{fourth}");
}
