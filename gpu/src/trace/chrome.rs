//! Events in Chrome's trace event format: "JSON Object Format" with complete events (`ph` X) and names (`ph` M), times
//! in microseconds.

use std::io::{self, Write};
use std::time::Duration;

use serde_json::Value;

use super::{Event, Lane, Recorded};

/// The processor's number among processes, each of which viewers show as a group; devices come after it.
const PROCESSOR: usize = 1;

/// Returns the process and thread of a lane.
fn place(lane: Lane) -> (usize, usize) {
    match lane {
        Lane::Thread(number) => (PROCESSOR, number + 1),
        #[cfg(feature = "cuda")]
        Lane::Kernels(device) => (PROCESSOR + 1 + device, 1),
        #[cfg(feature = "cuda")]
        Lane::CopiesIn(device) => (PROCESSOR + 1 + device, 2),
        #[cfg(feature = "cuda")]
        Lane::CopiesOut(device) => (PROCESSOR + 1 + device, 3),
    }
}

/// Writes all events.
pub(super) fn write(recorded: &Recorded, out: &mut impl Write) -> io::Result<()> {
    let kept = recorded.lock();
    write!(out, r#"{{"displayTimeUnit":"ms","traceEvents":["#)?;
    name(out, "process_name", (PROCESSOR, 0), "processor")?;
    for (number, thread) in kept.threads.iter().enumerate() {
        write!(out, ",")?;
        name(out, "thread_name", place(Lane::Thread(number)), thread)?;
    }
    for (ordinal, device) in &kept.devices {
        let process = PROCESSOR + 1 + ordinal;
        write!(out, ",")?;
        name(
            out,
            "process_name",
            (process, 0),
            &format!("device {ordinal}: {device}"),
        )?;
        for (thread, words) in [(1, "kernels"), (2, "copies in"), (3, "copies out")] {
            write!(out, ",")?;
            name(out, "thread_name", (process, thread), words)?;
        }
    }
    for event in &kept.events {
        writeln!(out, ",")?;
        complete(out, event)?;
    }
    writeln!(out, r#"],"otherData":{{"left_out":{}}}}}"#, kept.left_out)
}

fn name(
    out: &mut impl Write,
    what: &str,
    (process, thread): (usize, usize),
    words: &str,
) -> io::Result<()> {
    let words = Value::from(words);
    write!(
        out,
        r#"{{"ph":"M","pid":{process},"tid":{thread},"name":"{what}","args":{{"name":{words}}}}}"#
    )
}

fn complete(out: &mut impl Write, event: &Event) -> io::Result<()> {
    let (process, thread) = place(event.lane);
    let (start, length) = (microseconds(event.start), microseconds(event.length));
    let (name, about) = (Value::from(event.name), &event.about);
    write!(
        out,
        r#"{{"ph":"X","pid":{process},"tid":{thread},"ts":{start},"dur":{length},"name":{name},"args":{{{about}}}}}"#
    )
}

/// Formats microseconds, to the nanosecond.
fn microseconds(time: Duration) -> String {
    let nanoseconds = time.as_nanos();
    format!("{}.{:03}", nanoseconds / 1000, nanoseconds % 1000)
}

#[cfg(test)]
mod tests {
    use super::super::Kept;
    use super::*;
    use std::sync::Mutex;
    use std::time::Instant;

    #[test]
    fn what_is_written_is_json_with_a_row_for_each_lane() {
        let begun = Instant::now();
        let kept = Kept {
            threads: vec!["main \"one\"".to_owned()],
            ..Kept::default()
        };
        let recorded = Recorded {
            begun,
            kept: Mutex::new(kept),
        };
        let length = Duration::from_nanos(1_234_567);
        let start = begun + Duration::from_micros(5);
        let about = r#""values":3"#.to_owned();
        recorded.keep(Lane::Thread(0), "encode", start, length, about);
        let mut out = Vec::new();
        write(&recorded, &mut out).unwrap();
        let json: Value = serde_json::from_slice(&out).unwrap();
        let events = json["traceEvents"].as_array().unwrap();
        assert_eq!(events.len(), 3);
        assert_eq!(events[1]["args"]["name"], "main \"one\"");
        let event = &events[2];
        assert_eq!((&event["ph"], &event["tid"]), (&"X".into(), &1.into()));
        assert_eq!(
            (&event["ts"], &event["dur"]),
            (&5.0.into(), &1234.567.into())
        );
        assert_eq!(event["args"]["values"], 3);
        assert_eq!(json["otherData"]["left_out"], 0);
    }
    #[cfg(feature = "cuda")]
    #[test]
    fn what_rounding_makes_overlap_on_a_device_follows_and_what_else_overlaps_stays() {
        let begun = Instant::now();
        let recorded = Recorded {
            begun,
            kept: Mutex::default(),
        };
        let length = Duration::from_millis(1);
        let end = Duration::from_secs(1) + length;
        for (lane, start) in [
            (Lane::Kernels(0), Duration::from_secs(1)),
            // Another row has its own order.
            (Lane::CopiesIn(0), Duration::from_secs(1)),
            (Lane::Kernels(0), end - Duration::from_nanos(300)),
            (Lane::Kernels(0), end),
        ] {
            recorded.keep(lane, "kernel", begun + start, length, String::new());
        }
        let starts: Vec<_> = recorded.lock().events.iter().map(|it| it.start).collect();
        let second = Duration::from_secs(1);
        // The third moved behind the first; the fourth begins a whole length before its end, which is no rounding.
        let behind = end + Duration::from_nanos(1);
        assert_eq!(starts, [second, second, behind, end]);
    }
}
