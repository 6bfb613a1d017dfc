//! The application on a desk: the same code, the same recordings, the same digest as on a board.

mod trial;
