//! A choice among the windows of a text: at random, or evenly over clusters of similar ones.

use rayon::prelude::*;
use serde::Serialize;
use tercet_core::cluster::{ClusterError, normalize};
use tercet_core::number::{counter, log2};

use super::corpus::{Corpus, permuted};
use crate::Error;
use crate::cluster::{KmeansOptions, kmeans};
use crate::parallel::Threads;

/// The random stream for the coordinates of tokens.
const COORDINATES: u32 = 5;
/// The seed of the order in which windows are taken, apart from that of a run's order.
const TAKEN: u64 = 0x7465_7263_6574;
/// Coordinates of a window.
const DIMS: usize = 128;
/// Limit for the steps of k-means.
const STEPS: u32 = 50;

/// Which windows of a text to train on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Selection {
    /// The share of the windows, above 0 and at most 1.
    pub share: f64,
    /// Number of clusters, each of which gives the same number of windows, or all it has. `None` takes windows at
    /// random.
    pub clusters: Option<usize>,
    /// Seed of the choice.
    pub seed: u64,
}

/// The windows of a cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SelectedCluster {
    /// Number of its windows.
    pub windows: u64,
    /// Number of those that were taken.
    pub kept: u64,
}

/// The result of a selection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Selected {
    /// Number of windows in the text.
    pub windows: u64,
    /// Number of those that were taken.
    pub kept: u64,
    /// The clusters, by size; none for a choice at random.
    pub clusters: Vec<SelectedCluster>,
}

impl Corpus {
    /// Keeps a share of the windows to train on; every epoch then uses exactly these, without another start. The held-out
    /// tokens remain. The choice has the same bits on every machine.
    ///
    /// Clusters are those of spherical k-means over 128 coordinates of int8 per window. A window's point is the sum over
    /// its different tokens of log₂(windows / windows with that token), with random signs in four random coordinates
    /// (Weinberger and others, *Feature hashing for large scale multitask learning*, 2009). O(tokens + windows ·
    /// clusters · steps); 128 bytes per window.
    ///
    /// # Errors
    /// [`Error::Options`] for a share that is not above 0 and at most 1, one that leaves no window, and more clusters
    /// than windows or none.
    pub fn select(self, selection: &Selection) -> Result<(Self, Selected), Error> {
        let Selection {
            share,
            clusters,
            seed,
        } = *selection;
        if !(share > 0.0 && share <= 1.0) {
            return Err(Error::options(format!(
                "a share of {share} cannot be kept; it must be above 0 and at most 1"
            )));
        }
        let windows = self.windows();
        let count = (windows as f64 * share) as u64;
        if count == 0 {
            return Err(Error::options(format!(
                "{share} of {windows} windows is less than one; keep a larger share or give more text"
            )));
        }
        if let Some(clusters) =
            clusters.filter(|&clusters| !(1..=windows).contains(&(clusters as u64)))
        {
            return Err(Error::options(format!(
                "{clusters} clusters cannot be made of {windows} windows of the text"
            )));
        }
        let labels = match clusters {
            None => vec![0; windows as usize],
            Some(clusters) => self.labels(clusters, seed).map_err(Error::options)?,
        };
        let mut found = vec![SelectedCluster::default(); clusters.unwrap_or(1)];
        for &label in &labels {
            found[label as usize].windows += 1;
        }
        let mut order: Vec<usize> = (0..found.len()).collect();
        order.sort_by_key(|&cluster| (found[cluster].windows, cluster));
        // The smallest first: what they lack is shared by the larger ones.
        let mut room = vec![0; found.len()];
        let mut left = count;
        for (place, &cluster) in order.iter().enumerate() {
            let equal = left / (order.len() - place) as u64;
            room[cluster] = equal.min(found[cluster].windows);
            left -= room[cluster];
        }
        let mut kept = Vec::new();
        for index in 0..windows {
            let window = permuted(index, windows, seed ^ TAKEN);
            let label = labels[window as usize] as usize;
            if room[label] > 0 {
                room[label] -= 1;
                found[label].kept += 1;
                kept.push(self.numbered(window));
            }
        }
        kept.sort_unstable();
        let selected = Selected {
            windows,
            kept: kept.len() as u64,
            clusters: match clusters {
                None => Vec::new(),
                Some(_) => order.iter().map(|&cluster| found[cluster]).collect(),
            },
        };
        Ok((self.with_windows(kept), selected))
    }

    /// Returns each window's cluster.
    fn labels(&self, clusters: usize, seed: u64) -> Result<Vec<u32>, ClusterError> {
        let mut points = self.points();
        let sphere = normalize(&mut points, DIMS)?;
        let mut options = KmeansOptions::new(clusters);
        options.sphere = Some(sphere);
        options.run.seed = seed;
        options.run.lloyd.max_iter = STEPS;
        let mut engine = Threads::default();
        let found = kmeans(&mut engine, &points, DIMS, None, &options, &mut |_| ())?;
        Ok(found.labels)
    }

    /// Returns the coordinates of all windows.
    fn points(&self) -> Vec<i8> {
        let windows = self.windows() as usize;
        let weights = self.weights(windows);
        let mut points = vec![0; windows * DIMS];
        let rows = points.par_chunks_exact_mut(DIMS).enumerate();
        rows.for_each_init(Vec::new, |tokens, (window, row)| {
            let mut sums = [0i32; DIMS];
            self.different(window, tokens);
            for &mut token in tokens {
                let weight = weights[token as usize];
                let draws = counter(0, COORDINATES, token.into());
                for draw in draws {
                    let sum = &mut sums[draw as usize % DIMS];
                    *sum += if draw >> 31 == 0 { weight } else { -weight };
                }
            }
            let most = sums.iter().map(|sum| sum.abs()).max().unwrap_or(0).max(1);
            for (code, sum) in row.iter_mut().zip(sums) {
                *code = (sum * 127 / most) as i8;
            }
        });
        points
    }

    /// Returns the weight of each token: log₂ of windows / windows with the token, in sixteenths, rounded down.
    fn weights(&self, windows: usize) -> Vec<i32> {
        let mut counts: Vec<usize> = Vec::new();
        let mut tokens = Vec::new();
        for window in 0..windows {
            self.different(window, &mut tokens);
            if let Some(&last) = tokens.last() {
                let count = counts.len().max(last as usize + 1);
                counts.resize(count, 0);
            }
            for &token in &tokens {
                counts[token as usize] += 1;
            }
        }
        let weight = |count: usize| (16.0 * log2(windows as f64 / count.max(1) as f64)) as i32;
        counts.into_iter().map(weight).collect()
    }

    /// Writes a window's tokens into `tokens`, in order and each once.
    fn different(&self, window: usize, tokens: &mut Vec<u32>) {
        tokens.resize(self.context(), 0);
        let window = self.numbered(window as u64) as usize;
        self.copy(window * self.context(), tokens);
        tokens.sort_unstable();
        tokens.dedup();
    }
}
