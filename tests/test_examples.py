"""The examples in the docstrings of the public names."""

import doctest
import shutil
from pathlib import Path
from typing import Any

import pyarrow
import pytest
import spacy

import spacy_sapbert
from spacy_sapbert import load_kb

ROOT = Path(__file__).parents[1]


def find_examples() -> list[Any]:
    """Return the docstrings of public names that have examples."""
    finder = doctest.DocTestFinder(exclude_empty=True)
    found = [
        test
        for name in spacy_sapbert.PUBLIC
        for test in finder.find(getattr(spacy_sapbert, name), name)
        if test.examples
    ]
    assert len(found) > 15
    return found


@pytest.mark.usefixtures("few_mentions", "few_trees")
@pytest.mark.parametrize("example", find_examples(), ids=lambda test: test.name)
def test_example_of_a_docstring_prints_its_output(
    example, demo_folder, tiny_encoder, tmp_path, monkeypatch
):
    shutil.copytree(demo_folder / "models", tmp_path / "models")
    (tmp_path / "models" / "sample" / "encoder").symlink_to(tiny_encoder)
    (tmp_path / "assets").symlink_to(ROOT / "assets")
    monkeypatch.chdir(tmp_path)
    public = {name: getattr(spacy_sapbert, name) for name in spacy_sapbert.PUBLIC}
    others = {"Path": Path, "spacy": spacy, "pyarrow": pyarrow}
    example.globs = {**public, **others, "kb": load_kb("models/sample/kb")}
    output: list[str] = []
    result = doctest.DocTestRunner().run(example, out=output.append)
    assert not result.failed, "".join(output)
