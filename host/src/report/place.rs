//! Places a label beside its dot so that it covers nothing.

/// A rectangle: left, top, right, bottom.
#[derive(Clone, Copy, Debug)]
pub(super) struct Area(
    pub(super) f64,
    pub(super) f64,
    pub(super) f64,
    pub(super) f64,
);

/// Height of a label in px.
const HEIGHT: f64 = 16.0;

impl Area {
    /// Returns the square around a dot.
    pub(super) fn around((x, y): (f64, f64), half: f64) -> Self {
        Self(x - half, y - half, x + half, y + half)
    }

    /// Returns how much of this area the other covers; 0 if they are apart.
    pub(super) fn overlap(&self, other: &Self) -> f64 {
        let across = (self.2.min(other.2) - self.0.max(other.0)).max(0.0);
        let down = (self.3.min(other.3) - self.1.max(other.1)).max(0.0);
        across * down
    }

    fn within(&self, field: &Self) -> bool {
        self.0 >= field.0 && self.1 >= field.1 && self.2 <= field.2 && self.3 <= field.3
    }
}

/// Returns the place of a label with this width for the dot at `x`, `y`: within `field`, covering as little as possible
/// of `taken`, and then as near as possible. `None` if no tried place lies within the field.
///
/// Sixteen directions on nine rings around the dot are tried; the side of the label that faces the dot touches the
/// ring.
pub(super) fn place((x, y): (f64, f64), width: f64, field: &Area, taken: &[Area]) -> Option<Area> {
    let mut best: Option<(f64, Area)> = None;
    for ring in 0..9 {
        let away = 11.0 + HEIGHT * f64::from(ring);
        for turn in 0..16 {
            let angle = f64::from(turn) * std::f64::consts::PI / 8.0;
            let left = x + away * angle.cos() - width * (1.0 - angle.cos()) / 2.0;
            let top = y + away * angle.sin() - HEIGHT / 2.0;
            let area = Area(left, top, left + width, top + HEIGHT);
            let covered: f64 = taken.iter().map(|other| area.overlap(other)).sum();
            // One px further away counts as half a px² covered.
            let cost = covered + away * 0.5;
            if area.within(field) && best.is_none_or(|(least, _)| cost < least) {
                best = Some((cost, area));
            }
        }
    }
    best.map(|(_, area)| area)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIELD: Area = Area(0.0, 0.0, 400.0, 300.0);

    #[test]
    fn a_lone_label_stands_right_of_its_dot() {
        let area = place((100.0, 100.0), 50.0, &FIELD, &[]).unwrap();
        assert_eq!((area.0, area.1), (111.0, 92.0));
    }

    #[test]
    fn at_the_edge_it_turns_inwards() {
        let area = place((395.0, 100.0), 50.0, &FIELD, &[]).unwrap();
        assert!(area.2 <= 400.0 && area.0 > 300.0, "{area:?}");
    }

    #[test]
    fn a_crowd_stays_apart() {
        let dots: Vec<(f64, f64)> = (0..12).map(|i| (150.0 + f64::from(i), 150.0)).collect();
        let mut taken: Vec<Area> = dots.iter().map(|&dot| Area::around(dot, 7.0)).collect();
        for dot in dots {
            let area = place(dot, 60.0, &FIELD, &taken).unwrap();
            assert!(
                taken.iter().all(|other| area.overlap(other) == 0.0),
                "{area:?}"
            );
            taken.push(area);
        }
    }

    #[test]
    fn a_label_wider_than_the_field_has_no_place() {
        assert!(place((100.0, 100.0), 500.0, &FIELD, &[]).is_none());
    }
}
