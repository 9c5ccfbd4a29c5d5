"""What other packages add: with faults of any kind, each fails alone."""

import re
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.extending import Backend, Format, Reader
from spacy_sapbert.formats import registry as formats
from spacy_sapbert.formats.registry import FORMATS, list_formats, list_suffixes
from spacy_sapbert.io import plugins
from spacy_sapbert.io.plugins import load_plugins
from spacy_sapbert.kb.indexes import registry as backends
from spacy_sapbert.kb.indexes.registry import BACKENDS, list_backends
from spacy_sapbert.vocabularies import registry as readers
from spacy_sapbert.vocabularies.registry import READERS, guess_format, list_readers
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
    if name == "ENDS":
        end()
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
ONE_PATTERN: Any = Reader("x", read_words, "*.words")  # type: ignore[arg-type]
TEXT_MARK: Any = Reader("x", read_words, ("*",), mark="x")  # type: ignore[arg-type]
NO_FUNCTION: Any = Format("x", 7)  # type: ignore[arg-type]
WRONG = {"suffixes": (".jsonl",)}
BRUTE = Brute()


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
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
        ("MISSING", "AttributeError"),
        ("FAILS", "LookupError: it needs another library"),
        ("ENDS", "SystemExit"),
        ("WRONG", "a dict"),
        ("write", "a function"),
        ("Format", "a type"),
        ("WORDS", "a Reader"),
        ("ONE_SUFFIX", "`suffixes`"),
        ("NO_FUNCTION", "`write`"),
    ],
)
def test_format_that_is_none_is_left_out_with_a_warning(
    install: Install, value: str, reason: str
) -> None:
    install(formats.PLUGINS, ("bad", value), ("other", "GOOD"))
    with pytest.warns(UserWarning, match=f"W024.*'bad'.*:{value}.*{reason}"):
        found = list_formats()
    assert [*found] == [*FORMATS, "other"]
    assert list_suffixes()[".jsonl"] == "jsonl"
    assert list_suffixes()[".other"] == "other"


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("GOOD", "a Format"),
        ("Reader", "a type"),
        ("ONE_PATTERN", "`patterns`"),
        ("TEXT_MARK", "`mark`"),
    ],
)
def test_reader_that_is_none_is_left_out_with_a_warning(
    install: Install, tmp_path: Path, value: str, reason: str
) -> None:
    install(readers.PLUGINS, ("bad", value), ("words", "WORDS"))
    with pytest.warns(UserWarning, match=f"W024.*'bad'.*{reason}"):
        assert [*list_readers()] == ["words", *READERS]
    (tmp_path / "a.csv").touch()
    assert guess_format(tmp_path / "a.csv") == "table"
    assert guess_format(tmp_path / "a.words") == "words"


@pytest.mark.parametrize(("value", "reason"), [("BRUTE", "a Brute"), ("end", "a func")])
def test_backend_that_is_none_is_left_out_with_a_warning(
    install: Install, value: str, reason: str
) -> None:
    install(backends.PLUGINS, ("bad", value), ("brute", "Brute"))
    with pytest.warns(UserWarning, match=f"W024.*'bad'.*{reason}"):
        assert [*list_backends()] == [*BACKENDS, "brute"]


def test_names_of_ours_and_of_the_first_package_stay(install: Install) -> None:
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


@pytest.mark.parametrize(
    ("name", "kind"), [("ends", "SystemExit"), ("quotes", "ValueError")]
)
def test_command_fails_with_the_place_in_a_format_that_fails(
    install: Install, tmp_path: Path, sample_kb: Path, name: str, kind: str
) -> None:
    install(formats.PLUGINS, ("ends", "ENDING"), ("quotes", "QUOTING"))
    (tmp_path / "in.txt").write_text(f"fever {SENTINEL}")
    output = tmp_path / f"out.{name}"
    arguments = (sample_kb, tmp_path / "in.txt", "--output", output)
    result = invoke("link", *arguments, code=1)
    place = rf"E024.*{kind} at {re.escape(__file__)}:\d+"
    assert re.search(place, result.output)
    assert SENTINEL not in result.output
    assert [path.name for path in tmp_path.iterdir()] == ["in.txt"]


def test_command_fails_with_the_place_in_a_reader_that_fails(
    install: Install, tmp_path: Path
) -> None:
    install(readers.PLUGINS, ("words", "WORDS"))
    (tmp_path / "in.words").write_text(SENTINEL)
    arguments = ("concepts", tmp_path / "in.words", "-o", tmp_path / "out.jsonl")
    result = invoke(*arguments, code=1)
    assert re.search(rf"E024.*ValueError at {re.escape(__file__)}:\d+", result.output)
    assert SENTINEL not in result.output
    assert not (tmp_path / "out.jsonl").exists()


def test_backend_without_its_library_is_an_error_when_it_is_used(
    install: Install, concepts_file: Path, tiny_encoder: Path, tmp_path: Path
) -> None:
    install(backends.PLUGINS, ("brute", "Brute"))
    build = ("kb", "build", concepts_file, tmp_path / "kb", "--encoder", tiny_encoder)
    result = invoke(*build, "--backend", "brute", code=1)
    assert not (tmp_path / "kb").exists()
    assert "E521" in result.output
    with pytest.raises(SapbertError, match="E331.*brute"):
        backends.make_backend("brutal")
