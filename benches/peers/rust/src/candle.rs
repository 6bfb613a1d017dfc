//! candle's quantizers of GGUF blocks.

use crate::{Array, Peer, Result, TimedWork, array};
use candle_core::quantized::{GgmlDType, QTensor};
use candle_core::{Device, Tensor};
use serde_json::Value;
use std::collections::BTreeMap;

pub(crate) const PEER: Peer = Peer {
    name: "candle",
    version: "0.11",
    work: &[("encode", encode)],
};

struct Encode {
    x: Tensor,
    format: GgmlDType,
    blocks: Option<QTensor>,
}

fn encode(arrays: &BTreeMap<String, Array>, options: &Value) -> Result<Box<dyn TimedWork>> {
    let x = array(arrays, "x")?;
    let format = match options["format"].as_str() {
        Some("q4_0") => GgmlDType::Q4_0,
        Some("q4_1") => GgmlDType::Q4_1,
        Some("q5_0") => GgmlDType::Q5_0,
        Some("q5_1") => GgmlDType::Q5_1,
        Some("q8_0") => GgmlDType::Q8_0,
        other => return Err(format!("no format {other:?}").into()),
    };
    Ok(Box::new(Encode {
        x: Tensor::from_slice(&x.values, &x.shape[..], &Device::Cpu)?,
        format,
        blocks: None,
    }))
}

impl TimedWork for Encode {
    fn run(&mut self, _: usize) -> Result<()> {
        self.blocks = Some(QTensor::quantize(&self.x, self.format)?);
        Ok(())
    }

    fn answer(&self) -> Result<BTreeMap<&'static str, Vec<u8>>> {
        let blocks = self.blocks.as_ref().ok_or("no run")?;
        Ok(BTreeMap::from([("bytes", blocks.data()?.into_owned())]))
    }
}
