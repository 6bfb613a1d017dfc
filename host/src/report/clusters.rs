//! The report of a clustering.

use super::chart::{self, Curve, Frame};
use super::colour;
use super::page::{self, HEADING, MARGIN, Page, Table, WIDTH};
use super::picture::{self, Picture};
use super::projection::{self, Projection};
use super::svg::{circle, rectangle, text};
use crate::points::Points;

/// The content of a clustering's report.
#[derive(Clone, Debug)]
pub struct Clusters<'a> {
    /// The heading.
    pub title: String,
    /// The line below it.
    pub line: String,
    /// Figures by name, for the page.
    pub facts: Vec<(String, String)>,
    /// The clustered points.
    pub points: &'a Points,
    /// The cluster of each point, below k.
    pub labels: &'a [u32],
    /// k centroids with d values each, in the data's own units.
    pub centroids: &'a [f32],
    /// The weight of each cluster; without weights, its number of points.
    pub counts: &'a [u64],
    /// The largest distance of a point of each cluster from its centroid; empty if unknown.
    pub radii: Vec<f64>,
    /// Inertia after each iteration.
    pub curve: Vec<f64>,
    /// How centroids are images, if they are.
    pub picture: Option<Picture>,
}

/// Px of the charts: the projection, and the two beside it.
const PLANE: f64 = 470.0;
const GAP: f64 = 26.0;
/// Maximum number of centroids that are drawn as images.
const PICTURES: usize = 100;
/// Maximum number of centroids with a number in the projection.
const NUMBERED: usize = 32;

