//! Tries the application on recordings, and compares its flags and classes with the true activities.

use embedded_hal::delay::DelayNs;
use embedded_hal::digital::OutputPin;
use tercet_core::conformance::Digest;

use super::emulated::Sensor;
use super::{Activity, App, CLASSES, Error, Phase, Recordings, Report};

/// Number of recordings that the application learns from, and also of those that it measures. Half of each are of
/// standing, half of walking.
const LEARNED: usize = 10;

/// The digest of these recordings on every processor; see [`Trial::digest`].
pub const DIGEST: u64 = 0x4DF0_B38D_303A_4A07;

/// Outcome of some windows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Number of windows.
    pub windows: u32,
    /// Number of flagged windows.
    pub flagged: u32,
    /// Number of windows that the network classified correctly.
    pub right: u32,
}

impl Counts {
    const NONE: Self = Self {
        windows: 0,
        flagged: 0,
        right: 0,
    };

    fn take(&mut self, report: &Report, activity: Activity) {
        self.windows += 1;
        self.flagged += u32::from(report.flagged);
        self.right += u32::from(report.activity == activity);
    }
}

/// Outcome of one recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Played {
    /// Its place in the file.
    pub number: usize,
    /// The true activity.
    pub activity: Activity,
    /// The phase in which it was played.
    pub phase: Phase,
    /// Outcome of its windows.
    pub counts: Counts,
    /// The smallest and the largest of their squared distances.
    pub distances: (u32, u32),
}

/// Outcome of all watched recordings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trial {
    /// Windows by true activity, in the order of [`Activity::ALL`].
    pub counts: [Counts; CLASSES],
    /// The largest squared distance that was not flagged.
    pub limit: u32,
    /// Digest of everything reported, beginning with the first window of the learning phase.
    pub digest: u64,
}

impl Trial {
    /// Plays recordings to an application that has learned nothing. Of `motion.npy`, the first ten are of standing and
    /// the next ten of walking.
    ///
    /// The application learns from the first five of each, in turn, so that the clusters' seeds come from both; it
    /// measures the other five of each. It watches all recordings after these. `seen` gets every recording's outcome.
    ///
    /// # Errors
    /// Those of [`App::step`] and [`App::watch`].
    pub fn run<'r, P: OutputPin, D: DelayNs>(
        app: &mut App<'_, Sensor<'r>, P, D>,
        recordings: &Recordings<'r>,
        seen: &mut impl FnMut(&Played),
    ) -> Result<Self, Error> {
        let mut trial = Self {
            counts: [Counts::NONE; CLASSES],
            limit: 0,
            digest: 0,
        };
        let mut digest = Digest::new();
        // Standing, walking, standing, …
        let turn = |place: usize| place / 2 + LEARNED * (place % 2);
        for place in 0..recordings.len() {
            let number = if place < 2 * LEARNED {
                turn(place)
            } else {
                place
            };
            match place {
                LEARNED => app.measure(),
                place if place == 2 * LEARNED => app.watch()?,
                _ => {}
            }
            let Some((recording, activity)) = recordings.get(number) else {
                break;
            };
            app.i2c().replay(recording);
            app.cut();
            let mut played = Played {
                number,
                activity,
                phase: app.phase(),
                counts: Counts::NONE,
                distances: (u32::MAX, 0),
            };
            for _ in 0..recording.len() {
                let Some(report) = app.step()? else {
                    continue;
                };
                played.take(&report);
                feed(&mut digest, &report);
            }
            trial.take(&played);
            seen(&played);
        }
        trial.limit = app.limit();
        trial.digest = digest.value();
        Ok(trial)
    }

    /// Returns the outcome of the windows of an activity.
    pub fn of(&self, activity: Activity) -> Counts {
        let counts = self.counts.get(activity as usize);
        counts.copied().unwrap_or(Counts::NONE)
    }

    /// Returns the flagged windows of an activity that was not learned, per thousand of its windows.
    pub fn recall(&self, activity: Activity) -> u32 {
        let counts = self.of(activity);
        permille(counts.flagged, counts.windows)
    }

    /// Returns the flagged windows of an activity that was not learned, per thousand flagged windows of it and of the
    /// two learned ones.
    pub fn precision(&self, activity: Activity) -> u32 {
        let usual = [Activity::Standing, Activity::Walking].map(|usual| self.of(usual).flagged);
        let flagged = self.of(activity).flagged;
        permille(flagged, flagged + usual.iter().sum::<u32>())
    }

    /// Returns the correctly classified windows, per thousand watched windows.
    pub fn accuracy(&self) -> u32 {
        let sum = |of: fn(&Counts) -> u32| self.counts.iter().map(of).sum();
        permille(sum(|counts| counts.right), sum(|counts| counts.windows))
    }

    fn take(&mut self, played: &Played) {
        if played.phase != Phase::Watch {
            return;
        }
        if let Some(counts) = self.counts.get_mut(played.activity as usize) {
            counts.windows += played.counts.windows;
            counts.flagged += played.counts.flagged;
            counts.right += played.counts.right;
        }
    }
}

impl Played {
    fn take(&mut self, report: &Report) {
        self.counts.take(report, self.activity);
        let (least, most) = self.distances;
        self.distances = (least.min(report.distance), most.max(report.distance));
    }
}

/// Returns `part` of `whole` in thousandths, rounded down; 0 if `whole` is 0.
fn permille(part: u32, whole: u32) -> u32 {
    (part * 1000).checked_div(whole).unwrap_or(0)
}

fn feed(digest: &mut Digest, report: &Report) {
    digest.i8s(&report.codes);
    for number in [
        report.number,
        report.cluster,
        report.distance,
        report.limit,
        report.flagged.into(),
        report.activity as u32,
    ] {
        digest.u64(number.into());
    }
    for logit in report.logits {
        digest.u64(logit as u64);
    }
}
