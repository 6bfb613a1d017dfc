//! `tercet train`: trains a ternary language model on texts, in integers.

mod begun;
mod material;
mod plan;
mod profile;
mod rates;
mod run;
mod texts;
mod told;

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use tercet_core::block::Format;
use tercet_core::quant::ternary::Rule;
use tercet_core::train::{Activations, AdamW, Fall};
use tercet_host::language::Parameters;
use tercet_host::simd::{Backend, Isa};
use tercet_host::train::{Preset, TrainOptions, Watch};

use crate::failure::Failure;

/// Maximum number of tokens per sequence.
const MOST_CONTEXT: u32 = 1024;

const EXAMPLES: &str = "\
Examples:
  tercet train book.txt -o book.gguf                                   small; minutes on a laptop
  tercet train book.txt -o book.gguf --minutes 3 --batch 4 --vocabulary 4096   soon whole words
  tercet train texts/ -o model.gguf --preset tiny --minutes 30         as many steps as fit; 1.5 is 90 s
  tercet train book.txt -o book.gguf --checkpoint run                  Ctrl-C saves a checkpoint ...
  tercet train book.txt -o book.gguf --checkpoint run --resume         ... from which this continues
  cat *.txt | tercet train - -o model.gguf --steps 500 --report run    curves and held-out text
  tercet train more.txt --from book.gguf -o more.gguf                  starts from a model's weights
  tercet train more.txt --from book.gguf --adapters 8 -o more.gguf     ... and trains few values beside them
  tercet train book.txt --teacher large.gguf -o small.gguf             learns from a larger model too
  tercet train book.txt -o book.gguf --steps 9000 --every 100 --plateau 3 --patience 9
  tercet perplexity book.gguf book.txt --record inputs.gguf            what channels and heads are worth ...
  tercet train book.txt --from book.gguf --channels 256 --importance inputs.gguf -o small.gguf
  tercet train book.txt --from book.gguf --heads 1 --importance inputs.gguf -o few.gguf
  tercet perplexity llama.gguf book.txt --record inputs.gguf           makes a llama ternary ...
  tercet train book.txt --from llama.gguf --importance inputs.gguf -o ternary.gguf
  tercet train book.txt -o book.gguf --zeros 0.7                       seven of ten weights are 0
  tercet train texts/ -o model.gguf --keep 0.1 --clusters 50           a tenth, of all kinds of text
  tercet train book.txt --preset small --plan                          the memory that a run needs
  tercet train book.txt --preset small --find-batch 4000000000         the largest batch for 4 GB
  tercet train book.txt -o book.gguf --preset small --lean             a third of the memory for weights
  tercet train book.txt -o book.gguf --lean --factored --activations int8    ... and less of it
  tercet train book.txt --preset small --find-lr                       a learning rate, from 100 steps
  tercet train book.txt -o book.gguf --steps 20 --bottlenecks          where the time of steps goes
  tercet generate book.gguf -p \"The \" --temp 0.8                       text from the new model

The bytes of the file depend only on the texts, their order and the options up to --activations, not on threads, \
--accumulate, --recompute, --offload, the processor or interruptions. All products and all sums over tokens are computed in \
integers. Training evaluates the model that the file will hold, so the figures for the held-out text are those that \
`tercet perplexity` prints for the file.

DATA are text files, folders (all files in them, ordered by the bytes of their paths) or -, standard input. The last \
part of the text (--hold) is held out and never trained on. The vocabulary is made from the rest: bytes and the most \
frequent pairs. With --tokenizer it is the vocabulary of a model instead.

--keep makes a run on a large text shorter: the vocabulary is that of the whole text, but the steps use only some pieces \
of it. With --clusters, k-means groups the pieces by the rare tokens that they have, and each cluster gives as many of \
them, or all it has.

--from with a llama converts it to a bitnet: its matrices, gains and embedding are the first weights, and steps train \
them as ternary ones. A bitnet has two norms per layer that a llama lacks. Their gains are made so that on average the \
norms change nothing: from the sizes of inputs in --importance, which `tercet perplexity` measures on a text such as \
DATA. The report has the held-out cost of the llama, and as step 0 that of the model that is only rounded. --rule \
optimal rounds with the least squared error. A llama with a head that is not its embedding, with biases, with a window \
of attention, with scaling of RoPE other than linear, or with a width that is no multiple of 256 is refused.

