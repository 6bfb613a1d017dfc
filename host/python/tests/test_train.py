import subprocess

import pytest
import tercet

TEXT = "It is the east, and Juliet is the sun. Arise, fair sun, and kill the envious moon.\n" * 60


def test_the_file_is_the_commands(tmp_path, command):
    steps = []
    found = tercet.train(
        TEXT, tmp_path / "a.gguf", steps=4, batch=4, on_step=lambda step, loss: steps.append((step, loss))
    )
    assert [step for step, _ in steps] == [1, 2, 3, 4] and steps[-1][1] == found["loss"]
    # The command holds out a byte at least.
    (tmp_path / "text.txt").write_text(TEXT + "x")
    arguments = ["train", "text.txt", "-o", "b.gguf", "--steps", "4", "--batch", "4", "--hold", "1e-6", "--json"]
    subprocess.run([command, *arguments, "--vocabulary", "512"], cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "a.gguf").read_bytes() == (tmp_path / "b.gguf").read_bytes()
    assert tercet.Model(tmp_path / "a.gguf").write("It is", tokens=4)["text"]


def test_training_is_ended_and_refused_in_a_sentence(tmp_path):
    file = tmp_path / "a.gguf"
    found = tercet.train(TEXT, file, steps=50, batch=2, on_step=lambda step, loss: step < 3)
    assert found["steps"] == 3 and found["bytes"] == file.stat().st_size
    with pytest.raises(ValueError, match="exists already"):
        tercet.train(TEXT, file, steps=1)
    for text, preset, words in [("short", "nano", "short"), (TEXT, "huge", "no preset is called `huge`")]:
        with pytest.raises(ValueError, match=words):
            tercet.train(text, tmp_path / "b.gguf", preset=preset, steps=1)
    with pytest.raises(ZeroDivisionError):
        tercet.train(TEXT, tmp_path / "b.gguf", steps=2, batch=2, on_step=lambda step, loss: 1 / 0)
    assert not (tmp_path / "b.gguf").exists()
