"""What a stranger gets beside the package: addresses, citation, publication."""

import ast
import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import srsly

from spacy_sapbert.io import version
from spacy_sapbert.io.version import __version__
from spacy_sapbert.kb.folder.records import FORMAT

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))["project"]
SOURCE, SITE = PROJECT["urls"]["Source"], PROJECT["urls"]["Documentation"]
README = (ROOT / "README.md").read_text("utf8")
WITH_ADDRESSES = [
    *(path for path in ROOT.glob("*.*") if path.is_file()),
    *(path for path in (ROOT / "docs").glob("*.*") if path.is_file()),
    *(ROOT / ".github").rglob("*.yml"),
]
# Of an entry of spaCy Universe, by website/UNIVERSE.md of spaCy: name -> type
UNIVERSE = {
    **dict.fromkeys(("id", "title", "slogan", "description", "github", "pip"), str),
    **dict.fromkeys(("code_language", "url", "thumb", "image", "author"), str),
    **dict.fromkeys(("code_example", "category", "tags"), list),
    "author_links": dict,
}
CATEGORIES = {"pipeline", "training", "research", "scientific", "biomedical"}


def read_workflow(name: str) -> dict[str, Any]:
    workflow: dict[str, Any] = srsly.read_yaml(ROOT / ".github" / "workflows" / name)
    return workflow


@pytest.fixture(scope="module")
def citation() -> dict[str, Any]:
    """CITATION.cff, which is YAML."""
    text = (ROOT / "CITATION.cff").read_text("utf8")
    read: dict[str, Any] = srsly.yaml_loads(text)
    return read


def test_all_files_name_the_addresses_of_the_metadata():
    found = set()
    for path in WITH_ADDRESSES:
        text = path.read_text("utf8")
        for address in re.findall(r"https://[\w.-]+/[\w.-]*/?spacy-sapbert\b", text):
            assert address in (SOURCE, SITE.rstrip("/")), (path.name, address)
            found.add(path.name)
    names = {"CITATION.cff", "SECURITY.md", "mkdocs.yml", "pyproject.toml"}
    assert found == {*names, "universe.json"}
    for url in PROJECT["urls"].values():
        assert url.startswith((SOURCE, SITE))


def test_code_names_pages_of_the_site():
    assert version.SITE == SITE
    named = set()
    for package in ("spacy_sapbert", "training"):
        for path in (ROOT / package).rglob("*.py"):
            text = path.read_text("utf8")
            named |= {*re.findall(rf"(?:{{SITE}}|{re.escape(SITE)})(\w+)\.html", text)}
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    # an installation has no such file
                    assert not re.search(r"\bdocs/\w+\.md", node.value), path
    assert len(named) > 5
    assert named <= {page.stem for page in (ROOT / "docs").glob("*.md")}


def test_citation_has_what_the_schema_asks_for(citation):
    """Of Citation File Format 1.2.0."""
    assert citation["cff-version"] == "1.2.0"
    assert citation.keys() >= {"message", "title", "authors"}
    assert citation["type"] == "software"
    assert citation["license"] == PROJECT["license"]
    assert citation["authors"] == PROJECT["authors"]
    assert "version" not in citation  # it is written in one place
    for paper in citation["references"]:
        assert paper.keys() >= {"type", "title", "authors", "year"}
        assert paper["type"] in {"article", "conference-paper"}
        assert isinstance(paper["year"], int)
        assert re.fullmatch(r"10\.\d{4,}/\S+", paper.get("doi", "10.1234/none"))
        for author in paper["authors"]:
            assert author.keys() == {"family-names", "given-names"}


def test_citation_has_the_papers_that_the_readme_asks_to_cite(citation):
    papers = citation["references"]
    first = [paper["authors"][0]["family-names"] for paper in papers]
    assert [*zip(first, (paper["year"] for paper in papers), strict=True)] == [
        ("Liu", 2021),
        ("Liu", 2021),
        ("Cai", 2023),
    ]
    plain = " ".join(README.split())
    assert all(paper["title"] in plain for paper in papers)


def test_entry_of_spacy_universe_has_its_fields_and_the_ten_lines():
    entry = json.loads((ROOT / "docs" / "universe.json").read_text("utf8"))
    for name, value in entry.items():
        assert isinstance(value, UNIVERSE[name]), name
        assert value, name
    optional = {"title", "thumb", "image", "code_language", "tags"}
    assert {*UNIVERSE} - entry.keys() <= optional
    assert f"https://github.com/{entry['github']}" == SOURCE
    assert entry["pip"] == PROJECT["name"]
    assert entry["slogan"] == PROJECT["description"]
    assert entry["author"] == PROJECT["authors"][0]["name"]
    assert {*entry["author_links"]} <= {"github", "twitter", "website"}
    assert {*entry["category"]} <= CATEGORIES
    assert (ROOT / entry["image"].removeprefix(f"{SOURCE}/raw/main/")).is_file()
    (code,) = re.findall(r"^```python\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    assert entry["code_example"] == code.splitlines()


def test_publication_tries_the_package_first_and_tags_last():
    jobs = read_workflow("publish.yml")["jobs"]
    assert ".ci/package" in [step.get("run") for step in jobs["package"]["steps"]]
    assert jobs["publish"]["needs"] == "package"
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    (step,) = [s for s in jobs["publish"]["steps"] if "pypi-publish" in s["uses"]]
    assert "with" not in step  # no password
    assert {*jobs["tag"]["needs"]} == {*jobs} - {"package", "tag"}


def test_tag_names_the_version(new_process):
    (step,) = [
        step["run"]
        for step in read_workflow("publish.yml")["jobs"]["tag"]["steps"]
        if "run" in step
    ]
    first = step.splitlines()[0]
    done = new_process.run(["bash", "-c", f"{first}; echo $tag"], cwd=ROOT, check=True)
    assert done.stdout == f"v{__version__}\n"


def test_page_of_what_stays_names_what_is_public():
    text = (ROOT / "docs" / "stability.md").read_text("utf8")
    assert f"0.1 reads format {FORMAT} alone" in " ".join(text.split())
    entries = PROJECT["entry-points"]
    assert all(f"`{name}`" in text for name in entries["spacy_factories"])
    for group in ("spacy_architectures", "spacy_misc", "spacy_scorers"):
        assert all(re.fullmatch(r"spacy-sapbert\.\w+\.v1", n) for n in entries[group])
    experimental = re.findall(r"spacy-sapbert\.\w+\.v1", text)
    assert {*experimental} <= {*entries["spacy_architectures"]}
