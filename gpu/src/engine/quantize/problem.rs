//! A tensor that the engine quantizes.

use std::fmt;
use std::mem;

use tercet_core::engine::{MagnitudeBin, MagnitudeSpan, Output, QuantizeProblem};
use tercet_core::number::{Element, Stats, bits};
use tercet_core::quant::{Applied, Groups, Method, Plan, QuantError, Report, quantize_in_order};

use super::DeviceCodes;
use super::beside::{Beside, read_report};
use super::launches::{GroupRange, SEARCHED, is_optimal};
use super::output::{check, set_scale};
use super::record;
use super::through::chunks;
use crate::engine::{Cuda, CudaError, DeviceBuffer, Item};

/// A tensor while the engine quantizes it: the problem that [`tercet_core::quant::quantize`] runs over.
///
/// [`QuantizeProblem::quantize_groups`] quantizes all groups in one launch, while values are copied to the device and
/// codes back, or in four launches if groups are few and long. With the optimal rule, groups that are few and long, or
/// longer than 65,536 values, are quantized one by one, in a few launches each. The other steps upload the tensor once;
/// if the device has no room for it, its groups pass through in chunks at each step.
pub struct CudaTensor<'a, T: Element> {
    pub(super) cuda: &'a mut Cuda,
    pub(super) groups: Groups,
    place: TensorState<'a, T>,
}

/// Places of values and codes.
enum TensorState<'a, T: Element> {
    /// On the host; `streams` is true once it is known that they do not fit the device.
    Host {
        values: &'a [T],
        out: Output<'a>,
        streams: bool,
    },
    /// Copied to the device, where codes stay until [`QuantizeProblem::finish`].
    Copied {
        values: DeviceBuffer<T>,
        codes: DeviceBuffer<i8>,
        out: Output<'a>,
    },
    /// The caller's buffers on the device; scales that were set one by one stay on the host until the end.
    Resident {
        values: &'a DeviceBuffer<T>,
        out: &'a mut DeviceCodes,
        scales: Vec<f32>,
        zero_points: Vec<i8>,
    },
}

impl<'a, T: Element> CudaTensor<'a, T> {
    pub(super) fn of_host(
        cuda: &'a mut Cuda,
        values: &'a [T],
        groups: Groups,
        out: Output<'a>,
    ) -> Result<Self, CudaError> {
        check(values.len(), groups, &out)?;
        Ok(Self::unchecked(cuda, values, groups, out))
    }

    /// Returns a range of a longer group, as a group of its own without a scale.
    pub(super) fn of_range(cuda: &'a mut Cuda, values: &'a [T], codes: &'a mut [i8]) -> Self {
        let (count, len) = (1, values.len());
        let out = Output {
            codes,
            scales: &mut [],
            zero_points: &mut [],
        };
        Self::unchecked(cuda, values, Groups { count, len }, out)
    }

    const fn unchecked(
        cuda: &'a mut Cuda,
        values: &'a [T],
        groups: Groups,
        out: Output<'a>,
    ) -> Self {
        let place = TensorState::Host {
            values,
            out,
            streams: false,
        };
        Self {
            cuda,
            groups,
            place,
        }
    }

    pub(super) fn of_device(
        cuda: &'a mut Cuda,
        values: &'a DeviceBuffer<T>,
        out: &'a mut DeviceCodes,
    ) -> Result<Self, CudaError> {
        let groups = out.groups();
        groups.check(values.len())?;
        let place = TensorState::Resident {
            values,
            out,
            scales: Vec::new(),
            zero_points: Vec::new(),
        };
        Ok(Self {
            cuda,
            groups,
            place,
        })
    }

