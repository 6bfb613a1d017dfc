//! How much faster more threads are than one.

use crate::order::insert;

use super::plot::{self, Field};
use super::{Bench, legend};
use crate::measure::Measured;
use crate::report::axis::Axis;
use crate::report::page::{MARGIN, WIDTH};
use crate::report::svg::{At, circle, polyline, text};

const HEIGHT: f64 = 360.0;
const IDEAL: &str = "#8a8a8a";
const EACH: &str = "#9dbfe6";
const MEDIAN: &str = "#e4572e";

pub(super) fn draw(out: &mut String, y: f64, bench: &Bench<'_>) -> f64 {
    // The backend with the most threads, which also has results with one thread.
    let Some(last) = bench.results.iter().rev().max_by_key(|found| found.threads) else {
        return 0.0;
    };
    let of_backend =
        |found: &&Measured| found.engine == last.engine && found.backend == last.backend;
    let curves: Vec<Vec<(usize, f64)>> = bench
        .cases()
        .iter()
        .filter_map(|case| {
            let mut times = Vec::new();
            for found in case.iter().filter(of_backend) {
                let time = (found.threads, found.seconds);
                insert(&mut times, time, |a, b| a.0.cmp(&b.0));
            }
            let one = times.first().filter(|time| time.0 == 1)?.1;
            let curve = times.iter().map(|&(threads, time)| (threads, one / time));
            (times.len() > 1).then(|| curve.collect())
        })
        .collect();
    let mut counts: Vec<usize> = Vec::new();
    for (count, _) in curves.iter().flatten() {
        if let Err(place) = counts.binary_search(count) {
            counts.insert(place, *count);
        }
    }
    let Some(&most) = counts.last() else {
        return 0.0;
    };
    let field = Field::new(y, HEIGHT);
    let across = Axis::of(
        counts.iter().map(|&count| count as f64),
        0.04,
        field.left,
        field.right,
    );
    let highest = curves.iter().flatten().map(|point| point.1);
    let up = Axis::from_zero(highest.chain([most as f64]), field.floor, field.top);
    let heading = format!("Scaling of {} over threads", last.backend);
    field.words(out, &heading, "times as fast as one thread", "threads");
    for value in up.ticks(5, false) {
        field.level(out, up.at(value), &plot::number(value));
    }
    for &count in &counts {
        field.mark(out, across.at(count as f64), &count.to_string());
    }
    field.ground(out);
    let placed = |curve: &[(usize, f64)]| -> Vec<At> {
        let place = |&(threads, ratio): &(usize, f64)| (across.at(threads as f64), up.at(ratio));
        curve.iter().map(place).collect()
    };
    let stroke = |colour: &str, width: f64| {
        format!(r#"fill="none" stroke="{colour}" stroke-width="{width}""#)
    };
    for curve in &curves {
        polyline(out, &placed(curve), &stroke(EACH, 1.2));
    }
    let ideal: Vec<_> = counts.iter().map(|&count| (count, count as f64)).collect();
    let dashed = stroke(IDEAL, 1.5) + r#" stroke-dasharray="5 4""#;
    polyline(out, &placed(&ideal), &dashed);
    let median = medians(&curves);
    polyline(out, &placed(&median), &stroke(MEDIAN, 2.5));
    for &(threads, ratio) in &median {
        let at = (across.at(threads as f64), up.at(ratio));
        circle(out, at, 3.5, &format!(r#"fill="{MEDIAN}""#));
        if threads > 1 {
            let style = r#"class="ink" font-size="12""#;
            let words = format!("{ratio:.2}×");
            text(out, (at.0 - 8.0, at.1 + 16.0), "end", style, &words);
        }
    }
    let names = [
        ("twice the threads, twice as fast", IDEAL),
        ("median of the operations", MEDIAN),
        ("each operation", EACH),
    ];
    let names = names.map(|(name, colour)| (name.to_owned(), colour.to_owned()));
    let below = y + HEIGHT + 4.0;
    HEIGHT + 4.0 + legend::draw(out, (MARGIN, below), WIDTH - 2.0 * MARGIN, &names)
}

/// Returns the median ratio at each number of threads.
fn medians(curves: &[Vec<(usize, f64)>]) -> Vec<(usize, f64)> {
    let mut all: Vec<(usize, Vec<f64>)> = Vec::new();
    for &(threads, ratio) in curves.iter().flatten() {
        let place = match all.binary_search_by_key(&threads, |of| of.0) {
            Ok(place) => place,
            Err(place) => {
                all.insert(place, (threads, Vec::new()));
                place
            }
        };
        insert(&mut all[place].1, ratio, f64::total_cmp);
    }
    let median = |(threads, ratios): &(usize, Vec<f64>)| (*threads, ratios[ratios.len() / 2]);
    all.iter().map(median).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_median_is_taken_at_each_number_of_threads() {
        let curves = [
            vec![(1, 1.0), (2, 1.5)],
            vec![(1, 1.0), (2, 1.9), (4, 3.0)],
            vec![(1, 1.0), (2, 1.8)],
        ];
        assert_eq!(super::medians(&curves), [(1, 1.0), (2, 1.8), (4, 3.0)]);
    }
}
