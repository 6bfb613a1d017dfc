//! The `tercet` command, run as its users run it: a process, files and exit codes.

mod auto;
mod bad_input;
mod calibrate;
mod compare;
mod demo;
mod frame;
mod inspect;
#[cfg(unix)]
mod interrupt;
mod palette;
mod quantize;
mod search;
mod support;
