//! The quantizer's launches: the arguments and the blocks of each kernel.

use tercet_core::number::{Element, Kind, Stats};
use tercet_core::quant::{Applied, Groups, Method, Plan, Rule, ScaleRule};

use super::record;
use crate::engine::{Argument, Cuda, CudaError, DeviceBuffer, LaunchGrid};

/// Threads per block.
pub(super) const THREADS: u32 = 256;
/// Blocks of a launch per multiprocessor: enough to fill it, with some waiting.
const WAVES: u32 = 8;
/// Minimum number of values of a group per block, so that its sum is worth computing.
pub(super) const PIECE: usize = 16 << 10;
/// Maximum number of values of a group for one warp: its lanes have up to 64 each, and there are no barriers.
const SHORT: usize = 2048;
/// Maximum number of values that a warp can sort for the optimum.
const SORTED: usize = 256;
/// Maximum number of values of a group for which a block can search the optimum.
pub(super) const SEARCHED: usize = 1 << 16;

/// Returns the name of a kernel for an element type.
macro_rules! kernel {
    ($name:literal, $element:ty) => {
        match <$element as tercet_core::number::Plain>::KIND {
            Kind::F16 => concat!($name, "_f16"),
            Kind::Bf16 => concat!($name, "_bf16"),
            // There are three element types.
            _ => concat!($name, "_f32"),
        }
    };
}
pub(in crate::engine) use kernel;

/// Groups `first..first + count` of a buffer, `len` values each.
#[derive(Clone, Copy, Debug)]
pub(super) struct GroupRange {
    pub(super) first: usize,
    pub(super) count: usize,
    pub(super) len: usize,
}

impl GroupRange {
    /// All groups of a tensor.
    pub(super) const fn whole(groups: Groups) -> Self {
        Self {
            first: 0,
            count: groups.count,
            len: groups.len,
        }
    }

    /// One group.
    pub(super) const fn alone(len: usize) -> Self {
        Self {
            first: 0,
            count: 1,
            len,
        }
    }

    /// Checks that buffers hold these groups.
    fn check(&self, lens: [usize; 2]) -> Result<(), CudaError> {
        let end = self.first.checked_add(self.count);
        let expected = end
            .and_then(|end| end.checked_mul(self.len))
            .unwrap_or(usize::MAX);
        match lens.into_iter().find(|&found| found < expected) {
            Some(found) => Err(CudaError::Length { expected, found }),
            None => Ok(()),
        }
    }

    /// Returns how blocks share a group: the number of pieces, and the values per piece, a multiple of 16 so that
    /// vectors are whole.
    fn pieces(&self, blocks: usize) -> (usize, usize) {
        let wanted = blocks.div_ceil(self.count.max(1));
        let piece = self.len.div_ceil(wanted).max(PIECE).next_multiple_of(16);
        (self.len.div_ceil(piece).max(1), piece)
    }
}

/// The kinds of work by plans: each has its own kernel, with no more registers than it needs.
#[derive(Clone, Copy, Debug)]
pub(super) enum ApplyKind {
    /// Ternary codes.
    Ternary,
    /// Ternary codes, and the sum of the coded magnitudes.
    Summed,
    /// Codes of a grid.
    Grid,
}

impl ApplyKind {
    const fn ternary(sum: bool) -> Self {
        if sum { Self::Summed } else { Self::Ternary }
    }

    /// Returns the work that the plans of a method need.
    pub(super) fn of(method: Method) -> Self {
        match method {
            Method::Ternary { rule, scale_rule } => Self::ternary(
                scale_rule == ScaleRule::LeastSquares || matches!(rule, Rule::Twn | Rule::Optimal),
            ),
            _ => Self::Grid,
        }
    }

    /// Returns the work that a plan needs.
    pub(super) const fn of_plan(plan: &Plan) -> Self {
        match *plan {
            Plan::Ternary { sum, .. } => Self::ternary(sum),
            Plan::Affine(_) => Self::Grid,
        }
    }
}

/// True if a method is the rule that needs a search.
pub(super) const fn is_optimal(method: Method) -> bool {
    matches!(
        method,
        Method::Ternary {
            rule: Rule::Optimal,
            ..
        }
    )
}

/// Checks that a buffer of records holds `expected` words.
pub(super) fn check(found: usize, expected: usize) -> Result<(), CudaError> {
    if found >= expected {
        Ok(())
    } else {
        Err(CudaError::Length { expected, found })
    }
}

impl Cuda {
    /// Returns the number of blocks that fill the device.
    pub(in crate::engine) fn most_blocks(&self) -> u32 {
        self.multiprocessors.saturating_mul(WAVES)
    }

