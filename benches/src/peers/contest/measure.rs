//! The turns.

use super::{Case, Native, Rival, Row, Work};
use crate::peers::process::Process;
use rayon::ThreadPool;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io;
use std::path::PathBuf;
use std::time::Instant;

/// How long to measure.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Rounds in which everyone has a turn, at least.
    pub rounds: u32,
    /// A turn: as many runs as take about so many seconds, at least one.
    pub turn: f64,
    /// The least time, in seconds, that a contender gets in all.
    pub seconds: f64,
}

/// The processes of Python's peers, each started when it is first asked for.
#[derive(Debug)]
pub struct Peers {
    python: Option<PathBuf>,
    started: BTreeMap<&'static str, Result<Process, String>>,
}

impl Peers {
    /// With an interpreter, or with none, so that peers of this process alone take part.
    pub const fn new(python: Option<PathBuf>) -> Self {
        Self {
            python,
            started: BTreeMap::new(),
        }
    }

    fn get(&mut self, module: &'static str) -> io::Result<Option<&mut Process>> {
        let Some(python) = &self.python else {
            return Ok(None);
        };
        let started = match self.started.entry(module) {
            Entry::Occupied(started) => started.into_mut(),
            Entry::Vacant(place) => {
                let started = Process::start(python, module)?;
                if let Err(why) = &started {
                    eprintln!("{} is left out: {why}", module.trim_end_matches('_'));
                }
                place.insert(started)
            }
        };
        Ok(started.as_mut().ok())
    }

    /// Names and versions of those that were here.
    pub fn versions(&self) -> Vec<(String, String)> {
        let here = self.started.values().flatten();
        let versions = here.map(|peer| (peer.about.name.clone(), peer.about.version.clone()));
        versions.collect()
    }

    fn drop_work(&mut self) -> io::Result<()> {
        self.started
            .values_mut()
            .flatten()
            .try_for_each(Process::drop_work)
    }
}

/// A peer and what it took.
struct Contender {
    rival: Rival,
    same: String,
    runs: u32,
    best: Vec<f64>,
}

impl Contender {
    /// The shortest of some runs.
    fn run(&mut self, peers: &mut Peers, phase: usize, n: u32) -> io::Result<f64> {
        match &mut self.rival {
            Rival::Native { work, .. } => Ok(shortest(&mut **work, phase, n)),
            Rival::Python { module, what, .. } => match peers.get(module)? {
                Some(peer) => peer.run(what, phase, n),
                None => Err(io::ErrorKind::NotFound.into()),
            },
        }
    }
}

fn shortest(work: &mut (impl Work + ?Sized), phase: usize, n: u32) -> f64 {
    (0..n).fold(f64::INFINITY, |best, _| best.min(work.run(phase)))
}

/// Checks each rival's answer, then times everyone in turns, round by round, so that a slow minute of the machine falls on all
/// of them, on one thread and, where the case has more, on all; the best time counts. Peers whose answer is another are in
/// [`Row::refused`].
///
/// # Errors
/// Where a process ends.
pub fn measure(mut case: Case, peers: &mut Peers, effort: Effort) -> io::Result<Vec<Row>> {
    let all = rayon::current_num_threads();
    let counts = if case.threads && all > 1 {
        vec![1, all]
    } else {
        vec![1]
    };
    let mut rows = Vec::new();
    for threads in counts {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        rows.push(on(
            &pool.map_err(io::Error::other)?,
            &mut case,
            peers,
            effort,
        )?);
        peers.drop_work()?;
    }
    Ok(rows)
}

fn on(pool: &ThreadPool, case: &mut Case, peers: &mut Peers, effort: Effort) -> io::Result<Row> {
    let threads = pool.current_num_threads();
    let last = case.steps.map_or(0, |_| 1);
    let phases = last + 1;
    pool.install(|| case.tercet.run(last));

    let (mut contenders, mut refused, mut absent) = (Vec::new(), Vec::new(), Vec::new());
    for rival in case.rivals.drain(..) {
        let mut contender = Contender {
            rival,
            same: String::new(),
            runs: 1,
            best: vec![f64::INFINITY; phases],
        };
        let (label, answer) = match &mut contender.rival {
            Rival::Native { label, work } => {
                work.run(last);
                (*label, Some(Native::answer(&**work)))
            }
            Rival::Python {
                label,
                module,
                what,
            } => {
                let answer = match peers.get(module)? {
                    None => None,
                    Some(peer) => {
                        peer.load(what, case.inputs.files(), &case.options, threads)?;
                        peer.run(what, last, 1)?;
                        Some(peer.answer(what)?)
                    }
                };
                (*label, answer)
            }
        };
        match answer.map(|answer| case.tercet.check(&answer)) {
            None => absent.push(contender),
            Some(Ok(same)) => contenders.push(Contender { same, ..contender }),
            Some(Err(why)) => {
                refused.push((label.to_owned(), why));
                absent.push(contender);
            }
        }
    }

    // How many runs make a turn, from one that is warm.
    let runs = |seconds: f64| (effort.turn / seconds).clamp(1.0, 1000.0) as u32;
    let ours = runs(pool.install(|| case.tercet.run(last)));
    for contender in &mut contenders {
        contender.runs = runs(contender.run(peers, last, 1)?);
    }
    let mut best = vec![f64::INFINITY; phases];
    let (start, mut rounds) = (Instant::now(), 0);
    let least = effort.seconds * (contenders.len() + 1) as f64;
    while rounds < effort.rounds || start.elapsed().as_secs_f64() < least {
        for phase in 0..phases {
            let seconds = pool.install(|| shortest(&mut *case.tercet, phase, ours));
            best[phase] = best[phase].min(seconds);
            for contender in &mut contenders {
                let seconds = contender.run(peers, phase, contender.runs)?;
                contender.best[phase] = contender.best[phase].min(seconds);
            }
        }
        rounds += 1;
    }

    let time = |best: &[f64]| match (case.steps, best) {
        (Some([few, many]), [short, long]) => (long - short) / f64::from(many - few),
        _ => best[0],
    };
    let mut row = Row {
        name: case.name.clone(),
        threads,
        work: case.work,
        unit: case.unit,
        seconds: time(&best),
        peers: Vec::new(),
        refused,
    };
    for contender in contenders {
        let label = match &contender.rival {
            Rival::Native { label, .. } | Rival::Python { label, .. } => *label,
        };
        row.peers
            .push((label.to_owned(), time(&contender.best), contender.same));
        case.rivals.push(contender.rival);
    }
    case.rivals
        .extend(absent.into_iter().map(|contender| contender.rival));
    Ok(row)
}
