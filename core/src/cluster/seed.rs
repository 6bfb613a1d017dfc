//! First centroids: k-means++ (Arthur and Vassilvitskii, 2007), plain or greedy, and random points.

use super::ClusterError;
use crate::engine::ClusterProblem;
use crate::number::Random;

/// Largest number of candidates that greedy k-means++ tries per centroid: [`greedy_candidates`] of 2³².
pub const MAX_CANDIDATES: usize = 24;

/// Method that chooses the first centroids.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Init {
    /// Greedy k-means++: each centroid is the best of [`greedy_candidates`] points drawn by k-means++, as in
    /// scikit-learn.
    #[default]
    Greedy,
    /// k-means++ as published: one point per draw, with a probability proportional to w·D².
    PlusPlus,
    /// Distinct points, drawn by weight.
    Random,
    /// The centroids that the problem holds.
    Given,
}

/// Returns the number of candidates that greedy k-means++ tries per centroid: 2 + ⌊ln k⌋, computed with integers.
///
/// The rule of scikit-learn, after Arthur and Vassilvitskii's remark that several candidates help.
pub fn greedy_candidates(k: usize) -> usize {
    // ⌈eʲ⌉ for j = 1 to 22: the smallest k with ⌊ln k⌋ = j.
    const POWERS: [u64; MAX_CANDIDATES - 2] = [
        3,
        8,
        21,
        55,
        149,
        404,
        1_097,
        2_981,
        8_104,
        22_027,
        59_875,
        162_755,
        442_414,
        1_202_605,
        3_269_018,
        8_886_111,
        24_154_953,
        65_659_970,
        178_482_301,
        485_165_196,
        1_318_815_735,
        3_584_912_847,
    ];
    2 + POWERS.iter().filter(|&&power| power <= k as u64).count()
}

/// Chooses the first centroids, each at a point, with draws from `random`.
///
/// Exact: a point is drawn by the integer prefix sums of w·D² (of w for the first point). If every D² is 0, all
/// points coincide with chosen ones, and the lowest point without a cluster is taken. Greedy ties go to the first
/// candidate. [`Init::Given`] does nothing and draws nothing.
///
/// O(n·k·d); for greedy, that times the number of candidates. No scratch.
pub fn seed<P: ClusterProblem>(
    problem: &mut P,
    init: Init,
    random: &mut Random,
) -> Result<(), P::Error> {
    let shape = problem.shape();
    match init {
        Init::Given => Ok(()),
        Init::Random => {
            problem.fill(1)?;
            // Each draw leaves the weights of the points that are not chosen yet. `seed` sets the chosen point's D²
            // to 0.
            let mut rest = shape.weight;
            for cluster in 0..shape.clusters {
                let point = draw(problem, rest, random)?;
                let weight = problem.seed(cluster, point)?;
                rest = rest.saturating_sub(u64::from(weight));
            }
            Ok(())
        }
        Init::PlusPlus => plus_plus(problem, random, draw),
        Init::Greedy => {
            let candidates = greedy_candidates(shape.clusters);
            plus_plus(problem, random, |problem, total, random| {
                best_of(problem, candidates, total, random)
            })
        }
    }
}

/// Chooses the first point by weight, and every other with `choose`, which gets Σ w·D².
fn plus_plus<P: ClusterProblem>(
    problem: &mut P,
    random: &mut Random,
    choose: impl Fn(&mut P, u64, &mut Random) -> Result<usize, P::Error>,
) -> Result<(), P::Error> {
    let shape = problem.shape();
    problem.fill(1)?;
    let first = draw(problem, shape.weight, random)?;
    problem.fill(u32::MAX)?;
    problem.seed(0, first)?;
    let mut total = problem.shorten(0)?;
    for cluster in 1..shape.clusters {
        let point = choose(problem, total, random)?;
        problem.seed(cluster, point)?;
        total = problem.shorten(cluster)?;
    }
    Ok(())
}

/// Draws a point with probability w·D² / `total`; if `total` is 0, returns the lowest unlabelled point.
fn draw<P: ClusterProblem>(
    problem: &mut P,
    total: u64,
    random: &mut Random,
) -> Result<usize, P::Error> {
    let point = if total > 0 {
        problem.pick(random.below(total))?
    } else {
        problem.lowest_unlabelled()?
    };
    // There are at least as many points of positive weight as clusters, so this is an error in the engine.
    point.ok_or_else(|| {
        let shape = problem.shape();
        ClusterError::Clusters {
            clusters: shape.clusters,
            points: shape.points,
        }
        .into()
    })
}

/// Draws candidates and returns the one that leaves the least Σ w·D², the first of equal ones. If `total` is 0, does
/// the same as [`draw`].
fn best_of<P: ClusterProblem>(
    problem: &mut P,
    candidates: usize,
    total: u64,
    random: &mut Random,
) -> Result<usize, P::Error> {
    if total == 0 {
        return draw(problem, total, random);
    }
    let (mut points, mut totals) = ([0; MAX_CANDIDATES], [0; MAX_CANDIDATES]);
    let candidates = candidates.min(MAX_CANDIDATES);
    let (Some(points), Some(totals)) = (points.get_mut(..candidates), totals.get_mut(..candidates))
    else {
        return draw(problem, total, random);
    };
    for point in points.iter_mut() {
        *point = draw(problem, total, random)?;
    }
    problem.potentials(points, totals)?;
    let mut best = (u64::MAX, 0);
    for (&point, &total) in points.iter().zip(totals.iter()) {
        if total < best.0 {
            best = (total, point);
        }
    }
    Ok(best.1)
}
