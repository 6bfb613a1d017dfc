//! The application's loop body.

use embedded_hal::delay::DelayNs;
use embedded_hal::digital::OutputPin;
use embedded_hal::i2c::I2c;
use tercet_core::pool::Ring;

use super::detector::Detector;
use super::network::{Classifier, Scratch};
use super::{AXES, Error, HOP, PERIOD_MS, Phase, Report, Sample, WINDOW, codes, sensor, values};

/// The application's memory: a `static` of zeros, so it takes RAM and no flash.
#[derive(Debug)]
pub struct Memory {
    window: Ring<Sample, WINDOW>,
    detector: Detector,
    scratch: Scratch,
}

impl Default for Memory {
    fn default() -> Self {
        Self::new()
    }
}

impl Memory {
    /// Makes memory in which nothing is seen or learned yet.
    pub const fn new() -> Self {
        Self {
            window: Ring::new([0; AXES]),
            detector: Detector::new(),
            scratch: Scratch::new(),
        }
    }
}

/// The application on a board's bus, pin and delay; see [the module](super).
///
/// The pin toggles with every window while the application learns and measures. While it watches, the pin is high from
/// a flagged window to the next window that is not flagged.
#[derive(Debug)]
pub struct App<'a, I, P, D> {
    i2c: I,
    pin: P,
    delay: D,
    memory: &'a mut Memory,
    classifier: Classifier<'a>,
    /// True if the sensor is set up.
    running: bool,
    /// True if the time to the next sample is over.
    waited: bool,
    /// The acceleration of a sample whose other half could not be read.
    half: Option<[i16; 3]>,
    /// Samples until the next window is complete.
    missing: usize,
    /// Windows so far.
    windows: u32,
    /// State of the pin.
    high: bool,
    /// A report that the pin does not show yet.
    pending: Option<Report>,
}

impl<'a, I: I2c, P: OutputPin, D: DelayNs> App<'a, I, P, D> {
    /// Makes the application from a board's parts and the bytes of a GGUF file. Does not use the bus until the first
    /// step.
    ///
    /// `memory` keeps its earlier state: an application made again with the same memory continues.
    ///
    /// # Errors
    /// [`Error::Network`] and [`Error::Shape`].
    pub fn new(
        i2c: I,
        pin: P,
        delay: D,
        memory: &'a mut Memory,
        network: &'a [u8],
    ) -> Result<Self, Error> {
        let classifier = Classifier::new(network)?;
        memory.window.clear();
        Ok(Self {
            i2c,
            pin,
            delay,
            memory,
            classifier,
            running: false,
            waited: false,
            half: None,
            missing: WINDOW,
            windows: 0,
            high: false,
            pending: None,
        })
    }

    /// Waits for a sample and reads it. Returns a report if the sample ends a window.
    ///
    /// The first step sets up the sensor, and so does a step after [`Error::NotReady`]; it then starts a new window. A
    /// step takes [`PERIOD_MS`] and the time of the bus. For samples at exact intervals, use a delay that waits for a
    /// timer's next tick.
    ///
    /// # Errors
    /// Those of the sensor, the bus and the pin. Nothing is lost: the next step tries again. It reads a sample that
    /// was due without waiting once more, and it returns a report that the pin did not show as soon as the pin shows
    /// it.
    pub fn step(&mut self) -> Result<Option<Report>, Error> {
        if self.pending.is_none() {
            let sample = self.sample()?;
            self.pending = self.take(sample)?;
        }
        let Some(report) = self.pending else {
            return Ok(None);
        };
        self.show(&report)?;
        self.pending = None;
        #[cfg(feature = "defmt")]
        defmt::debug!("{}", report);
        Ok(Some(report))
    }

    /// Ends learning: the clusters stay fixed from now on, and the distances of usual windows are measured.
    pub fn measure(&mut self) {
        self.memory.detector.measure();
    }

    /// Ends measuring: from the next window on, windows farther than the limit are flagged.
    ///
    /// # Errors
    /// [`Error::Unmeasured`]; the phase does not change.
    pub fn watch(&mut self) -> Result<(), Error> {
        self.memory.detector.watch()
    }

    /// Returns the current phase.
    pub const fn phase(&self) -> Phase {
        self.memory.detector.phase()
    }

    /// Returns the largest squared distance that is not flagged; 0 until something was measured.
    pub const fn limit(&self) -> u32 {
        self.memory.detector.limit()
    }

    /// Starts a new window: the next samples do not follow the earlier ones.
    pub fn cut(&mut self) {
        self.memory.window.clear();
        self.missing = WINDOW;
        (self.waited, self.half) = (false, None);
    }

    /// Returns the bus, for its other devices.
    pub const fn i2c(&mut self) -> &mut I {
        &mut self.i2c
    }

    fn sample(&mut self) -> Result<Sample, Error> {
        if !self.running {
            sensor::start(&mut self.i2c, &mut self.delay)?;
            self.running = true;
            self.cut();
        }
        if !self.waited {
            self.delay.delay_ms(PERIOD_MS);
            self.waited = true;
        }
        let read = sensor::read(&mut self.i2c, &mut self.delay, &mut self.half);
        self.running = read != Err(Error::NotReady);
        let sample = read?;
        self.waited = false;
        Ok(sample)
    }

    fn take(&mut self, sample: Sample) -> Result<Option<Report>, Error> {
        let Memory {
            window,
            detector,
            scratch,
        } = &mut *self.memory;
        window.push(sample);
        self.missing = self.missing.saturating_sub(1);
        if self.missing > 0 {
            return Ok(None);
        }
        self.missing = HOP;
        let codes = codes(&values(window.iter()));
        let (activity, logits) = self.classifier.run(&codes, scratch)?;
        let phase = detector.phase();
        let verdict = detector.take(&codes);
        let number = self.windows;
        self.windows = number.wrapping_add(1);
        Ok(Some(Report {
            number,
            phase,
            codes,
            cluster: verdict.cluster,
            distance: verdict.distance,
            limit: detector.limit(),
            flagged: verdict.flagged,
            activity,
            logits,
        }))
    }

    fn show(&mut self, report: &Report) -> Result<(), Error> {
        let high = match report.phase {
            Phase::Learn | Phase::Measure => !self.high,
            Phase::Watch => report.flagged,
        };
        let set = if high {
            self.pin.set_high()
        } else {
            self.pin.set_low()
        };
        set.map_err(|error| Error::pin(&error))?;
        self.high = high;
        Ok(())
    }
}
