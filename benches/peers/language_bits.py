"""Whether a language model's logits depend on instruction sets, threads and batches, in llama.cpp and in Tercet: one line of a table a run.

    python language_bits.py [--tercet tercet] [--prompt TEXT] [--tokens 32] [--threads 1,2] LLAMA MODEL…

LLAMA is llama.cpp's library libllama, beside one library libggml-cpu-….so an instruction set, as in the npm package @node-llama-cpp/linux-x64. Every
run is a process of its own, and loads one of those libraries; those not for this processor are left out. Both programs evaluate the prompt and go on
with the most likely token. A digest is FNV-1a of 64 bits over the logits that the tokens were taken from, as float32. The cost is that of the prompt's
tokens after its first: Tercet adds integers (`tercet perplexity`), and of llama.cpp's logits it is computed in float64, the same way for all.
llama.cpp chooses flash attention if it can; some of its runs do without. The interpreter needs NumPy.
"""

import argparse
import glob
import json
import os
import shlex
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
WORKER = os.path.join(HERE, "../../host/tests/reference/language_llama.py")
PROMPT = (
    "The moon was low over the hills, and nobody in the village slept. An old man came down the road with a lamp, and he asked at"
    " every door whether they had seen the king, who"
)
HEADS = ["program", "kernels", "threads", "prompt in steps of", "attention", "digest of logits", "same text", "cost of the prompt, nats"]


def run(command, **more):
    return subprocess.run(command, capture_output=True, text=True, **more)


def tercet(command, model, prompt, tokens, threads, backend, options):
    """Digest, tokens, and the cost of the prompt."""
    begin = [*command, "--threads", str(threads)]
    end = ["--backend", backend, *options, "--json"]
    generate = [*begin, "generate", model, "-p", prompt, "-n", str(tokens), "--temp", "0", *end]
    found = json.loads(run(generate, check=True).stdout)
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write(prompt)
        file.flush()
        cost = json.loads(run([*begin, "perplexity", model, file.name, *end], check=True).stdout)
    return found["digest"], found["tokens"], cost["sum"] / 2**32, cost["count"]


def llama(library, kernels, model, prompt, tokens, threads, batch, flash):
    """The same of llama.cpp; None if the kernels are not for this processor."""
    arguments = ["bits", library, model, kernels, str(threads), str(batch), flash, str(tokens), prompt]
    done = run([sys.executable, WORKER, *arguments])
    if "not for this processor" in done.stderr:
        return None
    if done.returncode != 0:
        sys.exit(done.stderr)
    found = json.loads(done.stdout)
    return found["digest"], found["tokens"], found["nats"], found["count"]


def own_rows(asked, model):
    info = json.loads(run([*asked.tercet, "info", "--json"], check=True).stdout)
    for backend in info["instruction_sets"]["found"]:
        for threads in asked.threads:
            yield ["Tercet", backend, threads, "64", "its own"], tercet(asked.tercet, model, asked.prompt, asked.tokens, threads, backend, [])
    # As on a microcontroller: token by token.
    edge = ["--profile", "edge", "--edge-memory", str(1 << 32)]
    yield ["Tercet", "scalar", 1, "1", "its own"], tercet(asked.tercet, model, asked.prompt, asked.tokens, 1, "auto", edge)


def other_rows(asked, model):
    found = glob.glob(os.path.join(os.path.dirname(os.path.abspath(asked.llama)), "libggml-cpu-*.so"))
    if not found:
        sys.exit(f"no libggml-cpu-*.so beside {asked.llama}")
    for kernels in sorted(found):
        name = os.path.basename(kernels).removeprefix("libggml-cpu-").removesuffix(".so")
        runs = [(threads, batch, "auto") for threads in asked.threads for batch in (0, 1)]
        runs += [(asked.threads[0], batch, "off") for batch in (0, 1)]
        for threads, batch, flash in runs:
            result = llama(asked.llama, kernels, model, asked.prompt, asked.tokens, threads, batch, flash)
            if not result:
                break
            yield ["llama.cpp", name, threads, "1" if batch else "all", "default" if flash == "auto" else "not flash"], result


def table(heads, rows):
    """Lines of Markdown, with columns of equal width."""
    widths = [max(len(row[at]) for row in [heads, *rows]) for at in range(len(heads))]
    rule = ["-" * width for width in widths]
    for row in [heads, rule, *rows]:
        print("| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths)) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tercet", default="tercet", type=shlex.split)
    parser.add_argument("--prompt", default=PROMPT)
    parser.add_argument("--tokens", default=32, type=int)
    parser.add_argument("--threads", default="1,2", type=lambda text: [int(word) for word in text.split(",")])
    parser.add_argument("llama")
    parser.add_argument("models", nargs="+")
    asked = parser.parse_args()
    for model in asked.models:
        lines, sums, counts = [], [], set()
        for rows in (own_rows, other_rows):
            digests, costs, first = set(), set(), None
            for names, (digest, tokens, nats, count) in rows(asked, model):
                first = first or tokens
                same = sum(1 for a, b in zip(first, tokens) if a == b) if tokens != first else len(tokens)
                lines.append([*map(str, names), digest, f"{same} of {len(first)}", f"{nats:.9f}"])
                digests.add(digest)
                costs.add(nats)
                counts.add(count)
            program = lines[-1][0]
            runs = sum(1 for line in lines if line[0] == program)
            sums.append(f"{program}: {runs} runs, {len(digests)} digest{'s' * (len(digests) > 1)}, {len(costs)} cost{'s' * (len(costs) > 1)}.")
        if len(counts) > 1:
            sys.exit(f"{model}: the programs make different tokens of the prompt")
        print(f"### {os.path.basename(model)}\n\n{counts.pop() + 1} tokens of prompt, {len(first)} drawn. {' '.join(sums)}\n")
        table(HEADS, lines)
        print(flush=True)


main()
