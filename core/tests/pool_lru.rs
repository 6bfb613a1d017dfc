//! The cache against a list in order of use.

use proptest::prelude::*;
use tercet_core::pool::{Lru, Value};

#[derive(Clone, Debug)]
enum Action {
    Get(u8),
    Peek(u8),
    Insert(u8, Vec<u16>),
    Remove(u8),
    Evict,
    Clear,
}

fn steps() -> impl Strategy<Value = Vec<Action>> {
    let key = 0..12_u8;
    let value = prop::collection::vec(any::<u16>(), 0..30);
    let step = prop_oneof![
        6 => key.clone().prop_map(Action::Get),
        2 => key.clone().prop_map(Action::Peek),
        6 => (key.clone(), value).prop_map(|(key, value)| Action::Insert(key, value)),
        2 => key.prop_map(Action::Remove),
        1 => Just(Action::Evict),
        1 => Just(Action::Clear),
    ];
    prop::collection::vec(step, 0..150)
}

/// A key whose hash is the same for all: every entry in one bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Colliding(u8);

impl core::hash::Hash for Colliding {
    fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
        state.write_u32(0);
    }
}

fn elements<const BLOCK: usize>(value: Option<Value<'_, u16, BLOCK>>) -> Option<Vec<u16>> {
    value.map(|value| {
        let elements: Vec<u16> = value.iter().copied().collect();
        assert_eq!(value.len(), elements.len());
        assert_eq!(value.is_empty(), elements.is_empty());
        assert_eq!(value.parts().collect::<Vec<_>>().concat(), elements);
        assert!(value.parts().all(|part| (1..=BLOCK).contains(&part.len())));
        assert_eq!(
            value.as_slice(),
            (value.len() <= BLOCK).then_some(&elements[..])
        );
        for room in [0, 1, BLOCK, value.len(), value.len() + 5] {
            let mut out = vec![0; room];
            let copied = value.copy_to(&mut out);
            assert_eq!(out[..copied], elements[..room.min(value.len())]);
        }
        elements
    })
}

fn follow<K, const BLOCK: usize, const BLOCKS: usize>(
    steps: &[Action],
    key: impl Fn(u8) -> K,
) -> Result<(), TestCaseError>
where
    K: core::hash::Hash + Eq + Copy + core::fmt::Debug,
{
    let mut cache = Lru::<K, u16, BLOCK, BLOCKS>::new(0);
    // The most recently used last.
    let mut model: Vec<(K, Vec<u16>)> = Vec::new();
    let blocks_of = |value: &[u16]| value.len().div_ceil(BLOCK).max(1);
    let in_use = |model: &[(K, Vec<u16>)]| model.iter().map(|(_, v)| blocks_of(v)).sum::<usize>();
    let (mut hits, mut misses, mut evictions, mut failures, mut peak) = (0, 0, 0, 0, 0);
    for step in steps {
        match step {
            Action::Get(k) => {
                let found = model.iter().position(|(other, _)| *other == key(*k));
                match found {
                    Some(at) => {
                        hits += 1;
                        let entry = model.remove(at);
                        model.push(entry);
                    }
                    None => misses += 1,
                }
                let expected = found.and_then(|_| model.last()).map(|(_, v)| v.clone());
                prop_assert_eq!(elements(cache.get(&key(*k))), expected);
            }
            Action::Peek(k) => {
                let found = model.iter().find(|(other, _)| *other == key(*k));
                prop_assert_eq!(
                    elements(cache.peek(&key(*k))),
                    found.map(|(_, v)| v.clone())
                );
            }
            Action::Insert(k, value) => {
                let result = cache.insert(key(*k), value);
                if blocks_of(value) > BLOCKS {
                    failures += 1;
                    prop_assert_eq!(result, Err(key(*k)));
                } else {
                    prop_assert_eq!(result, Ok(()));
                    model.retain(|(other, _)| *other != key(*k));
                    while in_use(&model) + blocks_of(value) > BLOCKS {
                        model.remove(0);
                        evictions += 1;
                    }
                    model.push((key(*k), value.clone()));
                }
            }
            Action::Remove(k) => {
                let found = model.iter().position(|(other, _)| *other == key(*k));
                prop_assert_eq!(cache.remove(&key(*k)), found.is_some());
                found.map(|at| model.remove(at));
            }
            Action::Evict => {
                let oldest = (!model.is_empty()).then(|| model.remove(0).0);
                evictions += u32::from(oldest.is_some());
                prop_assert_eq!(cache.evict(), oldest);
            }
            Action::Clear => {
                model.clear();
                cache.clear();
            }
        }
        peak = peak.max(in_use(&model));
        let keys: Vec<K> = model.iter().rev().map(|(k, _)| *k).collect();
        prop_assert_eq!(cache.keys().copied().collect::<Vec<_>>(), keys);
        prop_assert_eq!(
            (cache.len(), cache.is_empty()),
            (model.len(), model.is_empty())
        );
        for (k, value) in &model {
            prop_assert_eq!(elements(cache.peek(k)), Some(value.clone()));
        }
        let stats = cache.stats();
        prop_assert_eq!(
            (stats.hits, stats.misses, stats.evictions),
            (hits, misses, evictions)
        );
        prop_assert_eq!(stats.bytes.failures, failures);
        prop_assert_eq!(stats.bytes.in_use, in_use(&model) * BLOCK * 2);
        prop_assert_eq!(stats.bytes.high_water, peak * BLOCK * 2);
        prop_assert_eq!(stats.bytes.capacity, BLOCKS * BLOCK * 2);
    }
    Ok(())
}

