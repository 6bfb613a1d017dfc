//! Tests that the emulated LSM6DSOX behaves as the datasheet describes the real one.

use embedded_hal::delay::DelayNs;
use embedded_hal::i2c::{Error, ErrorKind, I2c, NoAcknowledgeSource};

use super::recording;
use crate::motion::emulated::{Clock, Delay, Sensor};
use crate::motion::{AXES, Sample};

const ADDRESS: u8 = 0x6A;
const CTRL1_XL: u8 = 0x10;
const CTRL2_G: u8 = 0x11;
const CTRL3_C: u8 = 0x12;
const STATUS: u8 = 0x1E;
const OUTX_L_G: u8 = 0x22;
const OUTX_L_A: u8 = 0x28;

fn read(sensor: &mut Sensor<'_>, register: u8) -> u8 {
    let mut byte = [0];
    sensor.write_read(ADDRESS, &[register], &mut byte).unwrap();
    byte[0]
}

/// Reads acceleration and rate in one burst, as a sample.
fn sample(sensor: &mut Sensor<'_>) -> Sample {
    let mut bytes = [0; 12];
    sensor.write_read(ADDRESS, &[OUTX_L_G], &mut bytes).unwrap();
    let mut values = [0; AXES];
    for (value, pair) in values.iter_mut().zip(bytes.chunks(2)) {
        *value = i16::from_le_bytes([pair[0], pair[1]]);
    }
    values.rotate_left(3);
    values
}

/// Returns a sensor with both parts at 104 Hz and the scales of the recordings, after one period.
fn started(clock: &Clock) -> Sensor<'_> {
    let mut sensor = Sensor::new(clock, recording(50));
    sensor.write(ADDRESS, &[CTRL1_XL, 0x4C, 0x4C]).unwrap();
    Delay::new(clock).delay_ms(100);
    sensor
}

#[test]
fn another_address_is_not_acknowledged() {
    let clock = Clock::new();
    let mut sensor = Sensor::new(&clock, recording(0));
    for address in (0..128).filter(|&address| address != ADDRESS) {
        let error = sensor.write(address, &[CTRL1_XL, 0]).unwrap_err();
        let expected = ErrorKind::NoAcknowledge(NoAcknowledgeSource::Address);
        assert_eq!(error.kind(), expected);
    }
}

#[test]
fn control_registers_are_kept_and_others_are_not() {
    let clock = Clock::new();
    let mut sensor = Sensor::new(&clock, recording(0));
    assert_eq!(read(&mut sensor, 0x0F), 0x6C);
    assert_eq!(read(&mut sensor, CTRL3_C), 0x04);
    sensor.write(ADDRESS, &[CTRL1_XL, 0x4C, 0x3C]).unwrap();
    assert_eq!(read(&mut sensor, CTRL1_XL), 0x4C);
    assert_eq!(read(&mut sensor, CTRL2_G), 0x3C);
    for register in [0x0F, STATUS, OUTX_L_A] {
        let before = read(&mut sensor, register);
        sensor.write(ADDRESS, &[register, !before]).unwrap();
        assert_eq!(read(&mut sensor, register), before);
    }
}

#[test]
fn a_reset_takes_50_microseconds_and_forgets_all() {
    let clock = Clock::new();
    let mut sensor = started(&clock);
    sensor.write(ADDRESS, &[CTRL3_C, 0x05]).unwrap();
    assert_eq!(read(&mut sensor, CTRL3_C), 0x05);
    assert_eq!(read(&mut sensor, CTRL1_XL), 0);
    Delay::new(&clock).delay_us(49);
    assert_eq!(read(&mut sensor, CTRL3_C), 0x05);
    Delay::new(&clock).delay_us(1);
    assert_eq!(read(&mut sensor, CTRL3_C), 0x04);
}

#[test]
fn data_ready_follows_the_rates_and_reading_clears_it() {
    let clock = Clock::new();
    let mut sensor = Sensor::new(&clock, recording(0));
    let mut delay = Delay::new(&clock);
    delay.delay_ms(500);
    assert_eq!(read(&mut sensor, STATUS), 0);
    // 104 Hz and 26 Hz: 9.6 ms and 38.5 ms.
    sensor.write(ADDRESS, &[CTRL1_XL, 0x40, 0x20]).unwrap();
    let mut ready = [0; 2];
    for _ in 0..100 {
        delay.delay_ms(1);
        let status = read(&mut sensor, STATUS);
        if status & 1 != 0 {
            ready[0] += 1;
            read(&mut sensor, OUTX_L_A);
            assert_eq!(read(&mut sensor, STATUS) & 1, 0);
        }
        if status & 2 != 0 {
            ready[1] += 1;
            read(&mut sensor, OUTX_L_G);
            assert_eq!(read(&mut sensor, STATUS) & 2, 0);
        }
    }
    assert_eq!(ready, [10, 2]);
}

#[test]
fn samples_are_those_of_the_recording_until_it_ends() {
    let clock = Clock::new();
    let mut sensor = started(&clock);
    for index in 0..100 {
        assert_eq!(read(&mut sensor, STATUS), 3, "{index}");
        assert_eq!(sample(&mut sensor), recording(50).get(index).unwrap());
        Delay::new(&clock).delay_ms(100);
    }
    assert_eq!(read(&mut sensor, STATUS), 0);
    assert_eq!(sample(&mut sensor), [0; AXES]);
}

#[test]
fn a_full_scale_is_a_unit() {
    let clock = Clock::new();
    let mut sensor = started(&clock);
    let felt = sample(&mut sensor);
    let clip = |x: i32| x.clamp(-32768, 32767) as i16;
    for (control, times) in [(0x40, 4.0), (0x48, 2.0), (0x4C, 1.0), (0x44, 0.5)] {
        sensor.write(ADDRESS, &[CTRL1_XL, control]).unwrap();
        for (found, felt) in sample(&mut sensor)[..3].iter().zip(felt) {
            assert_eq!(*found, clip((f64::from(felt) * times) as i32));
        }
    }
    for (control, times) in [(0x40, 8), (0x44, 4), (0x48, 2), (0x4C, 1), (0x42, 16)] {
        sensor.write(ADDRESS, &[CTRL2_G, control]).unwrap();
        for (found, felt) in sample(&mut sensor)[3..].iter().zip(&felt[3..]) {
            assert_eq!(*found, clip(i32::from(*felt) * times));
        }
    }
}

#[test]
fn bursts_stay_where_increments_are_off() {
    let clock = Clock::new();
    let mut sensor = started(&clock);
    sensor.write(ADDRESS, &[CTRL3_C, 0x00]).unwrap();
    let mut bytes = [0; 3];
    sensor.write_read(ADDRESS, &[0x0F], &mut bytes).unwrap();
    assert_eq!(bytes, [0x6C; 3]);
}
