//! The other data of a host's quantized tensor, beside its codes, while it is on the device.

use tercet_core::engine::Output;
use tercet_core::quant::{Groups, Report};

use super::launches::Results;
use super::record;
use crate::engine::{Cuda, CudaError, DeviceBuffer};

/// Scales, zero points and a report on the device, for a tensor of the host.
pub(super) struct Beside {
    scales: DeviceBuffer<f32>,
    zero_points: Option<DeviceBuffer<i8>>,
    report: DeviceBuffer<u64>,
}

impl Beside {
    pub(super) fn new(
        cuda: &mut Cuda,
        groups: Groups,
        zero_points: bool,
    ) -> Result<Self, CudaError> {
        Ok(Self {
            scales: cuda.zeros(groups.count)?,
            zero_points: zero_points.then(|| cuda.zeros(groups.count)).transpose()?,
            report: cuda.zeros(record::REPORT)?,
        })
    }

    pub(super) fn results(&mut self) -> Results<'_> {
        Results {
            scales: &mut self.scales,
            zero_points: self.zero_points.as_mut(),
            report: &mut self.report,
        }
    }

    pub(super) fn read(
        &self,
        cuda: &mut Cuda,
        groups: Groups,
        out: &mut Output<'_>,
    ) -> Result<Report, CudaError> {
        let report = read_report(cuda, &self.report, groups)?;
        cuda.read(&self.scales, out.scales)?;
        if let Some(points) = &self.zero_points {
            cuda.read(points, out.zero_points)?;
        }
        Ok(report)
    }
}

pub(super) fn read_report(
    cuda: &mut Cuda,
    report: &DeviceBuffer<u64>,
    groups: Groups,
) -> Result<Report, CudaError> {
    let mut words = [0; record::REPORT];
    cuda.read(report, &mut words)?;
    Ok(record::report(&words, groups)?)
}
