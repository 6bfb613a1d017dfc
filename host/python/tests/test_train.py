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


def test_options_make_the_commands_file_too(tmp_path, command):
    (tmp_path / "text.txt").write_text(TEXT + "x")
    common = ["train", "text.txt", "-o", "b.gguf", "--steps", "2", "--batch", "2", "--hold", "1e-6", "--force"]

    def compare(options, **own):
        tercet.train(TEXT, tmp_path / "a.gguf", steps=2, batch=2, force=True, **own)
        subprocess.run([command, *common, *options], cwd=tmp_path, check=True, capture_output=True)
        file = (tmp_path / "a.gguf").read_bytes()
        assert file == (tmp_path / "b.gguf").read_bytes()
        return file

    plain = compare(["--vocabulary", "512"])
    (tmp_path / "teacher.gguf").write_bytes(plain)
    less = ["--lean", "--zeros", "0.6", "--keep", "0.8", "--clusters", "2", "--vocabulary", "512"]
    assert compare(less, lean=True, zeros=0.6, keep=0.8, clusters=2) != plain
    taught = ["--teacher", "teacher.gguf", "--temperature", "1.5", "--teacher-share", "0.25"]
    assert compare(taught, teacher=tmp_path / "teacher.gguf", temperature=1.5, teacher_share=0.25) != plain
    for words, own in [
        ("above 0 and at most 1", {"keep": 2.0}),
        ("give keep too", {"clusters": 2}),
        ("the share of zeros", {"zeros": 1.0}),
        ("clusters cannot be made", {"keep": 0.8, "clusters": 999}),
        ("none.gguf", {"teacher": tmp_path / "none.gguf"}),
    ]:
        with pytest.raises((ValueError, OSError), match=words):
            tercet.train(TEXT, tmp_path / "c.gguf", steps=2, batch=2, **own)
    assert not (tmp_path / "c.gguf").exists()


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
