use core::cell::Cell;
use std::vec::Vec;

use embedded_hal::i2c::{ErrorKind, ErrorType, I2c, Operation};

use super::{Event, LEARN, MEASURE, NETWORK, Node};
use crate::motion::emulated::{Clock, Delay, Pin, Sensor};
use crate::motion::{Activity, App, Error, HOP, Memory, Phase, Recording, Recordings, WINDOW};

/// A sensor at rest, for longer than any test.
static STILL: &[u8] = &[0; 12 * 2000];

/// A bus that can be unplugged.
struct Plug<'a> {
    sensor: Sensor<'a>,
    out: &'a Cell<bool>,
}

impl ErrorType for Plug<'_> {
    type Error = ErrorKind;
}

impl I2c for Plug<'_> {
    fn transaction(&mut self, address: u8, parts: &mut [Operation<'_>]) -> Result<(), ErrorKind> {
        if self.out.get() {
            self.sensor.lose_power();
            return Err(ErrorKind::Bus);
        }
        self.sensor
            .transaction(address, parts)
            .map_err(|_| ErrorKind::Other)
    }
}

/// Returns the events of this many steps. `down` is true for steps with the button down, `out` for steps with the bus
/// unplugged.
fn played(
    steps: usize,
    down: impl Fn(usize) -> bool,
    out: impl Fn(usize) -> bool,
) -> Vec<(usize, Event)> {
    let (clock, mut memory, plug) = (Clock::new(), Memory::new(), Cell::new(false));
    let sensor = Sensor::new(&clock, Recording::new(STILL));
    let bus = Plug { sensor, out: &plug };
    let mut app = App::new(bus, Pin::new(), Delay::new(&clock), &mut memory, NETWORK).unwrap();
    let mut node = Node::default();
    let mut events = Vec::new();
    for step in 0..steps {
        plug.set(out(step));
        events.extend(node.step(&mut app, down(step)).map(|event| (step, event)));
    }
    events
}

fn begun(events: &[(usize, Event)]) -> Vec<(usize, Phase)> {
    let begin = |&(step, event): &(usize, Event)| match event {
        Event::Begin(phase) => Some((step, phase)),
        _ => None,
    };
    events.iter().filter_map(begin).collect()
}

const fn last_of(windows: u32) -> usize {
    WINDOW + (windows as usize - 1) * HOP
}

#[test]
fn phases_follow_by_themselves() {
    let measure = last_of(LEARN);
    let watch = measure + 1 + MEASURE as usize * HOP;
    let events = played(watch + 200, |_| false, |_| false);
    assert_eq!(
        begun(&events),
        [(measure, Phase::Measure), (watch, Phase::Watch)]
    );
    assert_eq!(events.len(), (LEARN + MEASURE) as usize + 2 + 19);
}

#[test]
fn a_button_ends_a_phase_once_for_each_press() {
    // Held from the start, when nothing was learned yet. Then held for a second, twice; the third press while
    // watching.
    let held = [0..10, 60..70, 90..100, 120..130];
    let events = played(
        140,
        |step| held.iter().any(|h| h.contains(&step)),
        |_| false,
    );
    assert_eq!(
        begun(&events),
        [
            (60, Phase::Measure),
            (90, Phase::Watch),
            (120, Phase::Measure)
        ]
    );
}

#[test]
fn an_unplugged_sensor_is_said_each_time_and_the_node_goes_on_when_it_is_back() {
    let events = played(200, |_| false, |step| (70..75).contains(&step));
    for step in 70..75 {
        let kind = ErrorKind::Bus;
        assert!(events.contains(&(step, Event::Failed(Error::Bus { kind }))));
    }
    let windows = |from| {
        let is_window =
            |&&(step, event): &&(usize, Event)| step >= from && matches!(event, Event::Window(_));
        events.iter().filter(is_window).count()
    };
    assert!(windows(0) - windows(70) == 4 && windows(75) > 5);
    assert!(begun(&events).is_empty());
}

#[test]
fn what_is_unlike_the_learned_is_flagged_and_nothing_else() {
    static SAMPLES: &[u8] = include_bytes!("../../data/motion.npy");
    static LABELS: &[u8] = include_bytes!("../../data/motion-labels.npy");
    let all = Recordings::new(SAMPLES, LABELS, 60);
    let of = |activity, number| {
        let (recording, _) = (0..all.len())
            .filter_map(|at| all.get(at))
            .filter(|&(_, label)| label == activity)
            .nth(number)
            .unwrap();
        recording
    };
    // Standing and walking in turn until the node has watched both, then badminton.
    let worn: Vec<_> = (0..16)
        .map(|number| match number {
            14.. => of(Activity::Badminton, number - 14),
            _ if number % 2 == 0 => of(Activity::Standing, number / 2),
            _ => of(Activity::Walking, number / 2),
        })
        .collect();

    let (clock, mut memory) = (Clock::new(), Memory::new());
    let sensor = Sensor::new(&clock, worn[0]);
    let mut app = App::new(sensor, Pin::new(), Delay::new(&clock), &mut memory, NETWORK).unwrap();
    let mut node = Node::default();
    let mut flags = Vec::new();
    for step in 0..16 * 99 {
        if step % 99 == 0 {
            app.i2c().replay(worn[step / 99]);
        }
        if let Some(Event::Window(report)) = node.step(&mut app, false)
            && report.phase == Phase::Watch
        {
            flags.push(report.flagged);
        }
    }
    // The first window that contains samples of badminton.
    assert_eq!(flags.iter().position(|&flagged| flagged), Some(16));
    assert!(flags[16..].iter().all(|&flagged| flagged) && flags.len() > 30);
}
