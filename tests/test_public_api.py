"""The public names of the package."""

import re
from pathlib import Path

import pytest

import spacy_sapbert
from spacy_sapbert import extending

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def test_import_of_the_package_is_light(new_process):
    code = (
        "import sys, spacy_sapbert; "
        "print({'spacy', 'torch', 'transformers', 'numpy'} & {*sys.modules})"
    )
    done = new_process.python(code, check=True)
    assert done.stdout == "set()\n"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_docs_import_public_names_only(page):
    text = page.read_text("utf8")
    inner = re.findall(r"(?:from|import) spacy_sapbert\.([\w.]+)", text)
    assert {*inner} <= {"extending"}
    for names in re.findall(r"from spacy_sapbert import (.+)", text):
        for name in names.split(","):
            assert name.strip() in spacy_sapbert.PUBLIC
    for names in re.findall(r"from spacy_sapbert.extending import (.+)", text):
        for name in names.split(","):
            assert name.strip() in extending.__all__
