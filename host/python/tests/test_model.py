import json
import signal
import subprocess
import threading

import numpy as np
import pytest
import tercet


def test_text_and_digest_are_the_commands(nano, command):
    model = tercet.Model(nano)
    for options, words in [
        ({}, []),
        ({"temperature": 0.8, "seed": 3}, ["--temp", "0.8", "--seed", "3"]),
    ]:
        written = model.write("ROMEO:", tokens=40, **options)
        said = subprocess.run(
            [command, "generate", nano, "-p", "ROMEO:", "-n", "40", "--json", *words],
            capture_output=True,
            check=True,
        )
        report = json.loads(said.stdout)
        assert written["tokens"] == report["tokens"]
        assert written["text"] == report["text"]
        assert written["digest"] == report["digest"].removeprefix("0x")


def test_text_comes_in_pieces_and_may_be_ended(nano):
    model = tercet.Model(nano)
    pieces = []
    text = model.write("ROMEO:", tokens=30, on_text=pieces.append)["text"]
    assert "".join(pieces) == text and len(pieces) > 5
    few = []

    def end(piece):
        few.append(piece)
        return len(few) < 3

    assert model.write("ROMEO:", tokens=30, on_text=end)["text"] == "".join(pieces[:3])
    with pytest.raises(ZeroDivisionError):
        model.write("ROMEO:", on_text=lambda piece: 1 / 0)


def test_text_is_iterated_over(nano):
    model = tercet.Model(nano)
    text = model.write("ROMEO:", tokens=20)["text"]
    assert "".join(model.generate("ROMEO:", tokens=20)) == text
    first = next(piece for piece in model.generate("ROMEO:", tokens=100_000))
    assert text.startswith(first)
    with pytest.raises(ValueError, match="takes 1 to"):
        list(model.generate("word " * 1000))


def test_ctrl_c_ends_a_text(nano):
    model = tercet.Model(nano)
    timer = threading.Timer(0.2, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        for _ in range(10_000):
            model.write("ROMEO:", tokens=100)
    timer.join()


def test_ctrl_c_ends_an_evaluation(nano):
    model = tercet.Model(nano)
    timer = threading.Timer(0.2, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        model.evaluate("The quality of mercy is not strain'd. " * 100_000)
    timer.join()


def test_a_text_is_scored(nano):
    model = tercet.Model(nano)
    # What the command prints for a file of this text.
    found = model.evaluate("The quality of mercy is not strain'd")
    assert (found["count"], found["sum"]) == (17, 200187049060)
    assert round(found["perplexity"], 4) == 15.5140 and round(found["bits_per_byte"], 4) == 1.8679
    assert model.context == 128


def test_what_is_no_model_is_refused_in_a_sentence(nano, tmp_path):
    with pytest.raises(OSError, match="cannot open"):
        tercet.Model(tmp_path / "none.gguf")
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(nano.read_bytes()[:10_000])
    with pytest.raises(ValueError, match="bad GGUF file"):
        tercet.Model(cut)
    model = tercet.Model(nano)
    with pytest.raises(ValueError):
        model.write("ROMEO:", temperature=-1.0)
    with pytest.raises(ValueError, match="this model takes 1 to"):
        model.write("word " * 1000)
    with pytest.raises(TypeError, match="heat"):
        model.write("ROMEO:", heat=1.0)
    with pytest.raises(TypeError, match="heat"):
        list(model.generate("ROMEO:", heat=1.0))


def test_tokens_come_back(nano):
    model = tercet.Model(nano)
    for text in ["ROMEO:", "What's  in a name?\n", "naïve 東京 🙂", " ", ""]:
        tokens = model.tokenize(text)
        assert all(type(token) is int for token in tokens)
        assert model.detokenize(tokens) == text
        assert model.detokenize(np.array(tokens, dtype=np.int64)) == text
    # A text of this model begins with a token of its own.
    begin, *rest = model.tokenize("ROMEO:")
    assert rest == model.tokenize("ROMEO:", ends=False)
    assert model.detokenize([begin], special=True) == "<|bos|>" and model.detokenize([begin]) == ""
    assert model.tokenize("<|bos|>", ends=False, special=True) == [begin]
    assert len(model.tokenize("<|bos|>", ends=False)) > 1
    written = model.write("ROMEO:", tokens=5)
    assert model.detokenize(model.tokenize("ROMEO:") + written["tokens"]) == "ROMEO:" + written["text"]
    for bad in [[-1], [1 << 32], [[1]], ["a"], [0.5], [None], 3]:
        for use in [model.detokenize, model.logits]:
            with pytest.raises(ValueError, match="whole numbers in one dimension"):
                use(bad)
    with pytest.raises(ValueError, match="token"):
        model.detokenize([1 << 31])


def test_logits_are_what_texts_are_drawn_from(nano):
    model = tercet.Model(nano)
    prompt = model.tokenize("ROMEO:")
    written = model.write("ROMEO:", tokens=30)["tokens"]
    # More rows than are evaluated at a time.
    tokens = prompt + model.tokenize("The quality of mercy is not strain'd, it droppeth as the", ends=False)
    each = model.logits(tokens, each=True)
    assert each.dtype == np.float32 and each.shape[0] == len(tokens) and np.isfinite(each).all()
    assert np.array_equal(model.logits(tokens), each[-1])
    assert np.array_equal(model.logits(tokens[:5]), each[4])
    for count in range(3):
        assert model.logits(prompt + written[:count]).argmax() == written[count]
    long = (tokens * 10)[: model.context]
    assert model.logits(long, each=True).shape == (model.context, each.shape[1])
    for bad, words in [([], "0 tokens"), ([0] * (model.context + 1), "129 tokens are given"), ([1 << 30], "token")]:
        with pytest.raises(ValueError, match=words):
            model.logits(bad)


def test_perplexity_is_that_of_the_logits(nano):
    model = tercet.Model(nano)
    text = "The quality of mercy is not strain'd"
    # The token that begins a text is not predicted.
    tokens = model.tokenize(text)
    rows, following = model.logits(tokens, each=True).astype(float)[:-1], tokens[1:]
    costs = np.log(np.exp(rows).sum(axis=1)) - rows[np.arange(len(following)), following]
    found = model.evaluate(text)
    assert found["count"] == len(following) == 17
    assert found["sum"] / 2**32 == pytest.approx(costs.sum(), rel=1e-6)
    assert found["perplexity"] == model.perplexity(text) == pytest.approx(np.exp(costs.mean()), rel=1e-6)
    assert found["bits_per_byte"] == pytest.approx(costs.sum() / np.log(2) / len(text), rel=1e-6)


def test_a_score_is_the_commands(nano, command, tmp_path):
    model = tercet.Model(nano)
    text = "The quality of mercy is not strain'd,\nIt droppeth as the gentle rain from heaven\n"
    # Of one window and of many.
    for name, text in [("a", text), ("b", text * 30), ("c", "e")]:
        (tmp_path / name).write_text(text)
        said = subprocess.run(
            [command, "perplexity", nano, tmp_path / name, "--json"], capture_output=True, check=True
        )
        report = json.loads(said.stdout)
        found = model.evaluate(text)
        assert found == {key: report[key] for key in found}
    for use in [model.evaluate, model.perplexity]:
        with pytest.raises(ValueError, match="no token to predict"):
            use("")
