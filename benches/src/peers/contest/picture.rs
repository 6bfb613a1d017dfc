//! Draws rows as a picture.

use super::Row;
use tercet_host::report::{Page, RatioCase, Ratios};

/// Draws a bar for each peer of each case: its time divided by Tercet's.
pub fn picture(title: &str, line: &str, facts: &[(&str, &str)], rows: &[Row]) -> Page {
    let facts = facts
        .iter()
        .map(|&(name, value)| (name.into(), value.into()));
    let cases = rows.iter().map(|row| {
        let others = row.peers.iter();
        let others = others.map(|(peer, seconds, _)| (peer.clone(), seconds / row.seconds));
        RatioCase {
            name: row.name.clone(),
            seconds: row.seconds,
            others: others.collect(),
        }
    });
    let ratios = Ratios {
        title: title.into(),
        line: line.into(),
        facts: facts.collect(),
        cases: cases.collect(),
    };
    ratios.page()
}
