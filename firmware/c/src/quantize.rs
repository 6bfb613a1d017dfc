//! Quantizes f32 to int8, int4 and ternary codes, and back.

use core::mem::MaybeUninit;

use tercet_core::engine::MagnitudeBin;
use tercet_core::number;
use tercet_core::pool::{Counts, Scope};
use tercet_core::quant::{self, Codes, Groups, Method, QuantError, Rule, ScaleRule, int8};
use tercet_core::scalar::Tensor;

use crate::Status;
use crate::buffer::{In, Out, apart};

/// The rule by which values become -1 and +1.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TernaryRule {
    /// Values of at least half of the largest magnitude, which is the scale: ggml's rule.
    AbsMax = 0,
    /// Values above half of the mean magnitude, which is the scale: BitNet b1.58.
    AbsMean = 1,
    /// Values above 0.7 of the mean magnitude; the scale is the mean of the coded ones: Ternary Weight Networks.
    Twn = 2,
    /// Least squared error of all ternary codes; the scale is the mean of the coded ones.
    Optimal = 3,
}

/// The source of the scale of ternary codes.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TernaryScale {
    /// The rule's own scale.
    Rule = 0,
    /// The scale of least squared error: the mean of the magnitudes that got a code.
    LeastSquares = 1,
}

/// An evenly spaced grid: a code stands for (code - zero_point) * scale.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Grid {
    /// Distance between neighbours, finite and not negative; 0 maps all values to the zero point.
    pub scale: f32,
    /// The code of 0.0, within `low` to `high`.
    pub zero_point: i8,
    /// The smallest code.
    pub low: i8,
    /// The largest code.
    pub high: i8,
}

/// The outcome of quantizing, counted over the groups.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuantizeReport {
    /// Number of groups.
    pub groups: u64,
    /// Number of groups of zeros only: scale 0.
    pub zero: u64,
    /// Number of groups that became zeros because their scale does not fit a float, though some value was not 0.
    pub flushed: u64,
    /// Number of codes other than the zero point.
    pub coded: u64,
    /// Number of values that the grid's ends clipped by at least half a step.
    pub clipped: u64,
    /// With TERCET_STATUS_NOT_FINITE, the index of the first such value; else 0.
    pub not_finite: u64,
}

/// The buffers of a call, as C provided them.
struct Call {
    values: *const f32,
    codes: *mut i8,
    len: usize,
    scales: *mut f32,
    zero_points: *mut i8,
    groups: usize,
    affine: bool,
    scratch: (*mut u64, usize),
    report: *mut QuantizeReport,
}

/// The same buffers, borrowed.
struct Lent<'a> {
    values: &'a [f32],
    codes: &'a mut [i8],
    scales: &'a mut [f32],
    zero_points: &'a mut [i8],
    groups: Groups,
    scratch: &'a mut [MaybeUninit<u8>],
    report: Out<QuantizeReport>,
}

impl Call {
    /// Checks and borrows all of them.
    fn lend<'a>(self) -> Result<Lent<'a>, Status> {
        let (values, codes) = (
            In::new(self.values, self.len)?,
            Out::new(self.codes, self.len)?,
        );
        let scales = Out::new(self.scales, self.groups)?;
        let points = if self.affine { self.groups } else { 0 };
        let zero_points = Out::new(self.zero_points, points)?;
        let scratch = Out::new(self.scratch.0, self.scratch.1)?;
        let report = Out::optional(self.report)?;
        let outputs = [
            codes.span(),
            scales.span(),
            zero_points.span(),
            scratch.span(),
            report.span(),
        ];
        apart(outputs, [values.span()])?;
        let groups = groups_of(self.len, self.groups)?;
        // SAFETY: checked; C vouches that the memory is there and not in use.
        let (values, codes, scales) = unsafe { (values.slice(), codes.slice(), scales.slice()) };
        // SAFETY: as above.
        let (zero_points, scratch) = unsafe { (zero_points.slice(), scratch.bytes()) };
        Ok(Lent {
            values,
            codes,
            scales,
            zero_points,
            groups,
            scratch,
            report,
        })
    }

