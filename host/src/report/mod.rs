//! Pictures and pages of results, each one self-contained file: SVG, or HTML around it.
//!
//! They load nothing from elsewhere and run no script. Colours follow the reader's light or dark setting if the viewer
//! has one. The same input gives the same bytes.
//!
//! Charts are written here and not by a crate such as `plotters`: theirs set every colour and size inside the
//! elements, so a style sheet could not follow the reader's setting, and labels would cover each other.

mod axis;
#[cfg(feature = "measure")]
mod bench;
mod chart;
mod clusters;
mod colour;
mod curves;
mod elbow;
mod log_axis;
mod page;
mod picture;
mod place;
mod projection;
mod ratios;
mod scatter;
mod svg;

#[cfg(feature = "measure")]
pub use bench::Bench;
pub use clusters::Clusters;
pub use curves::{Curves, Line, Panel};
pub use elbow::{Elbow, Trial};
pub use page::Page;
pub use picture::Picture;
pub use ratios::{RatioCase, Ratios};
pub use scatter::{Dot, Scatter};
