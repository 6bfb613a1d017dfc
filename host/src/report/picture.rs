//! Points that are images.

use std::fmt::Write as _;
use std::str::FromStr;

use base64::prelude::{BASE64_STANDARD, Engine};

use super::svg::{At, text};
use crate::Error;
use crate::points::{Points, Values};

/// The layout of a point's values as an image: row after row from the top, with the channels of a pixel together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Picture {
    /// Width in pixels.
    pub width: usize,
    /// Height in pixels.
    pub height: usize,
    /// 1 (grey) or 3 (red, green, blue).
    pub channels: usize,
}

/// The smallest number of values that [`Picture::guess`] treats as a square.
const LEAST: usize = 16;

impl Picture {
    /// Guesses the layout of the points as images, if they are: from a shape of n × height × width, optionally with 1
    /// or 3 channels last; otherwise a square of at least 4 × 4 if d is a square number and no value is negative.
    pub fn guess(points: &Points) -> Option<Self> {
        let grey = |height, width| Self {
            width,
            height,
            channels: 1,
        };
        match *points.shape() {
            [_, height, width] => Some(grey(height, width)),
            [_, height, width, channels @ (1 | 3)] => Some(Self {
                channels,
                ..grey(height, width)
            }),
            [_, dims] if dims >= LEAST => {
                let side = dims.isqrt();
                let positive = match points.values() {
                    Values::U8(_) => true,
                    _ => points.to_f32().iter().all(|&value| value >= 0.0),
                };
                (side * side == dims && positive).then(|| grey(side, side))
            }
            _ => None,
        }
    }

    /// Returns a PNG image of eight-bit values as a data address.
    fn data_address(&self, pixels: &[u8]) -> String {
        let mut file = Vec::new();
        let mut encoder = png::Encoder::new(&mut file, self.width as u32, self.height as u32);
        encoder.set_color(match self.channels {
            3 => png::ColorType::Rgb,
            _ => png::ColorType::Grayscale,
        });
        let written = encoder
            .write_header()
            .and_then(|mut writer| writer.write_image_data(pixels));
        // Memory is there, and pixels are as many as the size says.
        written.expect("an image in memory");
        format!("data:image/png;base64,{}", BASE64_STANDARD.encode(&file))
    }

    /// Returns the number of values of an image.
    pub fn values(&self) -> usize {
        self.width
            .saturating_mul(self.height)
            .saturating_mul(self.channels)
    }
}

/// Parses `WxH`, or `WxHx3` for colour.
impl FromStr for Picture {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let sizes: Option<Vec<usize>> = text
            .split(['x', 'X', '×'])
            .map(|size| size.parse().ok().filter(|&size| size > 0))
            .collect();
        let (width, height, channels) = match sizes.as_deref() {
            Some(&[width, height]) => (width, height, 1),
            Some(&[width, height, channels @ (1 | 3)]) => (width, height, channels),
            _ => {
                let reason =
                    format!("`{text}` is not a size of pictures; give WxH, or WxHx3 for colour");
                return Err(Error::options(reason));
            }
        };
        Ok(Self {
            width,
            height,
            channels,
        })
    }
}

/// Px between images, and below them for the captions.
const GAP: f64 = 14.0;
const CAPTION: f64 = 18.0;

/// Draws images in rows, each with its caption below, with the smallest of all values black and the largest white;
/// returns their total height. A row has `width` px.
pub(super) fn draw(
    out: &mut String,
    at: At,
    width: f64,
    picture: &Picture,
    values: &[&[f32]],
    captions: &[String],
) -> f64 {
    let all = || values.iter().flat_map(|values| values.iter().copied());
    let (low, high) = (
        all().fold(f32::INFINITY, f32::min),
        all().fold(f32::NEG_INFINITY, f32::max),
    );
    let range = if high > low {
        f64::from(high) - f64::from(low)
    } else {
        1.0
    };
    // Whole px per pixel, so that all have the same size; the viewer makes large images smaller.
    let longest = picture.width.max(picture.height) as f64;
    let unit = if longest <= 76.0 {
        (76.0 / longest).floor()
    } else {
        120.0 / longest
    };
    let (across, down) = (picture.width as f64 * unit, picture.height as f64 * unit);
    let cell = across.max(60.0) + GAP;
    let in_row = (((width + GAP) / cell).floor() as usize).max(1);
    for (index, (values, caption)) in values.iter().zip(captions).enumerate() {
        let x = at.0 + (index % in_row) as f64 * cell;
        let y = at.1 + (index / in_row) as f64 * (down + CAPTION + GAP);
        let pixels: Vec<u8> = values
            .iter()
            .map(|&value| ((f64::from(value) - f64::from(low)) / range * 255.0).round() as u8)
            .collect();
        let address = picture.data_address(&pixels);
        let _ = writeln!(
            out,
            r#"<image x="{x:.1}" y="{y:.1}" width="{across:.1}" height="{down:.1}" preserveAspectRatio="none" image-rendering="optimizeSpeed" style="image-rendering:pixelated" href="{address}"/>"#
        );
        text(
            out,
            (x + across / 2.0, y + down + 14.0),
            "middle",
            r#"class="faint" font-size="11""#,
            caption,
        );
    }
    values.len().div_ceil(in_row) as f64 * (down + CAPTION + GAP)
}
