"""What other packages add: with faults of any kind, each fails alone."""

import re
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from spacy_sapbert.extending import Backend, Format, Reader
from spacy_sapbert.formats import format_table as formats
from spacy_sapbert.formats.format_table import FORMATS, list_formats, list_suffixes
from spacy_sapbert.io import plugins
from spacy_sapbert.io.plugins import load_plugins
from spacy_sapbert.kb.indexes import backends
from spacy_sapbert.kb.indexes.backends import BACKENDS, list_backends
from spacy_sapbert.vocabularies import reader_table as readers
from spacy_sapbert.vocabularies.reader_table import READERS, guess_format, list_readers
from tests.commands import invoke

SENTINEL = "SENTINELTEXT"
Install = Callable[..., None]


def end(*_: Any, **__: Any) -> Any:
    sys.exit(0)


def quote(docs: Any, file: Any, **_: Any) -> None:
    for doc in docs:
        raise ValueError(doc.text)


def write(docs: Any, file: Any, **_: Any) -> None:
    file.write(b"of another package")


def read_words(path: Path, report: Any, options: Any) -> Any:
    raise ValueError(path.read_text())


def __getattr__(name: str) -> Any:  # noqa: N807
    """Import the object of an entry point that cannot be imported."""
    if name == "FAILS":
        raise LookupError("it needs another library")
    raise AttributeError(name)


class Brute(Backend):
    name = "brute"
    library = "no_such_package.brute"


GOOD = Format("of another package", write, suffixes=(".other",), endings=(".other",))
ENDING = Format("calls sys.exit", end, suffixes=(".ends",))
QUOTING = Format("quotes a text", quote, suffixes=(".quotes",))
OURS = Format("has a name of ours", write, suffixes=(".jsonl",), endings=(".jsonl",))
WORDS = Reader("words", read_words, ("*.words",))
ONE_SUFFIX: Any = Format("x", write, suffixes=".jsonl")  # type: ignore[arg-type]


@pytest.fixture
def install(monkeypatch) -> Iterator[Install]:
    """Install packages whose entry points are objects of this module."""

    def make(group: str, *named: tuple[str, str]) -> None:
        points = [EntryPoint(name, f"{__name__}:{at}", group) for name, at in named]

        def find(group: str) -> list[EntryPoint]:
            return [point for point in points if point.group == group]

        monkeypatch.setattr(plugins, "entry_points", find)
        load_plugins.cache_clear()

    yield make
    load_plugins.cache_clear()


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("FAILS", "LookupError: it needs another library"),
        ("WORDS", "a Reader"),
        ("ONE_SUFFIX", "`suffixes`"),
    ],
)
def test_format_that_is_none_is_left_out_with_a_warning(install, value, reason):
    install(formats.PLUGINS, ("bad", value), ("other", "GOOD"))
    with pytest.warns(UserWarning, match=f"W024.*'bad'.*:{value}.*{reason}"):
        found = list_formats()
    assert [*found] == [*FORMATS, "other"]
    assert list_suffixes()[".jsonl"] == "jsonl"
    assert list_suffixes()[".other"] == "other"


def test_reader_and_backend_of_another_kind_are_left_out_with_a_warning(
    install, tmp_path
):
    install(readers.PLUGINS, ("bad", "GOOD"), ("words", "WORDS"))
    with pytest.warns(UserWarning, match="W024.*'bad'.*a Format"):
        assert [*list_readers()] == ["words", *READERS]
    (tmp_path / "a.csv").touch()
    assert guess_format(tmp_path / "a.csv") == "table"
    assert guess_format(tmp_path / "a.words") == "words"
    install(backends.PLUGINS, ("bad", "end"), ("brute", "Brute"))
    with pytest.warns(UserWarning, match="W024.*'bad'.*a func"):
        assert [*list_backends()] == [*BACKENDS, "brute"]


def test_names_of_ours_and_of_the_first_package_stay(install):
    install(formats.PLUGINS, ("jsonl", "OURS"), ("other", "GOOD"), ("other", "ENDING"))
    with pytest.warns(UserWarning, match="W024.*is taken") as told:
        found = list_formats()
    assert [str(one.message).split("'")[1] for one in told] == ["jsonl", "other"]
    assert found == {**FORMATS, "other": GOOD}
    install(readers.PLUGINS, ("obo", "WORDS"))
    with pytest.warns(UserWarning, match="W024.*'obo'.*is taken"):
        assert list_readers() == READERS
    install(backends.PLUGINS, ("hnsw", "Brute"))
    with pytest.warns(UserWarning, match="W024.*'hnsw'.*is taken"):
        assert [*list_backends()] == [*BACKENDS]


def test_command_fails_with_the_place_in_a_format_or_a_reader_that_fails(
    install, tmp_path, sample_kb
):
    place = rf"E024.*ValueError at {re.escape(__file__)}:\d+"
    install(formats.PLUGINS, ("quotes", "QUOTING"))
    (tmp_path / "in.txt").write_text(f"fever {SENTINEL}")
    arguments = (sample_kb, tmp_path / "in.txt", "--output", tmp_path / "out.quotes")
    result = invoke("link", *arguments, code=1)
    assert re.search(place, result.output)
    assert SENTINEL not in result.output
    install(readers.PLUGINS, ("words", "WORDS"))
    (tmp_path / "in.words").write_text(SENTINEL)
    arguments = (tmp_path / "in.words", "-o", tmp_path / "out.jsonl")
    result = invoke("concepts", *arguments, code=1)
    assert re.search(place, result.output)
    assert SENTINEL not in result.output
    assert {path.name for path in tmp_path.iterdir()} == {"in.txt", "in.words"}