    /// Copies the values to the device unless they are there or known not to fit.
    fn settle(&mut self) -> Result<(), CudaError> {
        let TensorState::Host {
            values,
            out,
            streams,
        } = &mut self.place
        else {
            return Ok(());
        };
        if *streams {
            return Ok(());
        }
        let copied = self.cuda.upload(values);
        let room = self.cuda.zeros(values.len());
        match copied.and_then(|values| Ok((values, room?))) {
            Ok((values, codes)) => {
                let empty = Output {
                    codes: &mut [],
                    scales: &mut [],
                    zero_points: &mut [],
                };
                let out = mem::replace(out, empty);
                self.place = TensorState::Copied { values, codes, out };
            }
            Err(error) if error.is_out_of_memory() => *streams = true,
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Checks a group's number, and returns its start.
    fn start(&self, group: usize) -> Result<usize, QuantError> {
        let count = self.groups.count;
        if group < count {
            Ok(group * self.groups.len)
        } else {
            Err(QuantError::NoGroup { group, count })
        }
    }

    fn stats_of(&mut self, group: usize, with_sum: bool) -> Result<Stats, CudaError> {
        let (start, len) = (self.start(group)?, self.groups.len);
        self.settle()?;
        let values = match &self.place {
            TensorState::Copied { values, .. } => values,
            TensorState::Resident { values, .. } => values,
            TensorState::Host { values, .. } => {
                let group = &values[start..start + len];
                return self.cuda.stats_through(group, with_sum);
            }
        };
        self.cuda.group_stats(values, group, len, with_sum)
    }

    /// Quantizes all groups, one team per group, while the values pass through the device.
    fn stream(&mut self, method: Method) -> Result<Report, CudaError> {
        let TensorState::Host { values, out, .. } = &mut self.place else {
            return quantize_in_order(self, method, &mut []);
        };
        let groups = self.groups;
        let mut beside = Beside::new(self.cuda, groups, !out.zero_points.is_empty())?;
        let each = Item {
            input: groups.len,
            output: groups.len,
        };
        let chunks = chunks(groups.len);
        self.cuda.stream_through(
            chunks,
            each,
            values,
            out.codes,
            |cuda, range, values, codes| {
                let part = GroupRange {
                    first: range.start,
                    count: range.len(),
                    len: groups.len,
                };
                cuda.launch_quantize(values, part, method, codes, &mut beside.results())
            },
        )?;
        beside.read(self.cuda, groups, out)
    }

    /// Quantizes all groups of a tensor on the device.
    fn at_once(&mut self, method: Method) -> Result<Report, CudaError> {
        let groups = self.groups;
        match &mut self.place {
            TensorState::Copied { values, codes, out } => {
                let mut beside = Beside::new(self.cuda, groups, !out.zero_points.is_empty())?;
                let results = &mut beside.results();
                self.cuda
                    .quantize_all(values, groups, method, codes, results)?;
                beside.read(self.cuda, groups, out)
            }
            TensorState::Resident { values, out, .. } => {
                let mut report = self.cuda.zeros(record::REPORT)?;
                let (codes, mut results) = out.results(&mut report);
                self.cuda
                    .quantize_all(values, groups, method, codes, &mut results)?;
                read_report(self.cuda, &report, groups)
            }
            TensorState::Host { .. } => quantize_in_order(self, method, &mut []),
        }
    }
}

/// True if kernels quantize by this method, all groups at once. Inputs that core refuses are refused group by group,
/// after the groups before.
fn takes_all(cuda: &Cuda, method: Method, groups: Groups) -> bool {
    match method {
        Method::Symmetric { limit } => limit > 0,
        Method::Fixed(grid) => grid.checked().is_ok(),
        _ if is_optimal(method) => groups.len <= SEARCHED && cuda.takes_rows(groups),
        Method::Ternary { .. } | Method::Affine => true,
    }
}

impl<T: Element> QuantizeProblem for CudaTensor<'_, T> {
    type Error = CudaError;

    fn groups(&self) -> Groups {
        self.groups
    }

    fn stats(&mut self, group: usize) -> Result<Stats, CudaError> {
        self.stats_of(group, true)
    }

    fn extremes(&mut self, group: usize) -> Result<Stats, CudaError> {
        self.stats_of(group, false)
    }

    fn read_magnitudes(&mut self, group: usize, out: &mut [u32]) -> Result<(), CudaError> {
        let (start, expected) = (self.start(group)?, self.groups.len);
        if out.len() != expected {
            let found = out.len();
            return Err(QuantError::Length { expected, found }.into());
        }
        let mut copied = Vec::new();
        let values = match &self.place {
            TensorState::Host { values, .. } => &values[start..start + expected],
            TensorState::Copied { values, .. } => {
                self.cuda.part(values, start, expected, &mut copied)?
            }
            TensorState::Resident { values, .. } => {
                self.cuda.part(values, start, expected, &mut copied)?
            }
        };
        for (value, pattern) in values.iter().zip(out) {
            *pattern = bits::magnitude(value.to_f32());
        }
        Ok(())
    }

    fn magnitudes(
        &mut self,
        group: usize,
        span: MagnitudeSpan,
        bins: &mut [MagnitudeBin],
    ) -> Result<(), CudaError> {
        span.check(bins)?;
        let (start, len) = (self.start(group)?, self.groups.len);
        self.settle()?;
        let values = match &self.place {
            TensorState::Copied { values, .. } => values,
            TensorState::Resident { values, .. } => values,
            TensorState::Host { values, .. } => {
                let group = &values[start..start + len];
                return self.cuda.magnitudes_through(group, span, bins);
            }
        };
        self.cuda.magnitudes(values, start, len, span, bins)
    }

    fn apply(&mut self, group: usize, plan: &Plan) -> Result<Applied, CudaError> {
        if let Plan::Affine(grid) = plan {
            grid.checked()?;
        }
        let (start, len) = (self.start(group)?, self.groups.len);
        self.settle()?;
        match &mut self.place {
            TensorState::Copied { values, codes, .. } => {
                self.cuda.group_apply(values, group, len, plan, codes)
            }
            TensorState::Resident { values, out, .. } => {
                let codes = out.codes_mut();
                self.cuda.group_apply(values, group, len, plan, codes)
            }
            TensorState::Host { values, out, .. } => {
                let codes = &mut out.codes[start..start + len];
                self.cuda
                    .apply_through(&values[start..start + len], plan, codes)
            }
        }
    }

    fn set_scale(&mut self, group: usize, scale: f32, zero_point: i8) -> Result<(), CudaError> {
        self.start(group)?;
        let expected = self.groups.count;
        let (scales, zero_points) = match &mut self.place {
            TensorState::Host { out, .. } | TensorState::Copied { out, .. } => {
                (&mut *out.scales, &mut *out.zero_points)
            }
            TensorState::Resident {
                out,
                scales,
                zero_points,
                ..
            } => {
                scales.resize(expected, 0.0);
                zero_points.resize(out.zero_points().map_or(0, DeviceBuffer::len), 0);
                (scales.as_mut_slice(), zero_points.as_mut_slice())
            }
        };
        Ok(set_scale(scales, zero_points, group, (scale, zero_point))?)
    }

    fn quantize_groups(
        &mut self,
        method: Method,
        bins: &mut [MagnitudeBin],
    ) -> Result<Report, CudaError> {
        let groups = self.groups;
        if !takes_all(self.cuda, method, groups) {
            return quantize_in_order(self, method, bins);
        }
        if self.cuda.takes_rows(groups) && matches!(self.place, TensorState::Host { .. }) {
            match self.stream(method) {
                // The device has no room for even one group.
                Err(error) if error.is_out_of_memory() => {}
                done => return done,
            }
        }
        self.settle()?;
        if matches!(self.place, TensorState::Host { .. }) {
            return quantize_in_order(self, method, bins);
        }
        self.at_once(method)
    }

    fn finish(self) -> Result<(), CudaError> {
        match self.place {
            TensorState::Host { .. } => Ok(()),
            TensorState::Copied { codes, out, .. } => self.cuda.read(&codes, out.codes),
            TensorState::Resident {
                out,
                scales,
                zero_points,
                ..
            } => out.write(self.cuda, &scales, &zero_points),
        }
    }
}

impl<T: Element> fmt::Debug for CudaTensor<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CudaTensor")
            .field("groups", &self.groups)
            .finish_non_exhaustive()
    }
}