    /// Runs core's driver.
    fn run(self, method: Method) -> Result<(), Status> {
        let lent = self.lend()?;
        let mut counts = Counts::new();
        let mut scratch = Scope::over(lent.scratch, 0, &mut counts);
        let bins = scratch.left() / size_of::<MagnitudeBin>();
        let bins = scratch.alloc_slice(bins, MagnitudeBin::EMPTY);
        let bins = bins.map_err(|_| Status::Scratch)?;
        let (values, groups) = (lent.values, lent.groups);
        let mut tensor = Tensor::new(values, groups, lent.codes, lent.scales, lent.zero_points)?;
        let done = quant::quantize(&mut tensor, method, bins);
        // SAFETY: `lend` checked it; C vouches that the memory is there and not in use.
        unsafe { lent.report.set(report_of(&done)) };
        done?;
        Ok(())
    }

    /// Does the same as core's driver if a group's grid follows from its values and their largest magnitude. It omits
    /// the exact sums and the search of ternary rules, so that a program of int8 alone does not link them.
    fn run_on_grids(
        self,
        grid_of: impl Fn(&[f32], f32) -> Result<quant::Grid, QuantError>,
    ) -> Result<(), Status> {
        let mut lent = self.lend()?;
        let done = lent.on_grids(grid_of);
        // SAFETY: `lend` checked it; C vouches that the memory is there and not in use.
        unsafe { lent.report.set(report_of(&done)) };
        done?;
        Ok(())
    }
}

impl Lent<'_> {
    fn on_grids(
        &mut self,
        grid_of: impl Fn(&[f32], f32) -> Result<quant::Grid, QuantError>,
    ) -> Result<quant::Report, QuantError> {
        let len = self.groups.len.max(1);
        let mut report = quant::Report::default();
        let mut zero_points = self.zero_points.iter_mut();
        let codes = self.codes.chunks_exact_mut(len);
        let outputs = codes.zip(self.scales.iter_mut());
        let mut before = 0;
        for (values, (codes, scale)) in self.values.chunks_exact(len).zip(outputs) {
            let Some(abs_max) = number::abs_max(values) else {
                let within = number::first_not_finite(values).unwrap_or(0) as u64;
                let index = within.wrapping_add(before);
                return Err(QuantError::NotFinite { index });
            };
            let grid = grid_of(values, abs_max)?;
            let applied = grid.apply(values, codes)?;
            *scale = grid.scale;
            if let Some(zero_point) = zero_points.next() {
                *zero_point = grid.zero_point;
            }
            report.merge(&quant::Report {
                groups: 1,
                zero: u64::from(abs_max == 0.0),
                flushed: u64::from(grid.scale == 0.0 && abs_max != 0.0),
                coded: applied.coded,
                clipped: applied.clipped,
            });
            before = before.wrapping_add(len as u64);
        }
        Ok(report)
    }
}

/// Returns the smallest and the largest of finite values and 0.
fn range(values: &[f32]) -> (f32, f32) {
    // Plain comparisons; which of two zeros is chosen does not matter to a grid.
    values.iter().fold((0.0, 0.0), |(min, max), &x| {
        (if x < min { x } else { min }, if x > max { x } else { max })
    })
}

/// Returns the report for the caller.
fn report_of(done: &Result<quant::Report, QuantError>) -> QuantizeReport {
    match *done {
        Ok(done) => QuantizeReport {
            groups: done.groups,
            zero: done.zero,
            flushed: done.flushed,
            coded: done.coded,
            clipped: done.clipped,
            not_finite: 0,
        },
        Err(QuantError::NotFinite { index }) => QuantizeReport {
            not_finite: index,
            ..QuantizeReport::default()
        },
        Err(_) => QuantizeReport::default(),
    }
}

