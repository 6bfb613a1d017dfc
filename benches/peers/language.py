"""Tokens a second of language models by Tercet and by others, in turns, of the same weights: one line of a table a model and number of threads.

    python language.py [--tercet tercet] [--llama-bench llama-bench] [--ik PYTHON] [--bitnet-cpp PROGRAM]
                       [--words 100] [--text 100] [--rounds 2] [--threads 1,2] FILE MODEL…

FILE is prose, whose first WORDS words are the prompt and whose first four begin the text; the others make up their own prompts, of as many tokens. All
but FILE, MODEL and PYTHON may have arguments. Peers that are not at hand have no columns:

llama.cpp      llama-bench, with the file as it is
ik_llama.cpp   if PYTHON has the package ik-llama-cpp-python; ternary models requantized to IQ2_BN, as it has no other kernels for them
bitnet.cpp     PROGRAM is what bitnet-cpp/ compiles to; ternary models alone, as I2_S

Of each the best of all rounds counts: on a quiet machine only. What is compared is not the same work: llama.cpp makes activations int8 by blocks,
bitnet.cpp by rows, Tercet by rows for `bitnet` models and 16 bits a row for others; and Tercet draws its tokens.
"""

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
WORKER = os.path.join(HERE, "../../host/tests/reference/language_llama.py")
IK_FOLDER = "import importlib.util; print(importlib.util.find_spec('ik_llama_cpp').submodule_search_locations[0])"


def output(command):
    """What a command writes."""
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


class Peer:
    """Its `speed(model, prompt, text, threads)` is tokens a second of a prompt and of a text of so many tokens."""

    def file(self, model, i2_s, folder):
        """The file that it reads of a model, whose I2_S is None if it is not ternary; None if there is none."""
        return model


class LlamaCpp(Peer):
    name = "llama.cpp"

    def __init__(self, command):
        self.command = command

    def speed(self, model, prompt, text, threads):
        """Without llama-bench's own repetitions."""
        run = [*self.command, "-m", model, "-t", str(threads), "-p", str(prompt), "-n", str(text), "-r", "1", "-o", "json"]
        speed = {(test["n_prompt"], test["n_gen"]): test["avg_ts"] for test in json.loads(output(run))}
        return speed[prompt, 0], speed[0, text]


class Ik(Peer):
    name = "ik_llama.cpp"

    def __init__(self, python):
        self.python = python
        self.quantize = os.path.join(output([python, "-c", IK_FOLDER]).strip(), "bin", "llama-quantize")

    def file(self, model, i2_s, folder):
        if not i2_s:
            return model
        made = os.path.join(folder, "ik.gguf")
        output([self.quantize, "--allow-requantize", i2_s, made, "IQ2_BN"])
        return made

    def speed(self, model, prompt, text, threads):
        found = json.loads(output([self.python, WORKER, "speed", "ik", model, str(threads), str(prompt), str(text)]))
        return found["prompt"], found["text"]


class BitnetCpp(Peer):
    name = "bitnet.cpp"

    def __init__(self, command):
        self.command = command

    def file(self, model, i2_s, folder):
        return i2_s

    def speed(self, model, prompt, text, threads):
        found = json.loads(output([*self.command, model, str(threads), str(prompt), str(text)]))
        return found["prompt"], found["text"]


def generate(command, model, prompt, text, threads):
    """What Tercet says of a prompt and as many tokens."""
    return json.loads(output([*command, "--threads", str(threads), "generate", model, "-p", prompt, "-n", str(text), "--json"]))


def tercet(command, model, words, text, threads):
    """Tokens a second of the prompt and of the text, tokens of the prompt, and who multiplied."""
    prompt = generate(command, model, " ".join(words), 1, threads)
    text = generate(command, model, " ".join(words[:4]), text, threads)
    return prompt["prompt_tokens_per_second"], text["decode_tokens_per_second"], prompt["prompt_tokens"], prompt["engine"]


def as_i2_s(command, model, folder):
    """The model in I2_S, or None if it is not a ternary one."""
    made = os.path.join(folder, "i2_s.gguf")
    tensors = json.loads(output([*command, "inspect", model, "--json"]))["tensors"]
    if not any(tensor["dtype"] in ("tq1_0", "tq2_0", "q2_0") for tensor in tensors):
        return None
    output([*command, "quantize", model, "--to", "i2_s", "-o", made, "--force"])
    return made


def found(asked):
    """The peers at hand."""
    if shutil.which(asked.llama_bench[0]):
        yield LlamaCpp(asked.llama_bench)
    if asked.ik:
        yield Ik(asked.ik)
    if asked.bitnet_cpp:
        yield BitnetCpp(asked.bitnet_cpp)


def columns(own, others, at):
    """Cells of a speed: Tercet's best, and each other's with the ratio."""
    best = max(run[at] for run in own)
    yield f"{best:.3g}"
    for runs in others:
        if runs:
            their = max(run[at] for run in runs)
            yield from (f"{their:.3g}", f"{best / their:.2f}")
        else:
            yield from ("", "")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tercet", default="tercet", type=shlex.split)
    parser.add_argument("--llama-bench", default="llama-bench", type=shlex.split)
    parser.add_argument("--ik", metavar="PYTHON")
    parser.add_argument("--bitnet-cpp", metavar="PROGRAM", type=shlex.split)
    parser.add_argument("--words", default=100, type=int)
    parser.add_argument("--text", default=100, type=int)
    parser.add_argument("--rounds", default=2, type=int)
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("file")
    parser.add_argument("models", nargs="+")
    asked = parser.parse_args()
    with open(asked.file, encoding="utf-8", errors="replace") as file:
        words = file.read().split()[: asked.words]
    peers = list(found(asked))
    heads = [f"{peer.name} | ratio" for peer in peers]
    print("| " + " | ".join(["model", "threads", "prompt: Tercet", *heads, "text: Tercet", *heads]) + " |")
    print("|---" + "|--:" * (3 + 4 * len(peers)) + "|")
    for model in asked.models:
        with tempfile.TemporaryDirectory() as folder:
            i2_s = as_i2_s(asked.tercet, model, folder) if asked.ik or asked.bitnet_cpp else None
            files = [peer.file(model, i2_s, folder) for peer in peers]
            for threads in map(int, asked.threads.split(",")):
                own, others = [], [[] for _ in peers]
                for _ in range(asked.rounds):
                    own.append(tercet(asked.tercet, model, words, asked.text, threads))
                    for peer, path, runs in zip(peers, files, others):
                        if path:
                            runs.append(peer.speed(path, own[-1][2], asked.text, threads))
                name = os.path.basename(model)
                print("| " + " | ".join([name, str(threads), *columns(own, others, 0), *columns(own, others, 1)]) + " |", flush=True)
    print(f"Prompts of {own[0][2]} tokens, by {own[0][3]}.", file=sys.stderr)


main()
