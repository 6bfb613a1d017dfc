//! The application's loop body.

use embedded_hal::delay::DelayNs;
use embedded_hal::digital::OutputPin;
use embedded_hal::i2c::I2c;
use tercet_core::pool::Ring;

use super::detector::Detector;
use super::network::{Classifier, Scratch};
use super::{AXES, Error, HOP, PERIOD_MS, Phase, Report, Sample, WINDOW, codes, sensor, values};

/// What the application works in: a `static` of zeros, so it takes RAM and no flash.
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
    /// Nothing seen, nothing learned.
    pub const fn new() -> Self {
        Self {
            window: Ring::new([0; AXES]),
            detector: Detector::new(),
            scratch: Scratch::new(),
        }
    }
}

/// The application over a board's bus, pin and delay; see [the module](super).
///
/// The pin toggles with every window while the application learns and measures. While it watches, the pin is high from a flagged window
/// to the next that is not.
#[derive(Debug)]
pub struct App<'a, I, P, D> {
    i2c: I,
    pin: P,
    delay: D,
    memory: &'a mut Memory,
    classifier: Classifier<'a>,
    /// Whether the sensor is set up.
    running: bool,
    /// Whether the time to the next sample is over.
    waited: bool,
    /// The acceleration of a sample whose other half could not be read.
    half: Option<[i16; 3]>,
    /// Samples until the next window is whole.
    missing: usize,
    /// Windows so far.
    windows: u32,
    /// What the pin shows.
    high: bool,
    /// A report whose state the pin does not show yet.
    pending: Option<Report>,
}

impl<'a, I: I2c, P: OutputPin, D: DelayNs> App<'a, I, P, D> {
    /// Takes a board's parts and the bytes of a GGUF file. Nothing is done with the bus until the first step.
    ///
    /// What `memory` knows from before is kept: an application made again over the same memory goes on.
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

    /// Waits for a sample and reads it; a report where it ends a window.
    ///
    /// The first step sets up the sensor, and so does one after [`Error::NotReady`]; the window starts anew then. Takes
    /// [`PERIOD_MS`] and the time of the bus; for samples of exact distance, a delay can wait for a timer's next tick.
    ///
    /// # Errors
    /// Those of the sensor, the bus and the pin. Nothing is lost: the next step tries the same again, a sample that was due is read
    /// without waiting once more, and a report that the pin does not show is given once it does.
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

    /// Ends learning: clusters stand still, and distances of the usual are measured.
    pub fn measure(&mut self) {
        self.memory.detector.measure();
    }

    /// Ends measuring: from the next window on, what is farther than the usual is flagged.
    ///
    /// # Errors
    /// [`Error::Unmeasured`]; the phase stays.
    pub fn watch(&mut self) -> Result<(), Error> {
        self.memory.detector.watch()
    }

    /// What is done with windows now.
    pub const fn phase(&self) -> Phase {
        self.memory.detector.phase()
    }

    /// The largest squared distance that is not flagged; 0 until something was measured.
    pub const fn limit(&self) -> u32 {
        self.memory.detector.limit()
    }

    /// Starts a new window: samples to come do not follow those before.
    pub fn cut(&mut self) {
        self.memory.window.clear();
        self.missing = WINDOW;
        (self.waited, self.half) = (false, None);
    }

    /// The bus, for what else is on it.
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