/// Returns the groups of `len` values in `groups` groups of equal length.
fn groups_of(len: usize, groups: usize) -> Result<Groups, Status> {
    match len.checked_rem(groups) {
        _ if len == 0 => Err(Status::Empty),
        Some(0) => Ok(Groups {
            count: groups,
            len: len.checked_div(groups).unwrap_or(0),
        }),
        _ => Err(Status::Length),
    }
}

/// Quantizes `len` values in `groups` groups of neighbours on symmetric grids: codes -limit to limit, one scale per
/// group.
///
/// `limit` is 127 for int8 and 7 for int4. A group's scale is max|x| / limit. Its codes are x / scale rounded half to
/// even: those of ONNX QuantizeLinear. `codes` holds `len`, `scales` holds `groups`. `report` may be null. Two passes.
///
/// Returns TERCET_STATUS_LENGTH unless `groups` divides `len`; TERCET_STATUS_ARGUMENT for a limit that is not
/// positive; TERCET_STATUS_NOT_FINITE for a NaN or an infinity, and then the outputs are meaningless.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tercet_quantize_symmetric(
    values: *const f32,
    codes: *mut i8,
    len: usize,
    limit: i8,
    scales: *mut f32,
    groups: usize,
    report: *mut QuantizeReport,
) -> Status {
    let call = Call {
        values,
        codes,
        len,
        scales,
        zero_points: core::ptr::null_mut(),
        groups,
        affine: false,
        scratch: (core::ptr::null_mut(), 0),
        report,
    };
    let grid_of = |_: &[f32], abs_max| quant::Grid::symmetric(abs_max, limit);
    Status::of(|| call.run_on_grids(grid_of))
}

/// Quantizes `len` values in `groups` groups of neighbours to int8 with a zero point: codes -128 to 127 over the range
/// of each group, widened to contain 0, as ONNX DynamicQuantizeLinear chooses it.
///
/// `codes` holds `len`, `scales` and `zero_points` hold `groups`. `report` may be null. Two passes. Errors are those
/// of `tercet_quantize_symmetric`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tercet_quantize_affine(
    values: *const f32,
    codes: *mut i8,
    len: usize,
    scales: *mut f32,
    zero_points: *mut i8,
    groups: usize,
    report: *mut QuantizeReport,
) -> Status {
    let call = Call {
        values,
        codes,
        len,
        scales,
        zero_points,
        groups,
        affine: true,
        scratch: (core::ptr::null_mut(), 0),
        report,
    };
    let grid_of = |values: &[f32], _| {
        let (min, max) = range(values);
        quant::Grid::affine(min, max)
    };
    Status::of(|| call.run_on_grids(grid_of))
}

/// Quantizes `len` values in `groups` groups of neighbours to -1, 0 and +1, one scale per group.
///
/// `rule` is a `tercet_ternary_rule`, `scale` a `tercet_ternary_scale`. `codes` holds `len`, `scales` holds `groups`.
/// `report` may be null. `scratch` may be null with `scratch_len` 0, except for the optimal rule with groups of more
/// than 256 values, which needs at least `TERCET_TERNARY_WORDS` words and takes fewer passes with more. For groups of
/// up to 256 values the optimal rule takes 1.2 KiB of stack.
///
/// Errors are those of `tercet_quantize_symmetric`, and TERCET_STATUS_SCRATCH.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tercet_quantize_ternary(
    values: *const f32,
    codes: *mut i8,
    len: usize,
    rule: u32,
    scale: u32,
    scales: *mut f32,
    groups: usize,
    scratch: *mut u64,
    scratch_len: usize,
    report: *mut QuantizeReport,
) -> Status {
    let call = Call {
        values,
        codes,
        len,
        scales,
        zero_points: core::ptr::null_mut(),
        groups,
        affine: false,
        scratch: (scratch, scratch_len),
        report,
    };
    Status::of(|| call.run(ternary(rule, scale)?))
}