    /// Adds the statistics of groups to their records, starting with the record number `at`.
    pub(super) fn launch_stats<T: Element>(
        &mut self,
        values: &DeviceBuffer<T>,
        part: GroupRange,
        with_sum: bool,
        records: &mut DeviceBuffer<u64>,
        at: usize,
    ) -> Result<(), CudaError> {
        part.check([values.len(), values.len()])?;
        check(records.len(), (at + part.count) * record::STATS)?;
        let (kernel, teams) = if part.len <= SHORT {
            (kernel!("stats_short", T), 8)
        } else {
            (kernel!("stats", T), 1)
        };
        let most = self.resident_blocks("stats", kernel, THREADS, 0)?;
        let (pieces, piece) = match teams {
            1 => part.pieces(most as usize),
            _ => (1, part.len),
        };
        let grid = LaunchGrid::strided(part.count.saturating_mul(pieces), teams, THREADS, most);
        let arguments = [
            Argument::from(values),
            part.first.into(),
            part.count.into(),
            part.len.into(),
            pieces.into(),
            piece.into(),
            u32::from(with_sum).into(),
            records.at(at * record::STATS),
        ];
        // SAFETY: the groups lie in `values`, which begins at a multiple of 16 bytes and was written; there is a record
        // for each.
        unsafe { self.launch("stats", kernel, grid, &arguments) }
    }

    /// Returns the statistics of one group.
    pub(super) fn group_stats<T: Element>(
        &mut self,
        values: &DeviceBuffer<T>,
        group: usize,
        len: usize,
        with_sum: bool,
    ) -> Result<Stats, CudaError> {
        let part = GroupRange {
            first: group,
            count: 1,
            len,
        };
        let mut records = self.zeros(record::STATS)?;
        self.launch_stats(values, part, with_sum, &mut records, 0)?;
        let mut words = [0; record::STATS];
        self.read(&records, &mut words)?;
        Ok(record::stats(&words, group * len, len))
    }

    /// Computes codes of groups by their plans, which are for this work, and adds the results to their records.
    pub(super) fn launch_apply<T: Element>(
        &mut self,
        values: &DeviceBuffer<T>,
        part: GroupRange,
        (work, plans): (ApplyKind, &DeviceBuffer<u32>),
        codes: &mut DeviceBuffer<i8>,
        records: &mut DeviceBuffer<u64>,
    ) -> Result<(), CudaError> {
        part.check([values.len(), codes.len()])?;
        check(plans.len(), part.count * record::PLAN)?;
        check(records.len(), part.count * record::APPLIED)?;
        let module = kernel!("quantize", T);
        let kernel = match work {
            ApplyKind::Ternary => kernel!("quantize_apply_ternary", T),
            ApplyKind::Summed => kernel!("quantize_apply_summed", T),
            ApplyKind::Grid => kernel!("quantize_apply_grid", T),
        };
        let most = self.resident_blocks(module, kernel, THREADS, 0)?;
        let (pieces, piece) = part.pieces(most as usize);
        let grid = LaunchGrid::strided(part.count.saturating_mul(pieces), 1, THREADS, most);
        let arguments = [
            Argument::from(values),
            part.first.into(),
            part.count.into(),
            part.len.into(),
            pieces.into(),
            piece.into(),
            plans.into(),
            codes.into(),
            records.into(),
        ];
        // SAFETY: the groups lie in `values` and `codes`, which begin at multiples of 16 bytes; there are a plan and a
        // record for each. `codes` and `records` are borrowed alone.
        unsafe { self.launch(module, kernel, grid, &arguments) }
    }

    /// Computes the codes of one group.
    pub(super) fn group_apply<T: Element>(
        &mut self,
        values: &DeviceBuffer<T>,
        group: usize,
        len: usize,
        plan: &Plan,
        codes: &mut DeviceBuffer<i8>,
    ) -> Result<Applied, CudaError> {
        let part = GroupRange {
            first: group,
            count: 1,
            len,
        };
        let plans = self.upload(&record::plan(plan))?;
        let mut records = self.zeros(record::APPLIED)?;
        let work = ApplyKind::of_plan(plan);
        self.launch_apply(values, part, (work, &plans), codes, &mut records)?;
        let mut words = [0; record::APPLIED];
        self.read(&records, &mut words)?;
        Ok(record::applied(&words))
    }

