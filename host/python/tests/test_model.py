import json
import signal
import subprocess
import threading

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
    text = model.generate("ROMEO:", tokens=30, on_text=pieces.append)
    assert "".join(pieces) == text and len(pieces) > 5
    few = []

    def end(piece):
        few.append(piece)
        return len(few) < 3

    assert model.generate("ROMEO:", tokens=30, on_text=end) == "".join(pieces[:3])
    with pytest.raises(ZeroDivisionError):
        model.generate("ROMEO:", on_text=lambda piece: 1 / 0)


def test_text_is_iterated_over(nano):
    model = tercet.Model(nano)
    text = model.generate("ROMEO:", tokens=20)
    assert "".join(model.stream("ROMEO:", tokens=20)) == text
    first = next(piece for piece in model.stream("ROMEO:", tokens=100_000))
    assert text.startswith(first)
    with pytest.raises(ValueError, match="takes 1 to"):
        list(model.stream("word " * 1000))


def test_ctrl_c_ends_a_text(nano):
    model = tercet.Model(nano)
    timer = threading.Timer(0.2, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        for _ in range(10_000):
            model.generate("ROMEO:", tokens=100)
    timer.join()


def test_a_text_is_scored(nano):
    model = tercet.Model(nano)
    found = model.evaluate("The quality of mercy is not strain'd,\nIt droppeth as the gentle rain")
    assert 1 < found["perplexity"] < 500 and 0.5 < found["bits_per_byte"] < 4
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
        model.generate("ROMEO:", temperature=-1.0)
    with pytest.raises(ValueError, match="this model takes 1 to"):
        model.generate("word " * 1000)