--channels makes the matrices of the feed-forward network smaller in the file. A channel's importance is the mean square \
of its values as recorded, times the squares of its weights in the matrix after it. The files of a bitnet need as many \
values in heads as the width, so with --heads they keep their size, and the weights of removed heads are 0: those that \
make queries, keys and values, and those that take the head's output. Their gradients are 0, so they stay 0. Attention \
skips heads whose values are all 0. A key head's importance is the sum of those of its query heads' outputs.

The learning rate rises over --warmup steps and then falls to the share --last of its highest value, as a cosine. \
With --schedule two-stage it falls in a line, and the second half of the steps uses two thirds of the rate and no \
weight decay, as BitNet does. --plateau halves the rate when evaluations stop improving; --patience ends the run. \
Evaluations are sums of integers, so every machine makes the same decisions.

With --teacher, a step also runs the teacher on its sequences. The gradient is (1 - SHARE) times that of the text's \
next token, plus SHARE times T times the difference of both models' probabilities at temperature T. Reported costs \
remain those of the text. With --channels and the same model for --from and --teacher, a smaller model learns from its \
larger self. With --teacher-cache, the teacher is not asked again about a sequence that an earlier run with the same \
text, seed and context had, or an earlier epoch of --keep, whose sequences repeat. The teacher's context must hold a \
sequence.

With --lean, updates that are smaller than a step of the 16 bits are kept on average: a weight is rounded up or down at \
random, with a chance that depends on how near it is. The draws depend on --seed, the step and the weight alone, so the \
bytes of the file are still the same on every machine.

With --factored (Adafactor), the second moment of a weight is its row's factor times its column's, divided by the mean of \
the rows' factors; a factor is a running mean of squares of gradients.

With --activations, the forward pass is the same, and the gradients are those of the rounded values. int8 has a scale for \
each token and each vector. With --recompute, what is kept are the inputs of layers, in f32: the gradients are those without it, \
and --activations saves no memory then.

--adapters (LoRA) keeps the weights of --from and trains a change of each ternary matrix: the product of a matrix of N \
columns and one of N rows. The embedding and the gains stay. Only the change has moments, and a checkpoint has only the \
change. The file has the changed matrices: its size is that of --from, and it is read in the same way. The norm in \
reports is that of the change's gradients.

Sums of gradients take 8 bytes per weight and thread. With --accumulate 1, and --clip none or --adapters, each tensor's \
sums are used as soon as they are complete, and only those of the embedding and of one more tensor (with --recompute, \
of one layer) are in memory.

With --offload, the system has as much of the files in memory as there is room, and writes the rest to the disk, where \
steps then wait for it. The files are written in full at the beginning of the first step, so that a disk without space \
for them is an error there.

--minutes fixes the number of steps before the first one, since the learning rate is planned for it. That number is an \
estimate from the time of a few steps: other work on the machine makes the run longer. The line that names it also \
says how long the run should take.

--plan computes the run's memory from the sizes that it will allocate, and adds what the process has after it has \
read the texts. Only the sequences that the threads process at the same time take memory, \
not the whole batch: --accumulate and --threads set their number. Files that are mapped are not counted: the teacher's, \
and those of --checkpoint's tokens and of --offload. --find-batch computes the plan of larger and larger \
parts, and tries none. Neither writes anything, so -o may be left out.

--find-lr takes steps with rates that rise by the same factor each, and smooths each loss with those of N / 20 steps on \
each side. It ends early if a loss is four times the least or numbers are no longer finite. The proposal is a tenth of \
the rate with the least smoothed loss, the rule \"minimum\" of fastai's lr_find; the test is L. N. Smith's (arXiv \
1506.01186).

--bottlenecks reports how the time of the steps divides into operations, how close products come to this machine's \
peak, and which operation would help most if it were faster. --trace shows the steps on a timeline. The bytes of the \
file stay the same.

With --checkpoint DIR, Ctrl-C writes DIR/checkpoint.safetensors, from which --resume continues. The tokens of the \
text are then in a memory-mapped file in DIR instead of in memory.

