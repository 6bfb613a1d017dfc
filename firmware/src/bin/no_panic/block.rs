//! Block codecs.

use tercet_core::block::{
    Format, Ternary, bitnet_hf, codes, decode, dot, dot_fixed, encode, fixed_to_f32, i2_s, scales,
};
use tercet_core::{bf16, f16};

use crate::reach::reach;

reach! {
    bitnet_hf::WeightScale::stored,
    bitnet_hf::WeightScale::unit,
    bitnet_hf::packed_len,
    bitnet_hf::pack,
    bitnet_hf::unpack,
    bitnet_hf::decode,
    bitnet_hf::scale::<f32>,
    bitnet_hf::scale_of_mean,
    bitnet_hf::quantize::<f32>,
    bitnet_hf::encode::<f32>,
    i2_s::Layout::group,
    i2_s::Layout::name,
    i2_s::Layout::from_name,
    i2_s::encoded_len,
    i2_s::codes,
    i2_s::decode,
    Format::len,
    Format::bytes,
    Format::layout,
    Format::name,
    Format::from_name,
    Format::gguf_type,
    Format::from_gguf_type,
    Format::is_ternary,
    Format::encoded_len,
    Ternary::new,
    Ternary::format,
    Ternary::bytes,
    Ternary::len,
    Ternary::codes,
    Ternary::dot,
    encode::<f32>,
    decode,
    codes,
    scales,
    dot,
    dot_fixed,
    fixed_to_f32,
    encode::<f16>,
    bitnet_hf::quantize::<bf16>,
}
