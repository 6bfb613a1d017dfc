//! The sliding window against a queue that drops its front.

use std::collections::VecDeque;

use proptest::prelude::*;
use tercet_core::pool::Ring;

#[derive(Clone, Debug)]
enum Action {
    Push(u32),
    Advance(u32),
    Clear,
    Change(usize, u32),
}

fn steps() -> impl Strategy<Value = Vec<Action>> {
    let step = prop_oneof![
        8 => any::<u32>().prop_map(Action::Push),
        4 => any::<u32>().prop_map(Action::Advance),
        1 => Just(Action::Clear),
        2 => (0..12_usize, any::<u32>()).prop_map(|(age, value)| Action::Change(age, value)),
    ];
    prop::collection::vec(step, 0..200)
}

/// Runs the steps on a ring and on its model, and compares all that can be seen after each.
fn follow<const SLOTS: usize>(steps: &[Action]) -> Result<(), TestCaseError> {
    let mut ring = Ring::<u32, SLOTS>::new(0);
    let mut model = VecDeque::new();
    let (mut end, mut peak) = (0_u64, 0);
    for step in steps {
        match *step {
            Action::Push(value) => {
                let evicted = if model.len() == SLOTS {
                    model.pop_front()
                } else {
                    None
                };
                model.push_back(value);
                end += 1;
                prop_assert_eq!(ring.push(value), evicted);
            }
            Action::Advance(value) => {
                let evicted = if model.len() == SLOTS {
                    model.pop_front()
                } else {
                    None
                };
                model.push_back(value);
                end += 1;
                let slot = ring.advance();
                if let Some(evicted) = evicted {
                    prop_assert_eq!(*slot, evicted);
                }
                *slot = value;
            }
            Action::Clear => {
                model.clear();
                ring.clear();
            }
            Action::Change(age, value) => {
                let place = model.iter_mut().rev().nth(age);
                prop_assert_eq!(ring.get_mut(age).is_some(), place.is_some());
                if let (Some(a), Some(b)) = (ring.get_mut(age), place) {
                    (*a, *b) = (value, value);
                }
            }
        }
        peak = peak.max(model.len());
        let held: Vec<u32> = model.iter().copied().collect();
        prop_assert_eq!(ring.len(), held.len());
        prop_assert_eq!(ring.is_empty(), held.is_empty());
        prop_assert_eq!(ring.is_full(), held.len() == SLOTS);
        prop_assert_eq!(ring.positions(), end - held.len() as u64..end);
        prop_assert_eq!(ring.gone(), end - held.len() as u64);
        prop_assert_eq!(ring.stats().high_water, peak);
        prop_assert_eq!(ring.iter().copied().collect::<Vec<_>>(), held.clone());
        prop_assert!(ring.iter().rev().eq(held.iter().rev()));
        let (old, new) = ring.as_slices();
        prop_assert_eq!([old, new].concat(), held.clone());
        prop_assert!(!old.is_empty() || new.len() == held.len());
        let (old, new) = ring.as_mut_slices();
        prop_assert_eq!([&*old, &*new].concat(), held.clone());
        prop_assert_eq!(ring.latest(), held.last());
        prop_assert_eq!(ring.oldest(), held.first());
        for age in 0..SLOTS + 2 {
            prop_assert_eq!(ring.get(age), held.iter().rev().nth(age));
            let window = ring.window(age).map(|(a, b)| [a, b].concat());
            let start = held.len().checked_sub(age);
            prop_assert_eq!(window, start.map(|start| held[start..].to_vec()));
            let mut out = vec![0; age];
            let copied = ring.copy_to(&mut out);
            prop_assert_eq!(copied, age.min(held.len()));
            prop_assert_eq!(&out[..copied], &held[held.len() - copied..]);
        }
        for position in 0..end + 2 {
            let index = position.checked_sub(end - held.len() as u64);
            let value = index.and_then(|index| held.get(index as usize));
            prop_assert_eq!(ring.at(position), value);
        }
        prop_assert_eq!(ring.at(u64::MAX), None);
    }
    Ok(())
}

proptest! {
    #[test]
    fn the_ring_is_a_queue_that_drops_its_front(steps in steps()) {
        follow::<1>(&steps)?;
        follow::<2>(&steps)?;
        follow::<7>(&steps)?;
        follow::<8>(&steps)?;
    }

    #[test]
    fn flat_slices_are_the_rows_in_order(rows in prop::collection::vec(any::<[i8; 3]>(), 0..20)) {
        let mut ring = Ring::<[i8; 3], 6>::new([0; 3]);
        for row in &rows {
            ring.push(*row);
        }
        let (old, new) = ring.as_flat_slices();
        let newest = &rows[rows.len().saturating_sub(6)..];
        prop_assert_eq!([old, new].concat(), newest.concat());
    }
}

#[test]
fn values_that_own_memory_are_dropped_once() {
    let mut ring = Ring::<Option<Box<u32>>, 3>::from_slots([const { None }; 3]);
    for number in 0..10 {
        let evicted = ring.push(Some(Box::new(number)));
        assert_eq!(evicted, number.checked_sub(3).map(|n| Some(Box::new(n))));
    }
}

#[test]
fn a_ring_of_types_without_size_counts() {
    let mut ring = Ring::<(), 4>::new(());
    for _ in 0..1000 {
        ring.push(());
    }
    assert_eq!((ring.len(), ring.positions()), (4, 996..1000));
}