Presets (width, feed-forward, layers, heads, tokens, context): nano 256, 512, 2, 4:2, 512, 128; tiny 256, 768, 4, \
4:2, 1024, 256; small 512, 1536, 8, 8:2, 4096, 512; base 1024, 3072, 16, 16:4, 16384, 1024.

JSON (--json), a line each: begun (at which step), parameters, tokens, held_out_tokens, steps, batch, rate, teacher (its path, \
or null), teacher_cache (with --teacher-cache: sequences, how many are in it at first, and the bytes of each; else null), kept (with --keep: windows of the text, how many are kept, and both numbers of each of the --clusters; else null), pruned (with --channels: channels per layer before, how many are kept, and their share of \
the importance; else null), kept_heads (with --heads: key heads per layer, how many are kept, and their share of the importance; else null), adapters (with --adapters: the rank and the number of trained values; else null), converted (for a llama: its \
architecture, and its cost of the held-out text as below; else null); step, loss (a sum of units of 2^-32 nats), targets, mean, rate, norm, tokens_per_second, memory (the most bytes that the \
process had; null where the system does not say); evaluated (the step; 0 for a converted model that is only rounded), sum, count, bytes, mean, bits_per_byte, \
verdict (best, waited, halved, over; null where none was due); done (steps), kept (the step whose weights the file \
has), file, digest (null, as kept, unless the run is over; FNV-1a of 64 bits over the file's bytes), bytes, memory, \
seconds.

JSON of --plan and --find-batch, in bytes: batch (sequences), micro (the sequences of a part), workers, weights, best, moments, \
adapters, transposed, file, tokens, batches; sums, activations, offloaded (of one worker; with --offload what its file has, which activations then lack; \
else 0), probabilities (of one worker; with --teacher); writing, evaluation, checkpoint, and teacher (of one worker; one \
at a time, in addition); process (the program and what it has read), kept (by the whole run), total (the most at a time); accumulate (parts \
of a batch).

JSON of --find-lr, a line each: step, rate, loss, smooth (nats per token); proposed (a rate, or null), least (a step as \
above, or null), steps.";

/// Train a ternary language model, with the same bytes on every machine
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Texts: files, folders, or - for standard input
    #[arg(value_name = "DATA", required = true)]
    data: Vec<PathBuf>,
    /// The file to write, .gguf; whole or not at all
    #[arg(short, long, value_name = "OUT", required_unless_present_any = ["plan", "find_batch", "find_lr"])]
    output: Option<PathBuf>,
    /// The size of the model [default: nano]
    #[arg(long, value_name = "SIZE", value_parser = preset())]
    preset: Option<Preset>,
    /// Start with the weights of this model, a GGUF file of a bitnet, and its size and vocabulary. A llama of any
    /// supported type is converted to a bitnet, with --importance
    #[arg(long, value_name = "MODEL", conflicts_with_all = ["preset", "vocabulary", "tokenizer"])]
    from: Option<PathBuf>,
    /// Keep N channels of the feed-forward network of --from per layer, those with the most --importance, and train on
    /// (pruning)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), requires_all = ["from", "importance"])]
    channels: Option<u32>,
    /// Keep N key heads of --from per layer, with the query heads that they serve, those with the most --importance; the
    /// weights of the others become 0 and stay 0 (pruning)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), requires_all = ["from", "importance"], conflicts_with = "adapters")]
    heads: Option<u32>,
    /// The sizes of the inputs of matrices, for --channels, --heads and to convert a llama: a GGUF file that `tercet perplexity
    /// MODEL TEXT --record` or llama-imatrix wrote
    #[arg(long, value_name = "FILE", requires = "from")]
    importance: Option<PathBuf>,
    /// Keep the weights of --from, and train a change of each matrix by two small ones with N rows and columns (low-rank
    /// adapters, LoRA), to use less memory. The file has the changed matrices
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..), requires = "from")]
    adapters: Option<u16>,
    /// Steps of the whole run, for which the learning rate is planned [default: 1000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), conflicts_with = "minutes")]
    steps: Option<u64>,
    /// Do as many steps as should fit in M minutes, such as 1.5: an estimate from a few steps, which other load on the
    /// machine makes longer
    #[arg(long, value_name = "M", value_parser = minutes)]
    minutes: Option<f64>,
    /// Sequences per step
    #[arg(long, value_name = "B", value_parser = clap::value_parser!(u32).range(1..), default_value_t = 16)]
    batch: u32,
    /// Tokens per sequence, which become the model's context [default: the preset's]
    #[arg(long, value_name = "C", value_parser = clap::value_parser!(u32).range(2..=1024))]
    context: Option<u32>,
    /// Maximum size of the vocabulary; 259 are only bytes [default: the preset's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(259..=65_536), conflicts_with = "tokenizer")]
    vocabulary: Option<u32>,
    /// Use the vocabulary of this model, a GGUF file
    #[arg(long, value_name = "MODEL")]
    tokenizer: Option<PathBuf>,
    /// Learn from this model too, a GGUF file of any supported type and architecture: from the probabilities that it gives
    /// all tokens (distillation). Its vocabulary is that of the new model
    #[arg(long, value_name = "MODEL", conflicts_with_all = ["vocabulary", "tokenizer"])]
    teacher: Option<PathBuf>,
    /// The temperature at which both models' probabilities are compared: more than 1 shows more of what the teacher
    /// takes for less likely
    #[arg(long, value_name = "T", value_parser = positive, requires = "teacher", default_value_t = 2.0)]
    temperature: f32,
    /// The teacher's share of what is learned; the rest is the text's next token
    #[arg(long, value_name = "SHARE", value_parser = fraction, requires = "teacher", default_value_t = 0.5)]
    teacher_share: f32,
    /// Keep the logits of --teacher in this file, and ask it about no sequence whose logits are there: 4 bytes per token
    /// of a sequence and of the vocabulary
    #[arg(long, value_name = "FILE", requires = "teacher")]
    teacher_cache: Option<PathBuf>,
    /// The share of the text that is held out, from its end
    #[arg(long, value_name = "SHARE", value_parser = share, default_value_t = 0.05)]
    hold: f64,
    /// Train on this share of the text, chosen at random in pieces of --context tokens
    #[arg(long, value_name = "SHARE", value_parser = share)]
    keep: Option<f64>,
    /// Choose what is kept evenly over K clusters of similar pieces, so that what is rare in the text is less rare
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..), requires = "keep")]
    clusters: Option<u32>,
    /// Which weights are 1 or -1: those above half of the mean magnitude, as BitNet's, or those that leave the least
    /// squared error
    #[arg(long, value_name = "RULE", value_parser = rule(), default_value = "absmean")]
    rule: Rule,
    /// Make at least this share of the ternary weights 0: the smallest ones of each matrix in each step (pruning)
    /// [default: as the rule gives, about a third]
    #[arg(long, value_name = "SHARE", value_parser = open_share)]
    zeros: Option<f32>,
    /// How the learning rate falls
    #[arg(long, value_name = "FALL", value_parser = fall(), default_value = "cosine")]
    schedule: Fall,
    /// The highest learning rate [default: 0.002, with --from 0.0005; times the root of --batch / 16]
    #[arg(long, value_name = "R", value_parser = positive)]
    rate: Option<f32>,
    /// Steps until the highest learning rate [default: a twentieth of all]
    #[arg(long, value_name = "N")]
    warmup: Option<u64>,
    /// The share of the highest rate that remains at the end
    #[arg(long, value_name = "SHARE", value_parser = fraction, default_value_t = 0.1)]
    last: f32,
    /// Halve the learning rate after this many evaluations in a row that are no better than the best
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    plateau: Option<u32>,
    /// End after this many of them; OUT is then the model at its best
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    patience: Option<u32>,
    /// The share of a weight that a learning rate of 1 removes in a step
    #[arg(long, value_name = "W", value_parser = fraction, default_value_t = 0.1)]
    decay: f32,
    /// The norm to which the gradients of all weights are clipped, or none
    #[arg(long, value_name = "NORM", value_parser = clip, default_value = "1")]
    clip: f32,
    /// Seed of the first weights and the order of the text
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Keep weights in 16 bits and both moments in 8, to use less memory: 4.2 bytes per weight instead of 12. Rounding
    /// is random by --seed; the file is another one than without
    #[arg(long)]
    lean: bool,
    /// Keep the second moments of a matrix as a factor per row and one per column: 8 bytes per weight instead of 12, with
    /// --lean 3.2 instead of 4.2. The file is another one than without
    #[arg(long, conflicts_with = "adapters")]
    factored: bool,
    /// Keep the values of layers for the backward pass in this type. The file is another one with each
    #[arg(long, value_name = "TYPE", value_parser = activations(), default_value = "f32")]
    activations: Activations,
    /// Split a step's sequences into this many parts, to use less memory: each thread processes one part at a time
    /// [default: four sequences a part]
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..))]
    accumulate: Option<u32>,
    /// Compute layers twice, to use less memory (gradient checkpointing)
    #[arg(long)]
    recompute: bool,
    /// Keep the values of layers in mapped files in this folder, one for each thread, to use less memory
    #[arg(long, value_name = "DIR")]
    offload: Option<PathBuf>,
    /// Print how much memory the run needs and for what, and train nothing
    #[arg(long)]
    plan: bool,
    /// Print the largest batch that fits into this much memory, and train nothing: in --accumulate parts, or else in one
    /// part per thread
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u64).range(1..), conflicts_with_all = ["batch", "plan"])]
    find_batch: Option<u64>,
    /// Take N steps with learning rates that rise from 0.00001 to 1, print the losses, propose a rate, and write nothing
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "100", require_equals = true, value_parser = clap::value_parser!(u64).range(2..), conflicts_with_all = ["plan", "find_batch", "rate", "steps", "minutes", "checkpoint"])]
    find_lr: Option<u64>,
    /// Write the state that the run needs to continue into this folder, at every evaluation and when it is interrupted
    #[arg(long, value_name = "DIR")]
    checkpoint: Option<PathBuf>,
    /// Continue the run in --checkpoint
    #[arg(long, requires = "checkpoint", conflicts_with = "minutes")]
    resume: bool,
    /// End after this many steps of the whole run, with a checkpoint
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), requires = "checkpoint")]
    stop_after: Option<u64>,
    /// Evaluate on the held-out text every so many steps [default: a tenth of all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    every: Option<u64>,
    /// The type of the matrices: the same model in 2.06 or 1.69 bits per weight
    #[arg(long, value_name = "TYPE", value_parser = format(), default_value = "tq2_0")]
    to: Format,
    /// The instruction set to compute with, on --threads threads; no bit depends on it [default: the best here]
    #[arg(long, value_name = "NAME", value_parser = isa())]
    backend: Option<Isa>,
    /// Write report.html, with curves, and held-out.txt into this folder
    #[arg(long, value_name = "DIR")]
    report: Option<PathBuf>,
    /// Replace OUT, a checkpoint that is not resumed, and the files of --report
    #[arg(long)]
    force: bool,
    /// Report as JSON lines
    #[arg(long)]
    json: bool,
}

