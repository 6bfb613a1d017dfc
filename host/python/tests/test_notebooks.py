"""Executes the notebooks, and compares the texts that they print with the stored ones.

TERCET_OVERWRITE=1 stores what they print and draw instead.
"""

import os
import pathlib

import pytest
import tercet

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")
pytest.importorskip("matplotlib")

FOLDER = pathlib.Path(__file__).parents[1] / "notebooks"
FILES = sorted(FOLDER.glob("*.ipynb"))


def texts(cell):
    """What a cell prints and returns. Pictures differ in their last bits between machines, so they are only counted."""
    found = []
    for output in cell.get("outputs", []):
        if output.output_type == "stream":
            found.append((output.name, output.text))
        elif "image/png" in output.data:
            found.append(("picture", ""))
        else:
            found.append(("result", output.data["text/plain"]))
    return found


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
@pytest.mark.filterwarnings("ignore")
def test_a_notebook_prints_what_is_stored(file, monkeypatch):
    # The package that is tested here, wherever a notebook lies.
    place = pathlib.Path(tercet.__file__).resolve().parents[1]
    monkeypatch.setenv("PYTHONPATH", str(place), prepend=os.pathsep)
    stored, executed = (nbformat.read(file, as_version=4) for _ in range(2))
    # A cell that fails raises its error here.
    folder = {"metadata": {"path": FOLDER}}
    # What a cell prints may come in several messages.
    nbclient.NotebookClient(executed, timeout=300, resources=folder, coalesce_streams=True).execute()
    if os.environ.get("TERCET_OVERWRITE"):
        for cell in executed.cells:
            # When it ran.
            cell.metadata.pop("execution", None)
        executed.metadata.language_info = {"name": "python"}
        nbformat.write(executed, file)
        return
    code = [cells for cells in zip(stored.cells, executed.cells, strict=True) if cells[0].cell_type == "code"]
    for before, now in code:
        assert texts(now) == texts(before), now.source
    assert any(kind == "picture" for before, _ in code for kind, _ in texts(before))


def test_notebooks_are_small():
    assert len(FILES) == 3
    for file in FILES:
        assert file.stat().st_size <= 150 << 10, file
