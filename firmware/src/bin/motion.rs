#![no_std]
#![no_main]
//! x
use cortex_m_rt::entry;
tercet_firmware::logs!();
#[entry]
fn main() -> ! {
    defmt::info!("x");
    tercet_firmware::exit::success()
}
