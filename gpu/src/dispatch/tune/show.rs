//! Pictures of costs.

use tercet_host::report::{Curves, Line, Page, Panel};

use super::case::Shape;
use crate::dispatch::{Costs, Engine, Operation};

/// Numbers of elements to draw, as powers of two.
const POWERS: std::ops::RangeInclusive<u32> = 6..=24;

/// Draws the predicted time of each operation on each engine by the number of elements, on logarithmic scales, with a
/// mark at each size where another engine becomes the fastest. The data is on the host, and the shapes are those that
/// tuning measures with little work per byte.
pub fn curves(costs: &Costs, title: &str, line: &str) -> Page {
    let panels = Operation::ALL
        .into_iter()
        .map(|operation| panel(costs, operation));
    Curves {
        title: title.to_owned(),
        line: line.to_owned(),
        up: "seconds",
        names: ["operation", "engine"],
        panels: panels.collect(),
    }
    .page()
}

fn panel(costs: &Costs, operation: Operation) -> Panel {
    let sizes = || POWERS.map(|power| 1usize << power);
    let seconds = |engine: Engine, elements: usize| {
        let job = Shape::streaming(operation, elements).job(operation);
        Some(costs.get(operation, engine)?.predict(&job).total())
    };
    let lines = Engine::ALL.into_iter().filter_map(|engine| {
        let points = sizes().map(|size| Some((size as f64, seconds(engine, size)?)));
        Some(Line {
            name: engine.name().to_owned(),
            points: points.collect::<Option<_>>()?,
        })
    });
    let marks = crossings(costs, operation).into_iter().skip(1);
    let marks = marks.filter_map(|(size, best)| {
        let time = seconds(best, usize::try_from(size).ok()?)?;
        Some((
            size as f64,
            time,
            format!("{best} from 2^{}", size.max(1).ilog2()),
        ))
    });
    Panel {
        name: operation.name().to_owned(),
        below: "elements",
        lines: lines.collect(),
        marks: marks.collect(),
    }
}

/// Returns the engine with the least predicted time for an operation with its data on the host, and the number of
/// elements from which it is: a power of two, 0 for the first. An engine is replaced by another only if that is a tenth
/// faster.
pub fn crossings(costs: &Costs, operation: Operation) -> Vec<(u64, Engine)> {
    let mut crossings: Vec<(u64, Engine)> = Vec::new();
    for power in POWERS {
        let job = Shape::streaming(operation, 1 << power).job(operation);
        let time = |engine| Some(costs.get(operation, engine)?.predict(&job).total());
        let all = Engine::ORDER
            .into_iter()
            .filter_map(|it| Some((it, time(it)?)));
        let Some((best, least)) = all.min_by(|a, b| a.1.total_cmp(&b.1)) else {
            continue;
        };
        match crossings.last() {
            None => crossings.push((0, best)),
            Some(&(_, before)) if time(before).is_none_or(|it| it > 1.1 * least) => {
                crossings.push((1 << power, best));
            }
            Some(_) => {}
        }
    }
    crossings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_and_engine_is_drawn_and_crossings_are_marked() {
        let page = curves(&Costs::builtin(8), "Costs <of> this", "a machine");
        let svg = page.svg();
        for operation in Operation::ALL {
            assert!(svg.contains(&format!(">{operation}<")), "{operation}");
        }
        for engine in Engine::ALL {
            assert!(svg.contains(&format!(">{engine}<")), "{engine}");
        }
        assert!(svg.contains(">threads from 2^"));
        assert!(svg.contains("Costs &lt;of&gt; this"));
        // The same for the same costs.
        assert_eq!(
            svg,
            curves(&Costs::builtin(8), "Costs <of> this", "a machine").svg()
        );
        let none = curves(&Costs::none(), "none", "");
        assert!(!none.svg().contains("<polyline"));
    }
}