fn preset() -> impl TypedValueParser<Value = Preset> {
    PossibleValuesParser::new(Preset::ALL.map(Preset::name))
        .try_map(|name| Preset::from_name(&name).ok_or("not one of the sizes"))
}

fn fall() -> impl TypedValueParser<Value = Fall> {
    PossibleValuesParser::new(Fall::ALL.map(Fall::name)).map(|name| {
        let mut all = Fall::ALL.into_iter();
        all.find(|fall| fall.name() == name).unwrap_or(Fall::Cosine)
    })
}

fn activations() -> impl TypedValueParser<Value = Activations> {
    PossibleValuesParser::new(Activations::ALL.map(Activations::name)).map(|name| {
        let mut all = Activations::ALL.into_iter();
        let found = all.find(|activations| activations.name() == name);
        found.unwrap_or_default()
    })
}

fn rule() -> impl TypedValueParser<Value = Rule> {
    crate::words::words(&[("absmean", Rule::AbsMean), ("optimal", Rule::Optimal)])
}

fn format() -> impl TypedValueParser<Value = Format> {
    PossibleValuesParser::new(["tq2_0", "tq1_0"]).map(|name| match name.as_str() {
        "tq1_0" => Format::Tq1_0,
        _ => Format::Tq2_0,
    })
}