    /// Quantizes whole groups, one team per group; see [`Results`].
    pub(super) fn launch_quantize<T: Element>(
        &mut self,
        values: &DeviceBuffer<T>,
        part: GroupRange,
        method: Method,
        codes: &mut DeviceBuffer<i8>,
        results: &mut Results<'_>,
    ) -> Result<(), CudaError> {
        // `first` is the number of groups before this part, whose values are at the start of the buffer.
        let here = GroupRange { first: 0, ..part };
        here.check([values.len(), codes.len()])?;
        results.check(part.first + part.count)?;
        let optimal = is_optimal(method);
        let short = part.len <= if optimal { SORTED } else { SHORT };
        let kernel = match (method, short) {
            _ if optimal && short => kernel!("quantize_short_optimal", T),
            _ if optimal => kernel!("quantize_optimal", T),
            (Method::Ternary { .. }, true) => kernel!("quantize_short_ternary", T),
            (Method::Ternary { .. }, false) => kernel!("quantize_ternary", T),
            (Method::Symmetric { .. }, true) => kernel!("quantize_short_symmetric", T),
            (Method::Symmetric { .. }, false) => kernel!("quantize_symmetric", T),
            // The methods that also accept a given grid.
            (Method::Affine | Method::Fixed(_), true) => kernel!("quantize_short_affine", T),
            (Method::Affine | Method::Fixed(_), false) => kernel!("quantize_affine", T),
        };
        let module = match optimal {
            true => "quantize_optimal",
            false => kernel!("quantize", T),
        };
        let teams = if short { 8 } else { 1 };
        let most = self.resident_blocks(module, kernel, THREADS, 0)?;
        let (method, scale, grid) = record::method(method);
        let arguments = [
            Argument::from(values),
            part.first.into(),
            part.count.into(),
            part.len.into(),
            method.into(),
            scale.into(),
            grid.into(),
            codes.into(),
            (&mut *results.scales).into(),
            results.zero_points.as_deref().into(),
            (&mut *results.report).into(),
        ];
        let grid = LaunchGrid::strided(part.count, teams, THREADS, most);
        // SAFETY: as in `launch_apply`; scales and zero points hold all groups up to the last of this part, and are
        // borrowed alone.
        unsafe { self.launch(module, kernel, grid, &arguments) }
    }

    /// Computes plans of groups from their records.
    pub(super) fn launch_plan(
        &mut self,
        stats: &DeviceBuffer<u64>,
        groups: Groups,
        method: Method,
        plans: &mut DeviceBuffer<u32>,
        report: &mut DeviceBuffer<u64>,
    ) -> Result<(), CudaError> {
        check(stats.len(), groups.count * record::STATS)?;
        check(plans.len(), groups.count * record::PLAN)?;
        check(report.len(), record::REPORT)?;
        let (method, scale, grid) = record::method(method);
        let arguments = [
            Argument::from(stats),
            groups.count.into(),
            groups.len.into(),
            method.into(),
            scale.into(),
            grid.into(),
            plans.into(),
            report.into(),
        ];
        let grid = LaunchGrid::strided(groups.count, THREADS as usize, THREADS, self.most_blocks());
        // SAFETY: there are a record and a plan for each group; what is written is borrowed alone.
        unsafe { self.launch("quantize", "quantize_plan", grid, &arguments) }
    }

    /// Computes scales of groups after they were applied.
    pub(super) fn launch_finish(
        &mut self,
        stats: &DeviceBuffer<u64>,
        applied: &DeviceBuffer<u64>,
        plans: &DeviceBuffer<u32>,
        groups: Groups,
        method: Method,
        results: &mut Results<'_>,
    ) -> Result<(), CudaError> {
        check(stats.len(), groups.count * record::STATS)?;
        check(applied.len(), groups.count * record::APPLIED)?;
        check(plans.len(), groups.count * record::PLAN)?;
        results.check(groups.count)?;
        let (method, scale, grid) = record::method(method);
        let arguments = [
            Argument::from(stats),
            applied.into(),
            plans.into(),
            groups.count.into(),
            groups.len.into(),
            method.into(),
            scale.into(),
            grid.into(),
            (&mut *results.scales).into(),
            results.zero_points.as_deref().into(),
            (&mut *results.report).into(),
        ];
        let grid = LaunchGrid::strided(groups.count, THREADS as usize, THREADS, self.most_blocks());
        // SAFETY: there are records, a plan, a scale and, if there are any, a zero point for each group; what is
        // written is borrowed alone.
        unsafe { self.launch("quantize", "quantize_finish", grid, &arguments) }
    }
}

/// The other data of a quantized tensor on the device, beside its codes.
#[derive(Debug)]
pub(super) struct Results<'a> {
    pub(super) scales: &'a mut DeviceBuffer<f32>,
    pub(super) zero_points: Option<&'a mut DeviceBuffer<i8>>,
    pub(super) report: &'a mut DeviceBuffer<u64>,
}

impl Results<'_> {
    fn check(&self, groups: usize) -> Result<(), CudaError> {
        check(self.scales.len(), groups)?;
        check(
            self.zero_points
                .as_ref()
                .map_or(groups, |points| points.len()),
            groups,
        )?;
        check(self.report.len(), record::REPORT)
    }
}
