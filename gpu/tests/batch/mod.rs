//! The queue with threads: what is grouped, what is refused, what fails, and that every request ends once.

mod costed;
mod engines;
mod faults;
mod flood;
mod gate;
mod queue;
mod workers;
