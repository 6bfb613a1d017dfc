//! `--plan` and `--find-batch`: the memory of a run, without the run.

use serde::Serialize;
use tercet_core::train::Activations;
use tercet_host::measure::resident;
use tercet_host::train::{MemoryPlan, TrainOptions};

use super::Arguments;
use super::material::Material;
use super::texts::Texts;
use crate::failure::Failure;
use crate::format::bytes;
use crate::output;
use crate::table::{Align, Table};

#[derive(Serialize)]
struct Planned {
    #[serde(flatten)]
    plan: MemoryPlan,
    /// What the process has besides: the program, and what making the vocabulary left; 0 if the system does not say.
    process: usize,
    kept: usize,
    total: usize,
    accumulate: usize,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let material = {
        let texts = Texts::read(&arguments.data, arguments.hold)?;
        Material::new(arguments, &texts)?
    };
    // The texts are gone, as in a run; the tokens are the plan's.
    let process = resident().map_or(0, |bytes| bytes as usize);
    let process = process.saturating_sub(size_of::<u32>() * material.corpus.tokens());
    let saves = arguments.checkpoint.is_some();
    // The number of steps takes no memory.
    let options = arguments.options(1, material.parameters);
    let (plan, accumulate) = match arguments.find_batch {
        Some(budget) => {
            let parts = arguments.accumulate.map(|parts| parts as usize);
            let parts = parts.unwrap_or_else(rayon::current_num_threads);
            let one = TrainOptions {
                batch: parts,
                micro: 1,
                ..options
            };
            let least = process + material.plan(&one, saves)?.total();
            if least as u64 > budget {
                return Err(Failure::usage(format_args!(
                    "--find-batch {budget}: parts of one sequence need {least} bytes; --lean, --factored, --activations, \
                     --recompute, a \
                     shorter --context, fewer --threads or a smaller --preset need less"
                )));
            }
            let left = budget.saturating_sub(process as u64);
            (material.largest(&options, (parts, saves), left)?, parts)
        }
        None => {
            let parts = options.batch.div_ceil(options.micro);
            (material.plan(&options, saves)?, parts)
        }
    };
    if arguments.json {
        return output::json(&Planned {
            plan,
            process,
            kept: process + plan.kept(),
            total: process + plan.total(),
            accumulate,
        });
    }
    let mut text = table(&plan, process, &options);
    match arguments.find_batch {
        Some(budget) => text += &found(&plan, process, accumulate, budget),
        None => text += &less(&material, process, &options, saves)?,
    }
    output::text(&text)
}