fn isa() -> impl TypedValueParser<Value = Isa> {
    PossibleValuesParser::new(Isa::ALL.map(Isa::name))
        .try_map(|name| Isa::from_name(&name).ok_or("not one of the instruction sets"))
}

/// Parses a number that satisfies `right`.
fn number<T: std::str::FromStr>(
    text: &str,
    right: impl Fn(&T) -> bool,
    what: &str,
) -> Result<T, String> {
    let number = text.parse().ok().filter(right);
    number.ok_or_else(|| format!("{what} is expected"))
}

fn minutes(text: &str) -> Result<f64, String> {
    number(
        text,
        |x: &f64| *x > 0.0 && x.is_finite(),
        "a number above 0",
    )
}

fn share(text: &str) -> Result<f64, String> {
    number(
        text,
        |x: &f64| *x > 0.0 && *x < 1.0,
        "a number between 0 and 1",
    )
}

fn open_share(text: &str) -> Result<f32, String> {
    number(
        text,
        |x: &f32| *x > 0.0 && *x < 1.0,
        "a number between 0 and 1",
    )
}

fn positive(text: &str) -> Result<f32, String> {
    number(
        text,
        |x: &f32| *x > 0.0 && x.is_finite(),
        "a number above 0",
    )
}

fn clip(text: &str) -> Result<f32, String> {
    match text {
        "none" => Ok(f32::INFINITY),
        _ => number(
            text,
            |x: &f32| *x > 0.0 && x.is_finite(),
            "a number above 0, or none,",
        ),
    }
}