proptest! {
    #[test]
    fn the_cache_is_a_list_in_order_of_use(steps in steps()) {
        follow::<u8, 1, 1>(&steps, |k| k)?;
        follow::<u8, 8, 3>(&steps, |k| k)?;
        follow::<u64, 4, 16>(&steps, |k| u64::from(k) << 40)?;
        follow::<Colliding, 4, 9>(&steps, Colliding)?;
    }
}

#[test]
fn a_value_is_filled_in_place_and_in_order() {
    let mut cache = Lru::<&str, u32, 4, 3>::new(0);
    let mut starts = Vec::new();
    cache
        .insert_with("ten", 10, |start, part| {
            starts.push((start, part.len()));
            for (index, place) in part.iter_mut().enumerate() {
                *place = (start + index) as u32;
            }
        })
        .unwrap();
    assert_eq!(starts, [(0, 4), (4, 4), (8, 2)]);
    let value = cache.get(&"ten").unwrap();
    assert!(value.into_iter().copied().eq(0..10));
    assert_eq!(value.as_slice(), None);
}

#[test]
fn lengths_near_the_largest_number_are_refused() {
    let mut cache = Lru::<u8, (), 4, 3>::new(());
    for len in [13, usize::MAX - 1, usize::MAX] {
        assert_eq!(cache.insert_with(1, len, |_, _| ()), Err(1));
    }
    assert_eq!(cache.insert_with(1, 12, |_, _| ()), Ok(()));
    assert_eq!(cache.stats().bytes.failures, 3);
}

#[test]
fn a_key_that_owns_memory_is_dropped_with_its_value() {
    let key = std::rc::Rc::new(1);
    let mut cache = Lru::<std::rc::Rc<i32>, u8, 1, 1>::new(0);
    cache.insert(key.clone(), &[1]).unwrap();
    cache.insert(key.clone(), &[2]).unwrap();
    assert_eq!(std::rc::Rc::strong_count(&key), 2);
    cache.insert(std::rc::Rc::new(2), &[3]).unwrap();
    assert_eq!(std::rc::Rc::strong_count(&key), 1);
}

thread_local! {
    static COMPARED: core::cell::Cell<u32> = const { core::cell::Cell::new(0) };
}

/// A key that counts how often it is compared.
#[derive(Clone, Copy, Debug, Eq)]
struct Counted(u16, usize);

impl PartialEq for Counted {
    fn eq(&self, other: &Self) -> bool {
        COMPARED.set(COMPARED.get() + 1);
        (self.0, self.1) == (other.0, other.1)
    }
}

impl core::hash::Hash for Counted {
    fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
        (self.0, self.1).hash(state);
    }
}

#[test]
fn a_full_cache_finds_keys_of_any_stride_in_two_comparisons() {
    let mut cache = Lru::<Counted, u8, 1, 1000>::new(0);
    for stride in [1, 2, 3, 64, 1000, 1024, 4096, 65_536, 1 << 20] {
        cache.clear();
        for index in 0..1000 {
            cache
                .insert(Counted(7, index * stride), &[index as u8])
                .unwrap();
        }
        COMPARED.set(0);
        for index in 0..1000 {
            let value = cache.peek(&Counted(7, index * stride)).unwrap();
            assert_eq!(value.as_slice(), Some(&[index as u8][..]));
        }
        // A random function would need 1 + 999 / 2000 on average.
        let average = f64::from(COMPARED.get()) / 1000.0;
        assert!(average < 2.0, "stride {stride}: {average}");
    }
}