impl Clusters<'_> {
    /// Draws the clusters' sizes, the inertia of each iteration, points and centroids on the axes of the centroids'
    /// principal components, and the centroids as images if they are images.
    pub fn page(&self) -> Page {
        let mut body = String::new();
        self.plane(&mut body);
        let left = MARGIN + PLANE + GAP;
        let size = (WIDTH - MARGIN - left, (PLANE - 10.0) / 2.0);
        let curve: Vec<(f64, f64)> = self
            .curve
            .iter()
            .enumerate()
            .map(|(index, &inertia)| ((index + 1) as f64, inertia))
            .collect();
        chart::curve(
            &mut body,
            Frame {
                at: (left, HEADING),
                size,
            },
            &Curve {
                name: "Inertia",
                below: "iteration",
                points: &curve,
                mark: None,
            },
        );
        let below = HEADING + size.1 + 10.0;
        let frame = Frame {
            at: (left, below),
            size,
        };
        chart::bars(
            &mut body,
            frame,
            &format!("{} per cluster", self.unit()),
            self.counts,
        );
        let mut height = PLANE + 10.0;
        if let Some(picture) = self.picture.filter(|p| p.values() == self.points.dims()) {
            height += GAP + self.pictures(&mut body, HEADING + height + GAP, &picture);
        }
        Page {
            svg: page::document(&self.title, &self.line, height, &body),
            title: self.title.clone(),
            facts: self.facts.clone(),
            table: self.table(),
        }
    }

    /// Draws points and centroids on two axes with the same scale.
    fn plane(&self, out: &mut String) {
        let found = projection::project(self.points, self.centroids, self.counts);
        let Projection {
            points, centroids, ..
        } = &found;
        let heading = r#"class="ink" font-weight="bold""#;
        text(
            out,
            (MARGIN, HEADING + 16.0),
            "start",
            heading,
            "Principal components of the centroids",
        );
        let (top, side) = (HEADING + 34.0, PLANE - 34.0);
        let drawn = match (points.len(), self.points.rows()) {
            (drawn, all) if drawn == all => format!("all {all} points"),
            (drawn, all) => format!("{drawn} of {all} points"),
        };
        let held = found.held * 100.0;
        let note = format!("{drawn}; the axes hold {held:.0} % of the centroids' variance");
        text(
            out,
            (MARGIN, top + side + 16.0),
            "start",
            r#"class="faint" font-size="12""#,
            &note,
        );
        rectangle(
            out,
            (MARGIN, top),
            (PLANE, side - 10.0),
            r#"fill="none" class="grid""#,
        );
        let all = || {
            points
                .iter()
                .map(|&(_, x, y)| (x, y))
                .chain(centroids.iter().copied())
        };
        let extent = |of: fn((f64, f64)) -> f64| {
            all()
                .map(of)
                .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
                    (low.min(value), high.max(value))
                })
        };
        let (xs, ys) = (extent(|at| at.0), extent(|at| at.1));
        let free = 24.0;
        let units = f64::max(
            (xs.1 - xs.0) / (PLANE - 2.0 * free),
            (ys.1 - ys.0) / (side - 10.0 - 2.0 * free),
        );
        let units = if units > 0.0 { units } else { 1.0 };
        let middle = (MARGIN + PLANE / 2.0, top + (side - 10.0) / 2.0);
        let place = |x: f64, y: f64| {
            (
                middle.0 + (x - (xs.0 + xs.1) / 2.0) / units,
                middle.1 - (y - (ys.0 + ys.1) / 2.0) / units,
            )
        };
        for &(row, x, y) in points {
            let label = self.labels.get(row).map_or(0, |&label| label as usize);
            let style = format!(r#"fill="{}" fill-opacity="0.55""#, colour::of(label));
            circle(out, place(x, y), 2.2, &style);
        }
        for (index, &(x, y)) in centroids.iter().enumerate() {
            if self.counts.get(index) == Some(&0) {
                continue;
            }
            let style = format!(
                r#"class="edge" stroke-width="1.5" fill="{}""#,
                colour::of(index)
            );
            circle(out, place(x, y), 6.0, &style);
        }
        if centroids.len() <= NUMBERED {
            for (index, &(x, y)) in centroids.iter().enumerate() {
                let (x, y) = place(x, y);
                let style = r#"class="ink halo" font-size="12" font-weight="bold""#;
                text(out, (x + 8.0, y - 6.0), "start", style, &index.to_string());
            }
        }
    }

    fn pictures(&self, out: &mut String, top: f64, picture: &Picture) -> f64 {
        let mut order: Vec<usize> = (0..self.counts.len()).collect();
        let heading = if order.len() > PICTURES {
            order = crate::order::order(order.len(), &|a, b| self.counts[b].cmp(&self.counts[a]));
            order.truncate(PICTURES);
            format!("The centroids of the {PICTURES} largest clusters")
        } else {
            "Centroids".to_owned()
        };
        let style = r#"class="ink" font-weight="bold""#;
        text(out, (MARGIN, top + 6.0), "start", style, &heading);
        let rows: Vec<&[f32]> = self.centroids.chunks(self.points.dims()).collect();
        let values: Vec<&[f32]> = order
            .iter()
            .filter_map(|&index| rows.get(index).copied())
            .collect();
        let captions: Vec<String> = order
            .iter()
            .map(|&index| format!("{index}: {}", self.counts[index]))
            .collect();
        let at = (MARGIN, top + 20.0);
        20.0 + picture::draw(out, at, WIDTH - 2.0 * MARGIN, picture, &values, &captions)
    }

    /// Returns the unit of the counts.
    fn unit(&self) -> &'static str {
        match self.total() == self.points.rows() as u64 {
            true => "Points",
            false => "Weight",
        }
    }

    fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    fn table(&self) -> Table {
        let points = self.total().max(1) as f64;
        let mut columns = vec!["cluster", self.unit(), "share"];
        if !self.radii.is_empty() {
            columns.push("radius");
        }
        let rows = self.counts.iter().enumerate().map(|(index, &count)| {
            let share = format!("{:.2} %", count as f64 / points * 100.0);
            let mut row = vec![index.to_string(), count.to_string(), share];
            row.extend(self.radii.get(index).map(|radius| format!("{radius:.6}")));
            row
        });
        Table {
            caption: "Clusters",
            columns,
            rows: rows.collect(),
        }
    }
}