fn fraction(text: &str) -> Result<f32, String> {
    number(
        text,
        |x: &f32| (0.0..=1.0).contains(x),
        "a number from 0 to 1",
    )
}

impl Arguments {
    /// True if the command only answers a question: it writes nothing.
    const fn asks(&self) -> bool {
        self.plan || self.find_batch.is_some() || self.find_lr.is_some()
    }

    /// Returns the size of the model.
    fn preset(&self) -> Preset {
        self.preset.unwrap_or(Preset::Nano)
    }

    /// Returns the options of a run of so many steps for a model with these parameters.
    fn options(&self, steps: u64, parameters: Parameters) -> TrainOptions {
        let defaults = TrainOptions::new(Parameters {
            context_length: self
                .context
                .unwrap_or(parameters.context_length.min(MOST_CONTEXT)),
            ..parameters
        });
        let rate = if self.from.is_some() { 5e-4 } else { 2e-3 };
        let batch = self.batch as usize;
        TrainOptions {
            steps,
            batch,
            rule: self.rule,
            zeros: self.zeros,
            heads: self.heads.map(|heads| heads as usize),
            seed: self.seed,
            fall: self.schedule,
            // A root is rounded once on any machine.
            rate: self
                .rate
                .unwrap_or(rate * (self.batch as f32 / 16.0).sqrt()),
            warmup: self.warmup.unwrap_or(steps.div_ceil(20)),
            last: self.last,
            adamw: AdamW {
                decay: self.decay,
                clip: self.clip,
                ..AdamW::DEFAULT
            },
            watch: Watch {
                every: self.every.unwrap_or(steps.div_ceil(10)),
                plateau: self.plateau,
                patience: self.patience,
            },
            lean: self.lean,
            factored: self.factored,
            activations: self.activations,
            adapters: self.adapters.map(usize::from),
            micro: match self.accumulate {
                Some(parts) => batch.div_ceil(parts as usize),
                None => defaults.micro.min(batch),
            },
            recompute: self.recompute,
            ..defaults
        }
    }
}

impl Arguments {
    /// Makes the requested instruction set that of the whole process, before any work.
    pub(crate) fn settle(&self) -> Result<(), Failure> {
        match self.backend {
            Some(isa) => Ok(Backend::new(isa)?.choose()?),
            None => Ok(()),
        }
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    match arguments.find_lr {
        Some(steps) => rates::run(arguments, steps),
        None if arguments.asks() => plan::run(arguments),
        None => run::run(arguments),
    }
}
