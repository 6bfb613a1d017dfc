//! `tercet network`: makes integer networks from float models, and runs them.

mod build;
mod run;

pub(crate) use build::built;
pub(crate) use run::{answers, digest};

use tercet_core::linear::network::LayerSize;
use tercet_gpu::dispatch::Job;

use crate::engine;
use crate::failure::Failure;

/// Make an integer network for a microcontroller, and run it here with the same bits
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Build(build::Arguments),
    Run(run::Arguments),
}

impl Arguments {
    /// Returns the requested engine.
    pub(crate) const fn engine(&self) -> &engine::Named {
        match &self.command {
            Command::Build(arguments) => &arguments.engine,
            Command::Run(arguments) => &arguments.engine,
        }
    }
}

/// Returns the products of layers with so many points: each a matrix by a matrix, or by one vector.
fn job(layers: &[LayerSize], points: usize) -> Job {
    let none = Job::products(0, 0, 0, points).with_items(0);
    layers.iter().fold(none, |all, size| {
        let LayerSize { layout, rows, cols } = *size;
        // A layer that is refused is not multiplied.
        let bytes = layout.bytes(rows, cols).unwrap_or(0);
        let layer = Job::products(rows, cols, bytes, points);
        Job {
            elements: all.elements.saturating_add(layer.elements),
            bytes_in: all.bytes_in.saturating_add(layer.bytes_in),
            bytes_out: all.bytes_out.saturating_add(layer.bytes_out),
            work: all.work.saturating_add(layer.work),
            items: all.items.saturating_add(layer.items),
            ..all
        }
    })
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    match &arguments.command {
        Command::Build(arguments) => build::run(arguments),
        Command::Run(arguments) => run::run(arguments),
    }
}

#[cfg(test)]
mod tests {
    use tercet_core::linear::Layout;
    use tercet_gpu::dispatch::Operation;

    use super::*;

    #[test]
    fn a_job_is_the_sum_of_its_layers() {
        // For three points, with 2 bits per weight and with 8.
        let layers = [
            LayerSize::new(Layout::TernaryLanes, 32, 64),
            LayerSize::new(Layout::Int8, 10, 32),
        ];
        let three = job(&layers, 3);
        let expected = Job {
            operation: Operation::Matmul,
            elements: 2048 + 320,
            bytes_in: 512 + 3 * 64 + 320 + 3 * 32,
            bytes_out: 4 * 3 * (32 + 10),
            work: 3 * (2048 + 320),
            items: 3 + 3,
            ..three
        };
        assert_eq!(three, expected);
        let one = job(&layers, 1);
        // One item per row of weights.
        assert_eq!((one.operation, one.items), (Operation::Matvec, 42));
        assert_eq!(one.work, 2048 + 320);
    }
}
