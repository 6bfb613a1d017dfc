//! Figures of the time between two moments.

use super::{BoundSeconds, EngineMetrics, Metrics};
use crate::dispatch::Bound;

impl Metrics {
    /// Returns the work since `earlier`, which are figures of the same dispatcher: the difference of each field, with
    /// only the operations and engines that did any work.
    pub fn since(&self, earlier: &Self) -> Self {
        let engines = self.engines.iter().map(|it| {
            let before = earlier.of(it.operation, it.engine);
            before.map_or_else(|| it.clone(), |before| it.since(before))
        });
        Self {
            calls: self.calls.wrapping_sub(earlier.calls),
            seconds: less(self.seconds, earlier.seconds),
            elements: self.elements.wrapping_sub(earlier.elements),
            bytes: self.bytes.wrapping_sub(earlier.bytes),
            refused: self.refused.wrapping_sub(earlier.refused),
            fallbacks: self.fallbacks.wrapping_sub(earlier.fallbacks),
            engines: engines
                .filter(|it| it.calls > 0 || it.failures > 0)
                .collect(),
        }
    }
}

/// Counters never decrease, but rounding can make the difference of their sums negative.
pub(super) fn less(now: f64, before: f64) -> f64 {
    (now - before).max(0.0)
}

impl EngineMetrics {
    fn since(&self, before: &Self) -> Self {
        let count = |of: fn(&Self) -> u64| of(self).wrapping_sub(of(before));
        let calls = count(|it| it.calls);
        let seconds = less(self.seconds, before.seconds);
        let flow_seconds = less(self.flow_seconds, before.flow_seconds);
        let judged = less(seconds, flow_seconds);
        let off = less(self.off_seconds(), before.off_seconds());
        let mut bound_seconds = BoundSeconds::default();
        for bound in Bound::ALL {
            let (now, before) = (&self.bound_seconds, &before.bound_seconds);
            *bound_seconds.of_mut(bound) = less(now.of(bound), before.of(bound));
        }
        let latencies = self.latencies.iter().zip(&before.latencies);
        Self {
            operation: self.operation,
            engine: self.engine,
            calls,
            seconds,
            average_seconds: seconds / calls.max(1) as f64,
            elements: count(|it| it.elements),
            bytes: count(|it| it.bytes),
            work: count(|it| it.work),
            predicted_seconds: less(self.predicted_seconds, before.predicted_seconds),
            flows: count(|it| it.flows),
            flow_seconds,
            error: if judged > 0.0 { off / judged } else { 0.0 },
            launch_bound: count(|it| it.launch_bound),
            transfer_bound: count(|it| it.transfer_bound),
            memory_bound: count(|it| it.memory_bound),
            compute_bound: count(|it| it.compute_bound),
            bound_seconds,
            failures: count(|it| it.failures),
            finished: count(|it| it.finished),
            latencies: latencies
                .map(|(now, before)| now.wrapping_sub(*before))
                .collect(),
        }
    }
}
