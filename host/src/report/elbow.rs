//! The report of several clusterings with different k.

use super::chart::{self, Curve, Frame};
use super::page::{self, HEADING, MARGIN, Page, Table, WIDTH};

/// One clustering of the series.
#[derive(Clone, Copy, Debug)]
pub struct Trial {
    /// Number of clusters.
    pub k: usize,
    /// Its inertia.
    pub inertia: f64,
    /// Its mean silhouette, −1 to 1; `None` if it has none, as with one cluster.
    pub silhouette: Option<f64>,
}

/// Clusterings of the same data with different k.
#[derive(Clone, Debug)]
pub struct Elbow<'a> {
    /// The heading.
    pub title: String,
    /// The line below it.
    pub line: String,
    /// Figures by name, for the page.
    pub facts: Vec<(String, String)>,
    /// Sorted by k.
    pub trials: &'a [Trial],
}

/// Px of each chart.
const HEIGHT: f64 = 300.0;
const GAP: f64 = 20.0;

impl Elbow<'_> {
    /// Returns the k with the highest silhouette; if several have it, the smallest.
    pub fn best(&self) -> Option<usize> {
        let mut best: Option<(f64, usize)> = None;
        for trial in self.trials {
            if let Some(value) = trial.silhouette
                && best.is_none_or(|(most, _)| value > most)
            {
                best = Some((value, trial.k));
            }
        }
        best.map(|(_, k)| k)
    }

    /// Draws inertia and silhouette against k, with the highest silhouette marked.
    pub fn page(&self) -> Page {
        let mut body = String::new();
        let inertia: Vec<(f64, f64)> = self
            .trials
            .iter()
            .map(|trial| (trial.k as f64, trial.inertia))
            .collect();
        let silhouette: Vec<(usize, f64)> = self
            .trials
            .iter()
            .filter_map(|trial| Some((trial.k, trial.silhouette?)))
            .collect();
        let best = self.best();
        let mark = silhouette.iter().position(|&(k, _)| Some(k) == best);
        let words = best.map_or_else(String::new, |k| format!("k = {k}"));
        let silhouette: Vec<(f64, f64)> = silhouette
            .into_iter()
            .map(|(k, value)| (k as f64, value))
            .collect();
        let size = (WIDTH - 2.0 * MARGIN, HEIGHT);
        let frame = |place: f64| Frame {
            at: (MARGIN, HEADING + place * (HEIGHT + GAP)),
            size,
        };
        let mut charts = 1.0;
        chart::curve(
            &mut body,
            frame(0.0),
            &Curve {
                name: "Inertia",
                below: "clusters (k)",
                points: &inertia,
                mark: None,
            },
        );
        if !silhouette.is_empty() {
            charts = 2.0;
            chart::curve(
                &mut body,
                frame(1.0),
                &Curve {
                    name: "Silhouette, higher is better",
                    below: "clusters (k)",
                    points: &silhouette,
                    mark: mark.map(|index| (index, words.as_str())),
                },
            );
        }
        let height = charts * (HEIGHT + GAP) - GAP;
        Page {
            svg: page::document(&self.title, &self.line, height, &body),
            title: self.title.clone(),
            facts: self.facts.clone(),
            table: self.table(),
        }
    }

    fn table(&self) -> Table {
        let rows = self.trials.iter().map(|trial| {
            vec![
                trial.k.to_string(),
                format!("{:.6e}", trial.inertia),
                trial
                    .silhouette
                    .map_or_else(|| "–".to_owned(), |value| format!("{value:.4}")),
            ]
        });
        Table {
            caption: "Clusterings",
            columns: vec!["k", "inertia", "silhouette"],
            rows: rows.collect(),
        }
    }
}
