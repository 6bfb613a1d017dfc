//! Measures in turns.

use super::{Case, Pools, Rival, Row, TimedWork};
use crate::peers::process::{Answer, Module, Process, Programs};
use rayon::ThreadPool;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::time::Instant;
use std::{io, mem};

/// Duration of a measurement.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Minimum number of rounds, in which everyone has a turn.
    pub rounds: u32,
    /// Seconds of a turn: it has as many runs as take about this time, but at least one.
    pub turn: f64,
    /// Minimum total time of a contender, in seconds.
    pub seconds: f64,
}

/// The processes of peers; each is started on first use.
#[derive(Debug)]
pub struct Peers {
    programs: Programs,
    started: BTreeMap<Module, Result<Process, String>>,
}

impl Peers {
    /// Makes it with programs. Without any, only the peers of this process take part.
    pub const fn new(programs: Programs) -> Self {
        Self {
            programs,
            started: BTreeMap::new(),
        }
    }

    fn get(&mut self, module: Module) -> io::Result<Option<&mut Process>> {
        let started = match self.started.entry(module) {
            Entry::Occupied(started) => started.into_mut(),
            Entry::Vacant(place) => {
                let started = Process::start(&self.programs, module)?;
                if let Err(why) = &started {
                    eprintln!("{} is left out: {why}", module.name());
                }
                place.insert(started)
            }
        };
        Ok(started.as_mut().ok())
    }