/// Returns the parts of a plan as a table.
fn table(plan: &MemoryPlan, process: usize, options: &TrainOptions) -> String {
    let mut table = Table::new(&[
        ("memory", Align::Left),
        ("bytes", Align::Right),
        ("for", Align::Left),
    ]);
    let workers = plan.workers;
    let each = |own: usize| {
        let share = format!("{workers} x {}", bytes(own as u64));
        (own.saturating_mul(workers), share)
    };
    let (sums, each_sums) = each(plan.sums);
    let (activations, each_activations) = each(plan.activations);
    let activations_for = format!(
        "{each_activations}: a thread's {} at a time, in {}",
        crate::format::counted(plan.micro as u64, "sequence"),
        options.activations.name(),
    );
    let weights = match options.lean {
        false => "f32",
        true => "16 bits each",
    };
    let moments = match (options.lean && options.adapters.is_none(), options.factored) {
        (false, false) => "AdamW's two, f32",
        (false, true) => "f32, the second by rows and columns",
        (true, false) => "AdamW's two, 8 bits each",
        (true, true) => "8 bits each, the second by rows and columns",
    };
    let (probabilities, each_probabilities) = each(plan.probabilities);
    let probabilities_for = format!("{each_probabilities}: the teacher's, of a part");
    let (teacher, each_teacher) = each(plan.teacher);
    let sums_for = match options.is_in_place(workers) {
        false => format!("{each_sums}: a thread's gradients"),
        true => "gradients of the embedding, and of a tensor at a time".to_owned(),
    };
    let parts = [
        (
            "program",
            process,
            "what this process has now, without tokens",
        ),
        ("weights", plan.weights, weights),
        ("adapters", plan.adapters, "f32, and sums of gradients"),
        ("best weights", plan.best, "for --patience"),
        ("moments", plan.moments, moments),
        ("codes by columns", plan.transposed, "gradients of inputs"),
        ("file", plan.file, "the model, written again at every step"),
        ("tokens", plan.tokens, "the text"),
        ("batches", plan.batches, "in use, and read in advance"),
        ("sums", sums, &*sums_for),
        ("activations", activations, &*activations_for),
        ("probabilities", probabilities, &*probabilities_for),
    ];
    let mut row = |name: &str, size: usize, what: &str| {
        if size > 0 {
            table.row([name, &*bytes(size as u64), what]);
        }
    };
    for (name, size, what) in parts {
        row(name, size, what);
    }
    let (offloaded, each_offloaded) = each(plan.offloaded);
    row(
        "kept",
        process + plan.kept(),
        "from the first step to the last",
    );
    row(
        "teacher",
        teacher,
        &format!("{each_teacher}: added while it reads a part, in a step"),
    );
    row("writing", plan.writing, "added while the model is written");
    row(
        "evaluation",
        plan.evaluation,
        "added while the held-out text is evaluated",
    );
    row(
        "checkpoint",
        plan.checkpoint,
        "added while a checkpoint is written",
    );
    row(
        "total",
        process + plan.total(),
        "kept, and the largest of those added",
    );
    row(
        "in files",
        offloaded,
        &format!("{each_offloaded}: activations, with --offload"),
    );
    table.render()
}

/// Returns in a line how options change the total.
fn less(
    material: &Material,
    process: usize,
    options: &TrainOptions,
    saves: bool,
) -> Result<String, Failure> {
    let mut ways = Vec::new();
    let one = TrainOptions {
        micro: 1,
        ..*options
    };
    let twice = |options: &TrainOptions| TrainOptions {
        recompute: true,
        ..*options
    };
    let mut whole = TrainOptions {
        micro: options.batch,
        ..*options
    };
    whole.adamw.clip = f32::INFINITY;
    let accumulate = format!("--accumulate {}", options.batch);
    let lean = |options: &TrainOptions| TrainOptions {
        lean: true,
        ..*options
    };
    let factored = TrainOptions {
        factored: options.adapters.is_none(),
        ..*options
    };
    let fewer = TrainOptions {
        activations: Activations::Int8,
        ..*options
    };
    let others = [
        ("--lean".to_owned(), lean(options)),
        ("--factored".to_owned(), factored),
        ("--activations int8".to_owned(), fewer),
        ("--recompute".to_owned(), twice(options)),
        ("--accumulate 1 --clip none".to_owned(), whole),
        (accumulate.clone(), one),
        (format!("{accumulate} --recompute"), twice(&one)),
        (
            format!("{accumulate} --recompute --lean"),
            lean(&twice(&one)),
        ),
    ];
    let total = material.plan(options, saves)?.total();
    for (name, other) in others {
        let own = material.plan(&other, saves)?.total();
        if own < total {
            ways.push(format!("{} with {name}", bytes((process + own) as u64)));
        }
    }
    Ok(match ways.is_empty() {
        true => String::new(),
        false => format!("less: {}\n", ways.join(", ")),
    })
}

/// Returns in two lines which batch was found, and how to train with it.
fn found(plan: &MemoryPlan, process: usize, accumulate: usize, budget: u64) -> String {
    format!(
        "a batch of {} is the largest in {}: {} of {}\nuse: --batch {} --accumulate {accumulate}\n",
        plan.batch,
        crate::format::counted(accumulate as u64, "part"),
        bytes((process + plan.total()) as u64),
        bytes(budget),
        plan.batch,
    )
}
