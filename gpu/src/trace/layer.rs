//! Converts spans to events: one event each time that a thread leaves a span.

use std::cell::Cell;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Instant;

use tracing::Subscriber;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use super::{Lane, Recorded};

/// The subscriber layer.
pub(super) struct Spans(pub(super) Arc<Recorded>);

/// A span's fields, as members of a JSON object.
struct Members(String);

/// Times when a span was entered by the threads in it: one after another, because a span of the flows is entered where
/// it is made.
struct Entered(Vec<Instant>);

impl<S: Subscriber + for<'a> LookupSpan<'a>> tracing_subscriber::Layer<S> for Spans {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        if let Some(span) = context.span(id) {
            let mut members = Members(String::new());
            attributes.record(&mut members);
            let mut extensions = span.extensions_mut();
            extensions.insert(members);
            extensions.insert(Entered(Vec::new()));
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(members) = span.extensions_mut().get_mut::<Members>()
        {
            values.record(members);
        }
    }

    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(Entered(times)) = span.extensions_mut().get_mut()
        {
            times.push(Instant::now());
        }
    }

    fn on_exit(&self, id: &Id, context: Context<'_, S>) {
        let now = Instant::now();
        let Some(span) = context.span(id) else { return };
        let mut extensions = span.extensions_mut();
        let Some(start) = extensions.get_mut().and_then(|Entered(times)| times.pop()) else {
            return;
        };
        let members = extensions.get_mut::<Members>();
        let about = members.map_or_else(String::new, |members| members.0.clone());
        let lane = Lane::Thread(thread(&self.0));
        self.0
            .keep(lane, span.name(), start, now.duration_since(start), about);
    }
}

/// Returns the number of this thread.
fn thread(recorded: &Recorded) -> usize {
    thread_local! {
        static NUMBER: Cell<Option<usize>> = const { Cell::new(None) };
    }
    NUMBER.with(|number| {
        number.get().unwrap_or_else(|| {
            let named = std::thread::current().name().map(str::to_owned);
            let worker = rayon::current_thread_index();
            let name = named.or_else(|| worker.map(|index| format!("worker {index}")));
            let new = recorded.number_thread(name.unwrap_or_else(|| "thread".to_owned()));
            number.set(Some(new));
            new
        })
    })
}

impl Members {
    /// Appends a member; `value` is JSON.
    fn push(&mut self, name: &str, value: &str) {
        let gap = if self.0.is_empty() { "" } else { "," };
        let name = serde_json::Value::from(name);
        let _ = write!(self.0, "{gap}{name}:{value}");
    }
}

impl Visit for Members {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.record_str(field, &format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        let value = serde_json::Value::from(value).to_string();
        self.push(field.name(), &value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.push(field.name(), &value.to_string());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.push(field.name(), &value.to_string());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.push(field.name(), if value { "true" } else { "false" });
    }
}
