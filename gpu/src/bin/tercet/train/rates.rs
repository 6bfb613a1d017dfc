//! `--find-lr`: a range test of the learning rate, on a model that is then dropped.

use serde::Serialize;
use tercet_host::train::{Batches, RateCurve, RatePoint, RateTest};

use super::Arguments;
use super::material::Material;
use super::texts::Texts;
use crate::failure::Failure;
use crate::format::significant;
use crate::output;
use crate::table::{Align, Table};

/// Maximum number of rows of the table.
const ROWS: usize = 25;
/// Length of the longest bar.
const BAR: f64 = 40.0;

#[derive(Serialize)]
struct Found {
    proposed: Option<f32>,
    least: Option<RatePoint>,
    steps: u64,
}

pub(super) fn run(arguments: &Arguments, steps: u64) -> Result<(), Failure> {
    let material = {
        let texts = Texts::read(&arguments.data, arguments.hold)?;
        Material::new(arguments, &texts)?
    };
    let options = arguments.options(steps, material.parameters);
    let trainer = material.trainer(arguments, &options, |engine| engine)?;
    let batches = Batches::new(&material.corpus, options.batch, 0);
    let test = RateTest {
        steps,
        ..RateTest::DEFAULT
    };
    let curve = trainer.try_rates(&batches, &test)?;
    if arguments.json {
        for point in &curve.points {
            output::json_line(point)?;
        }
        return output::json_line(&Found {
            proposed: curve.proposed(),
            least: curve.least,
            steps: curve.points.len() as u64,
        });
    }
    output::text(&(table(&curve) + &proposal(&curve)))
}

/// Returns the curve as a table, with bars for the smoothed loss.
fn table(curve: &RateCurve) -> String {
    let mut table = Table::new(&[
        ("step", Align::Right),
        ("rate", Align::Right),
        ("loss", Align::Right),
        ("smoothed", Align::Right),
        ("", Align::Left),
    ]);
    let most = curve.points.iter().map(|point| point.smooth);
    let most = most.fold(0.0, f64::max);
    let each = curve.points.len().div_ceil(ROWS).max(1);
    let last = curve.points.len().saturating_sub(1);
    for (index, point) in curve.points.iter().enumerate() {
        let is_least = curve.least.is_some_and(|least| least.step == point.step);
        if index % each != 0 && index != last && !is_least {
            continue;
        }
        let bar = "#".repeat((BAR * point.smooth / most).round() as usize);
        table.row([
            point.step.to_string(),
            significant(point.rate.into()),
            format!("{:.4}", point.loss),
            format!("{:.4}", point.smooth),
            format!("{bar}{}", if is_least { " least" } else { "" }),
        ]);
    }
    table.render()
}

fn proposal(curve: &RateCurve) -> String {
    match (curve.proposed(), &curve.least) {
        (Some(rate), Some(least)) => format!(
            "use: --rate {}, a tenth of the rate with the least smoothed loss, {}\n",
            significant(rate.into()),
            significant(least.rate.into()),
        ),
        _ => "the loss did not fall at any rate; try more steps, as --find-lr=200\n".to_owned(),
    }
}
