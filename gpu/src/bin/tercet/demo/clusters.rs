//! Clusters the digits without their labels, and measures how well the clusters match the digits.

use serde::Serialize;
use tercet_host::KMeans;
use tercet_host::points::{Points, Values};
use tercet_host::report::{Clusters, Picture};

use super::digits::{self, IMAGES, PIXELS};
use crate::clustering;
use crate::engine::CommandEngine;
use crate::failure::Failure;
use crate::format::significant;
use crate::table::{Align, Table};

/// One cluster per digit.
const K: usize = 10;
/// As in scikit-learn's recipe.
const RESTARTS: u32 = 4;

/// Results of scikit-learn for the same images: name, adjusted Rand index, purity.
///
/// Measured, not quoted: `gpu/tests/reference_demo.rs` runs both with the pinned version and compares these figures
/// with the results. The recipe is that of the user guide's example *A demo of K-Means clustering on the handwritten
/// digits data*: `make_pipeline(StandardScaler(), KMeans(init="k-means++", n_clusters=10, n_init=4, random_state=0))`.
pub(super) const PEERS: [(&str, f64, f64); 2] = [
    ("scikit-learn 1.9.1, the same pixels", 0.657, 0.784),
    (
        "scikit-learn 1.9.1, its recipe: pixels standardized",
        0.469,
        0.625,
    ),
];

/// The result of the clustering.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Outcome {
    k: usize,
    points: usize,
    restarts: u32,
    iterations: u32,
    inertia: f64,
    adjusted_rand: f64,
    purity: f64,
}

/// Clusters all images; also returns the picture.
pub(super) fn run(engine: &mut CommandEngine) -> Result<(Outcome, String), Failure> {
    let pixels = Values::U8(digits::pixels().to_vec());
    let points = Points::new("digits", IMAGES, PIXELS, pixels)?;
    let found = engine.fit(&mut KMeans::new(K).restarts(RESTARTS), &points)?;
    let table = Contingency::new(&found.clustering.labels, digits::labels());
    let outcome = Outcome {
        k: K,
        points: IMAGES,
        restarts: RESTARTS,
        iterations: found.clustering.outcome.iterations,
        inertia: found.inertia,
        adjusted_rand: table.adjusted_rand(),
        purity: table.purity(),
    };
    let stop = clustering::stop(found.clustering.outcome.stop).1;
    let page = Clusters {
        title: "UCI digits, clustered without their labels".to_owned(),
        line: format!(
            "{IMAGES} images, k = {K}: inertia {} ({stop}), adjusted Rand index {:.3}, purity {:.1} %",
            significant(outcome.inertia),
            outcome.adjusted_rand,
            outcome.purity * 100.0
        ),
        facts: Vec::new(),
        points: &points,
        labels: &found.clustering.labels,
        centroids: &found.centroids,
        counts: &found.clustering.counts,
        radii: found.radii(),
        curve: found.curve(),
        picture: Picture::guess(&points),
    }
    .page();
    Ok((outcome, page.svg().to_owned()))
}

/// Describes the outcome beside scikit-learn's.
pub(super) fn people(outcome: &Outcome) -> String {
    let mut table = Table::new(&[
        ("k-means, 10 clusters, best of 4", Align::Left),
        ("adjusted Rand", Align::Right),
        ("purity", Align::Right),
    ]);
    let own = ("tercet, int8", outcome.adjusted_rand, outcome.purity);
    for (name, rand, purity) in [own].into_iter().chain(PEERS) {
        table.row([
            name.to_owned(),
            format!("{rand:.3}"),
            format!("{:.1} %", purity * 100.0),
        ]);
    }
    format!(
        "all {} images clustered without their labels, then compared with them\n\n{}",
        outcome.points,
        table.render()
    )
}

/// Number of images of each digit in each cluster.
#[derive(Debug)]
struct Contingency([[u64; 10]; K]);

impl Contingency {
    /// Counts clusters and digits, both below ten.
    fn new(clusters: &[u32], digits: &[u8]) -> Self {
        let mut table = [[0; 10]; K];
        for (&cluster, &digit) in clusters.iter().zip(digits) {
            table[cluster as usize][usize::from(digit)] += 1;
        }
        Self(table)
    }

    /// Returns the part of the images that show the most frequent digit of their cluster.
    fn purity(&self) -> f64 {
        let most: u64 = self.0.iter().filter_map(|row| row.iter().max()).sum();
        most as f64 / self.0.iter().flatten().sum::<u64>() as f64
    }

    /// Returns the Rand index adjusted for chance (L. Hubert and P. Arabie, *Comparing Partitions*, 1985): 1 for equal
    /// partitions, 0 on average for unrelated ones.
    fn adjusted_rand(&self) -> f64 {
        let pairs = |n: u64| (n * n.saturating_sub(1) / 2) as f64;
        let columns = (0..10).map(|digit| self.0.iter().map(|row| row[digit]).sum::<u64>());
        let both: f64 = self.0.iter().flatten().map(|&n| pairs(n)).sum();
        let rows: f64 = self.0.iter().map(|row| pairs(row.iter().sum())).sum();
        let columns: f64 = columns.map(pairs).sum();
        let expected = rows * columns / pairs(self.0.iter().flatten().sum());
        (both - expected) / ((rows + columns) / 2.0 - expected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_partitions_score_one_whatever_their_names() {
        let digits: Vec<u8> = (0..100).map(|i| i % 10).collect();
        let renamed: Vec<u32> = digits
            .iter()
            .map(|&digit| (u32::from(digit) + 3) % 10)
            .collect();
        let table = Contingency::new(&renamed, &digits);
        assert_eq!((table.purity(), table.adjusted_rand()), (1.0, 1.0));
    }

    #[test]
    fn scores_are_those_worked_out_by_hand() {
        // Clusters {a a b} and {b b}: pairs 1 + 1 in both, 3 + 1 and 1 + 3 in rows and columns, 10 in all.
        let table = Contingency::new(&[0, 0, 0, 1, 1], &[0, 0, 1, 1, 1]);
        assert_eq!(table.purity(), 0.8);
        let expected = 4.0 * 4.0 / 10.0;
        let by_hand = (2.0 - expected) / (4.0 - expected);
        assert!((table.adjusted_rand() - by_hand).abs() < 1e-15);
    }
}
