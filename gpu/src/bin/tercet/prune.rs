//! `tercet prune`: removes heads, channels or weights of a language model.

use std::io::{IsTerminal, stderr};
use std::path::{Path, PathBuf};

use serde::Serialize;
use tercet_host::LanguageModel;
use tercet_host::language::tokenizer::Encoding;
use tercet_host::language::{self, Cost, PruneOptions, PruneReport};

use crate::failure::Failure;
use crate::perplexity::Perplexities;
use crate::progress::{Bar, Steps};
use crate::table::{Align, Table};
use crate::{format, output};

const EXAMPLES: &str = "\
Examples:
  tercet perplexity model.gguf book.txt --record inputs.gguf       what the importance is measured on
  tercet prune model.gguf -o small.gguf --importance inputs.gguf --feed-forward 1024
  tercet prune model.gguf -o small.gguf --importance inputs.gguf --heads 2 --perplexity text.txt
  tercet prune model.gguf -o sparse.gguf --sparsity 0.5            the smallest half of each row
  tercet prune model.gguf -o sparse.gguf --sparsity 0.5 --importance inputs.gguf

OUT is a model that runs, here and in llama.cpp: the same architecture with other sizes. Prune before quantizing: \
columns and single weights are pruned in floats, and in ternary matrices with one scale each, where all other \
weights keep their values.

--heads and --feed-forward keep the N most important of each layer: those that contribute most to its output on the \
recorded text. The file then becomes smaller and faster. A key and value head takes its query heads with it. In a \
bitnet the heads that go keep their places, as the architecture demands: their weights are 0, and attention skips \
them. Blocks of a format need a whole number of them in a row: keep a multiple of 256 \
channels for tq2_0 and tq1_0, of 64 for q2_0, of 32 for others.

--sparsity sets the smallest share of each row to zero: the smallest magnitudes, or with --importance the smallest \
products of magnitude and root mean squared input. The file keeps its size.

JSON (--json): layers[] (heads[] and channels[], the indices of those kept, heads_importance and \
channels_importance, their share of the layer's, weights, zeroed), head_count, head_count_kv, feed_forward_length, \
weights_before, weights_after, bytes_before, bytes_after, seconds; with --perplexity also perplexity, as quantize \
reports it.";

/// Prune a language model: fewer heads and channels, or weights that are zero
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// A GGUF file with a model of the architecture bitnet or llama
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    /// The file to write, .gguf; whole or not at all
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    /// Number of key and value heads to keep in each layer
    #[arg(long, value_name = "N", requires = "importance")]
    heads: Option<usize>,
    /// Number of feed-forward channels to keep in each layer
    #[arg(long, value_name = "N", requires = "importance")]
    feed_forward: Option<usize>,
    /// Share of the weights of each row to set to zero, above 0 and below 1
    #[arg(long, value_name = "SHARE")]
    sparsity: Option<f64>,
    /// The inputs of the matrices on a text: a file of tercet perplexity --record or llama-imatrix
    #[arg(long, value_name = "FILE")]
    importance: Option<PathBuf>,
    /// Score this text with the model before and after
    #[arg(long, value_name = "FILE")]
    perplexity: Option<PathBuf>,
    /// Replace OUT if it exists
    #[arg(long)]
    force: bool,
    /// Report as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let options = PruneOptions {
        heads: arguments.heads,
        feed_forward: arguments.feed_forward,
        sparsity: arguments.sparsity,
        importance: arguments.importance.clone(),
        force: arguments.force,
    };
    // Before anything is written, so that a text that cannot be scored costs nothing.
    let text = arguments.perplexity.as_deref().map(read).transpose()?;
    let before = text.as_ref().map(|text| Scored::of(&arguments.model, text));
    let before = before.transpose()?;
    let pruned = language::prune(&arguments.model, &options, &arguments.output, &Bar::new())?;
    let perplexity = match (text, before) {
        (Some(text), Some(before)) => {
            let after = Scored::of(&arguments.output, &text)?;
            let text = (before.tokens, before.context);
            Some(Perplexities::new(text, &before.cost, &after.cost))
        }
        _ => None,
    };
    if arguments.json {
        return output::json(&Whole {
            pruned: &pruned,
            perplexity,
        });
    }
    let scored = perplexity.map_or_else(String::new, |scored| scored.people());
    output::text(&format!("{}{scored}", people(&pruned)))
}

fn read(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path).map_err(|error| Failure::io(path, "read", &error))
}

/// The score of a text.
struct Scored {
    tokens: usize,
    context: u32,
    cost: Cost,
}

impl Scored {
    fn of(model: &Path, text: &str) -> Result<Self, Failure> {
        let model = LanguageModel::open(model)?;
        let plain = Encoding {
            ends: false,
            ..Encoding::default()
        };
        let tokens = model.tokenizer().encode(text.as_bytes(), plain);
        let tokens = tokens.map_err(Failure::new)?.len();
        let bar = stderr().is_terminal().then(|| Steps::new(tokens as u64));
        let mut done = 0;
        let cost = model.evaluate_with(text, &mut |count| {
            done += count as u64;
            if let Some(bar) = &bar {
                bar.reach(done, "tokens");
            }
        })?;
        let context = u32::try_from(model.context()).unwrap_or(u32::MAX);
        Ok(Self {
            tokens,
            context,
            cost,
        })
    }
}

/// The report in JSON.
#[derive(Serialize)]
struct Whole<'a> {
    #[serde(flatten)]
    pruned: &'a PruneReport,
    #[serde(skip_serializing_if = "Option::is_none")]
    perplexity: Option<Perplexities>,
}

fn people(report: &PruneReport) -> String {
    use Align::Right;
    let mut table = Table::new(&[
        ("layer", Right),
        ("heads", Right),
        ("importance", Right),
        ("channels", Right),
        ("importance", Right),
        ("weights", Right),
        ("set to zero", Right),
    ]);
    let percent = |share: f64| format!("{:.2} %", 100.0 * share);
    for (number, layer) in report.layers.iter().enumerate() {
        table.row([
            number.to_string(),
            layer.heads.len().to_string(),
            percent(layer.heads_importance),
            layer.channels.len().to_string(),
            percent(layer.channels_importance),
            layer.weights.to_string(),
            layer.zeroed.to_string(),
        ]);
    }
    format!(
        "{}\nheads {}:{}, feed-forward {}; {} -> {} weights, {} -> {}, {:.2} s\n",
        table.render(),
        report.head_count,
        report.head_count_kv,
        report.feed_forward_length,
        report.weights_before,
        report.weights_after,
        format::bytes(report.bytes_before),
        format::bytes(report.bytes_after),
        report.seconds,
    )
}