    /// Returns the names and versions of the peers that took part.
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

/// A peer and its times.
struct Contender {
    rival: Rival,
    /// The part of its answer that equals Tercet's.
    same: String,
    /// Runs per turn.
    runs: u32,
    /// Best time per phase.
    best: Vec<f64>,
}

impl Contender {
    /// Returns the shortest of some runs.
    fn run(
        &mut self,
        pool: &ThreadPool,
        peers: &mut Peers,
        phase: usize,
        n: u32,
    ) -> io::Result<f64> {
        match &mut self.rival {
            Rival::Native { work, .. } => Ok(pool.install(|| shortest(&mut **work, phase, n))),
            Rival::Bound { work, .. } => Ok(pool.install(|| shortest(&mut **work, phase, n))),
            Rival::Process { module, what, .. } => match peers.get(*module)? {
                Some(peer) => peer.run(what, phase, n),
                None => Err(io::ErrorKind::NotFound.into()),
            },
        }
    }
}

fn shortest(work: &mut (impl TimedWork + ?Sized), phase: usize, n: u32) -> f64 {
    (0..n).fold(f64::INFINITY, |best, _| best.min(work.run(phase)))
}

/// Checks each rival's answer, then times everyone in turns, round by round, so that a slow minute of the machine
/// affects all of them. Does so on one thread and, if the case has more, on all; the best time counts. Peers with a
/// different answer are in [`Row::refused`].
///
/// # Errors
/// A process ended.
pub fn measure(mut case: Case, peers: &mut Peers, effort: Effort) -> io::Result<Vec<Row>> {
    let all = rayon::current_num_threads();
    let counts = match case.pools {
        Pools::OneAndAll if all > 1 => vec![1, all],
        Pools::One | Pools::OneAndAll => vec![1],
        Pools::All => vec![all],
    };
    let mut rows = Vec::new();
    for threads in counts {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        let pool = pool.map_err(io::Error::other)?;
        rows.push(row(&pool, &mut case, peers, effort)?);
        peers.drop_work()?;
    }
    Ok(rows)
}

fn row(pool: &ThreadPool, case: &mut Case, peers: &mut Peers, effort: Effort) -> io::Result<Row> {
    let threads = pool.current_num_threads();
    let last = case.steps.map_or(0, |_| 1);
    pool.install(|| case.tercet.run(last));

    let (mut contenders, mut refused, mut left_out) = (Vec::new(), Vec::new(), Vec::new());
    for mut rival in mem::take(&mut case.rivals) {
        let same = match answer(&mut rival, pool, case, peers)? {
            Outcome::Answer(answer) => case.tercet.check(&answer),
            Outcome::Bound => Ok("no work, a bound of it".to_owned()),
            Outcome::NotHere => {
                left_out.push(rival);
                continue;
            }
        };
        match same {
            Ok(same) => contenders.push(Contender {
                rival,
                same,
                runs: 1,
                best: vec![f64::INFINITY; last + 1],
            }),
            Err(why) => {
                refused.push((rival.label().to_owned(), why));
                left_out.push(rival);
            }
        }
    }
    let best = turns(pool, case, &mut contenders, peers, effort)?;

    let time = |best: &[f64]| match (case.steps, best) {
        (Some([few, many]), [short, long]) => (long - short) / f64::from(many - few),
        _ => best[0],
    };
    let of_peers = contenders.iter().map(|contender| {
        let label = contender.rival.label().to_owned();
        (label, time(&contender.best), contender.same.clone())
    });
    let row = Row {
        name: case.name.clone(),
        threads,
        work: case.work,
        unit: case.unit,
        seconds: time(&best),
        peers: of_peers.collect(),
        refused,
    };
    // For the next number of threads.
    case.rivals = contenders.into_iter().map(|it| it.rival).collect();
    case.rivals.extend(left_out);
    Ok(row)
}

/// Outcome of a rival's first run, in the last phase.
enum Outcome {
    Answer(Answer),
    /// It computes nothing.
    Bound,
    /// It is not available, or cannot do the work.
    NotHere,
}

/// Lets a rival do the work once.
fn answer(
    rival: &mut Rival,
    pool: &ThreadPool,
    case: &Case,
    peers: &mut Peers,
) -> io::Result<Outcome> {
    let last = case.steps.map_or(0, |_| 1);
    match rival {
        Rival::Native { work, .. } => {
            pool.install(|| work.run(last));
            Ok(Outcome::Answer(work.answer()))
        }
        Rival::Bound { work, .. } => {
            pool.install(|| work.run(last));
            Ok(Outcome::Bound)
        }
        Rival::Process {
            label,
            module,
            what,
        } => {
            let Some(peer) = peers.get(*module)? else {
                return Ok(Outcome::NotHere);
            };
            if !peer.about.work.iter().any(|work| work == what) {
                return Ok(Outcome::NotHere);
            }
            let threads = pool.current_num_threads();
            if let Err(why) = peer.load(what, case.inputs.files(), &case.options, threads)? {
                eprintln!("{}: {label} is left out: {why}", case.name);
                return Ok(Outcome::NotHere);
            }
            peer.run(what, last, 1)?;
            peer.answer(what).map(Outcome::Answer)
        }
    }
}

/// Times everyone. Returns Tercet's best time per phase, and stores the others' in them.
fn turns(
    pool: &ThreadPool,
    case: &mut Case,
    contenders: &mut [Contender],
    peers: &mut Peers,
    effort: Effort,
) -> io::Result<Vec<f64>> {
    let phases = case.steps.map_or(1, |_| 2);
    // Number of runs per turn, computed from a warm run.
    let runs = |seconds: f64| (effort.turn / seconds).clamp(1.0, 1000.0) as u32;
    let ours = runs(pool.install(|| case.tercet.run(phases - 1)));
    for contender in &mut *contenders {
        contender.runs = runs(contender.run(pool, peers, phases - 1, 1)?);
    }
    let mut best = vec![f64::INFINITY; phases];
    let (start, mut rounds) = (Instant::now(), 0);
    let least = effort.seconds * (contenders.len() + 1) as f64;
    while rounds < effort.rounds || start.elapsed().as_secs_f64() < least {
        for (phase, best) in best.iter_mut().enumerate() {
            let seconds = pool.install(|| shortest(&mut *case.tercet, phase, ours));
            *best = best.min(seconds);
            for contender in &mut *contenders {
                let seconds = contender.run(pool, peers, phase, contender.runs)?;
                contender.best[phase] = contender.best[phase].min(seconds);
            }
        }
        rounds += 1;
    }
    Ok(best)
}
