//! How much stack a piece of code takes.

/// Measures the deepest stack between two calls of [`Meter::lap`].
///
/// The free stack carries a paint pattern; the highest word that lost it tells how deep the calls went. Bytes that a
/// call reserved and never wrote do not show, so a figure is what was used, not what was set aside.
#[derive(Debug)]
pub struct Meter {
    base: u32,
}

impl Meter {
    /// Starts at the caller's depth.
    pub fn start() -> Self {
        cortex_m_stack::repaint_stack();
        Self {
            base: cortex_m_stack::current_stack_in_use(),
        }
    }

    /// Bytes below the depth of [`Meter::start`] that were written since then or since the last lap.
    pub fn lap(&mut self) -> u32 {
        let deepest = cortex_m_stack::stack_size() - cortex_m_stack::stack_painted();
        cortex_m_stack::repaint_stack();
        deepest.saturating_sub(self.base)
    }
}
