"""Tokens a second of language models by Tercet and by llama.cpp, in turns, on the same files: one line of a table a model and number of threads.

    python language.py [--tercet tercet] [--llama-bench llama-bench] [--words 100] [--text 100] [--rounds 2] [--threads 1,2] FILE MODEL…

FILE is prose, whose first WORDS words are the prompt and whose first four begin the text; llama-bench makes up its own prompts, of as many tokens. Both
commands may have arguments. Of each the best of all rounds counts: on a quiet machine only. What is compared is not the same work: llama.cpp makes
activations int8 by blocks, Tercet 16 bits a row, and Tercet draws its tokens.
"""

import argparse
import json
import shlex
import subprocess
import sys


def generate(command, model, prompt, text, threads):
    """What Tercet says of a prompt and as many tokens."""
    run = [*command, "--threads", str(threads), "generate", model, "-p", prompt, "-n", str(text), "--json"]
    return json.loads(subprocess.run(run, check=True, capture_output=True, text=True).stdout)


def tercet(command, model, words, text, threads):
    """Tokens a second of the prompt and of the text, tokens of the prompt, and who multiplied."""
    prompt = generate(command, model, " ".join(words), 1, threads)
    text = generate(command, model, " ".join(words[:4]), text, threads)
    return prompt["prompt_tokens_per_second"], text["decode_tokens_per_second"], prompt["prompt_tokens"], prompt["engine"]


def llama(command, model, prompt, text, threads):
    """The same of llama-bench, without its own repetitions."""
    run = [*command, "-m", model, "-t", str(threads), "-p", str(prompt), "-n", str(text), "-r", "1", "-o", "json"]
    found = json.loads(subprocess.run(run, check=True, capture_output=True, text=True).stdout)
    speed = {(test["n_prompt"], test["n_gen"]): test["avg_ts"] for test in found}
    return speed[prompt, 0], speed[0, text]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tercet", default="tercet", type=shlex.split)
    parser.add_argument("--llama-bench", default="llama-bench", type=shlex.split)
    parser.add_argument("--words", default=100, type=int)
    parser.add_argument("--text", default=100, type=int)
    parser.add_argument("--rounds", default=2, type=int)
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("file")
    parser.add_argument("models", nargs="+")
    asked = parser.parse_args()
    with open(asked.file, encoding="utf-8", errors="replace") as file:
        words = file.read().split()[: asked.words]
    print("| model | threads | prompt: Tercet | llama.cpp | ratio | text: Tercet | llama.cpp | ratio |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    for model in asked.models:
        for threads in map(int, asked.threads.split(",")):
            own, other = [], []
            for _ in range(asked.rounds):
                own.append(tercet(asked.tercet, model, words, asked.text, threads))
                other.append(llama(asked.llama_bench, model, own[-1][2], asked.text, threads))
            prompt, text = (max(run[at] for run in own) for at in (0, 1))
            their_prompt, their_text = (max(run[at] for run in other) for at in (0, 1))
            name = model.rsplit("/", 1)[-1]
            print(
                f"| {name} | {threads} | {prompt:.0f} | {their_prompt:.0f} | {prompt / their_prompt:.2f}"
                f" | {text:.0f} | {their_text:.0f} | {text / their_text:.2f} |",
                flush=True,
            )
    print(f"Prompts of {own[0][2]} tokens, by {own[0][3]}.", file=sys.stderr)


main()