fn ternary(rule: u32, scale: u32) -> Result<Method, Status> {
    const ABS_MAX: u32 = TernaryRule::AbsMax as u32;
    const ABS_MEAN: u32 = TernaryRule::AbsMean as u32;
    const TWN: u32 = TernaryRule::Twn as u32;
    const OPTIMAL: u32 = TernaryRule::Optimal as u32;
    const RULE: u32 = TernaryScale::Rule as u32;
    const LEAST_SQUARES: u32 = TernaryScale::LeastSquares as u32;
    Ok(Method::Ternary {
        rule: match rule {
            ABS_MAX => Rule::AbsMax,
            ABS_MEAN => Rule::AbsMean,
            TWN => Rule::Twn,
            OPTIMAL => Rule::Optimal,
            _ => return Err(Status::Argument),
        },
        scale_rule: match scale {
            RULE => ScaleRule::Rule,
            LEAST_SQUARES => ScaleRule::LeastSquares,
            _ => return Err(Status::Argument),
        },
    })
}

/// Quantizes `len` values on one given grid, for example from calibration: x / scale rounded half to even, plus the
/// zero point, within low to high. `report` may be null.
///
/// Returns TERCET_STATUS_ARGUMENT for an invalid grid, and TERCET_STATUS_NOT_FINITE for a NaN or an infinity.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tercet_quantize_fixed(
    values: *const f32,
    codes: *mut i8,
    len: usize,
    grid: *const Grid,
    report: *mut QuantizeReport,
) -> Status {
    let mut scale = 0.0;
    let call = Call {
        values,
        codes,
        len,
        scales: &raw mut scale,
        zero_points: core::ptr::null_mut(),
        groups: 1,
        affine: false,
        scratch: (core::ptr::null_mut(), 0),
        report,
    };
    Status::of(|| {
        let given = In::one(grid)?;
        apart(
            [Out::new(codes, len)?.span(), Out::optional(report)?.span()],
            [given.span()],
        )?;
        // SAFETY: checked, and numbers only; C vouches that it is there.
        let grid = *unsafe { given.value() };
        let grid = quant::Grid {
            scale: grid.scale,
            zero_point: grid.zero_point,
            low: grid.low,
            high: grid.high,
        };
        call.run_on_grids(|_, _| grid.checked())
    })
}

/// Writes `len` values (code - zero point) * scale, in `groups` groups. If `zero_points` is null, all are 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tercet_dequantize(
    codes: *const i8,
    values: *mut f32,
    len: usize,
    scales: *const f32,
    zero_points: *const i8,
    groups: usize,
) -> Status {
    Status::of(|| {
        let (codes, values) = (In::new(codes, len)?, Out::new(values, len)?);
        let scales = In::new(scales, groups)?;
        let points = if zero_points.is_null() { 0 } else { groups };
        let zero_points = In::new(zero_points, points)?;
        apart(
            [values.span()],
            [codes.span(), scales.span(), zero_points.span()],
        )?;
        let groups = groups_of(len, groups)?;
        // SAFETY: checked; C vouches that the memory is there and not in use.
        let (codes, values) = unsafe { (codes.slice(), values.slice()) };
        // SAFETY: as above.
        let (scales, zero_points) = unsafe { (scales.slice(), zero_points.slice()) };
        let codes = Codes {
            groups,
            codes,
            scales,
            zero_points,
        };
        Ok(int8::dequantize(codes, values)?)
    })
}

/// Words of scratch that the optimal ternary rule needs for groups of more than 256 values.
pub const TERCET_TERNARY_WORDS: usize = 256;

const _: () = assert!(
    TERCET_TERNARY_WORDS * 8 == quant::optimal::MIN_BINS * size_of::<MagnitudeBin>(),
    "the constant is for C, whose header holds a number"
);
