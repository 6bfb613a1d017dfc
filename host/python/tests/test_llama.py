"""Texts and tokens beside llama.cpp's. TERCET_GGML names its libggml-base, as for the tests of the library."""

import json
import os
import pathlib
import subprocess
import sys

import pytest
import tercet

PEER = pathlib.Path(__file__).parents[2] / "tests/reference/language_llama.py"


@pytest.fixture(scope="module")
def library():
    """llama.cpp's library, which lies beside ggml's."""
    folder = pathlib.Path(os.environ.get("TERCET_GGML", "")).parent
    found = [it for it in folder.glob("libllama.*so") if it.suffix == ".so"]
    if not found:
        pytest.skip("TERCET_GGML does not name ggml's library with llama.cpp's beside it")
    return found[0]


def said(*arguments):
    run = subprocess.run([sys.executable, PEER, *arguments], capture_output=True, check=True, text=True)
    return run.stdout.splitlines()


@pytest.mark.parametrize("prompt", ["ROMEO:", "What's in a name?", "To be, or not to be"])
def test_the_likeliest_text_is_llama_cpps(library, nano, prompt):
    model = tercet.Model(nano)
    tokens, answer, text, leads = said("greedy", library, nano, "30", prompt)
    assert model.tokenize(prompt) == [int(token) for token in tokens.split(",")]
    answer = [int(token) for token in answer.split(",")]
    found = model.write(prompt, tokens=30)
    # llama.cpp's sums round, so that it may choose another token only where two are nearly as likely.
    pairs = zip(found["tokens"], answer, map(float, leads.split(",")))
    if apart := [lead for ours, its, lead in pairs if ours != its][:1]:
        assert apart[0] < 0.05
    else:
        assert found["text"] == json.loads(text)
