"""A build that is stopped at any moment continues, with the same bytes at the end."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spacy_sapbert.encoder.huggingface import EncoderSettings
from spacy_sapbert.errors import SapbertError
from spacy_sapbert.io.progress import show_progress
from spacy_sapbert.kb.building import row_vectors
from spacy_sapbert.kb.building.build import build_kb
from spacy_sapbert.kb.building.row_vectors import TokenizedNames, embed_some
from spacy_sapbert.kb.edits.change import add_concepts
from spacy_sapbert.kb.knowledge_base import load_kb
from spacy_sapbert.vocabularies.concepts import Concept, write_concepts
from tests.building import build_small_kb

Contents = Callable[[Path], dict[Path, bytes]]


class Stopped(Exception):
    pass


def stop_after(work: Callable[..., Any], calls: int) -> Callable[..., Any]:
    """Return a function that does its work so often, and then stops."""
    left = [calls]

    def run(*arguments: Any, **options: Any) -> Any:
        if not left[0]:
            raise Stopped
        left[0] -= 1
        return work(*arguments, **options)

    return run


@pytest.mark.parametrize(
    "settings",
    [{"backend": "exact"}, {"backend": "faiss", "backend_settings": {"pca": 8}}],
)
@pytest.mark.parametrize("name", ["write_at", "write_json"])
def test_build_kb_stopped_embeds_nothing_again(
    name: str,
    settings: dict[str, Any],
    concepts_file: Path,
    tiny_encoder: Path,
    contents: Contents,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(row_vectors, "ROWS_AT_ONCE", 4)
    build = {"encoder": str(tiny_encoder), "threads": 1, "engine": "torch", **settings}
    build_kb(concepts_file, tmp_path / "whole", **build)
    with monkeypatch.context() as patched:
        patched.setattr(row_vectors, name, stop_after(getattr(row_vectors, name), 2))
        with pytest.raises(Stopped):
            build_kb(concepts_file, tmp_path / "kb", **build)
    with monkeypatch.context() as patched:
        again = stop_after(row_vectors.embed_some, 4)  # of the six for 21 rows
        patched.setattr(row_vectors, "embed_some", again)
        build_kb(concepts_file, tmp_path / "kb", **build)
    assert contents(tmp_path / "kb") == contents(tmp_path / "whole")
    assert not (tmp_path / ".kb.build").exists()


def test_embed_some_gives_a_name_the_same_vector_beside_any_others(
    sample_kb: Path,
) -> None:
    encoder = load_kb(sample_kb).encoder
    texts = [f"{a} of {b}" for a in ("fever", "pain") for b in ("it", "the heart", "I")]
    token_ids, _ = encoder.tokenize(texts)

    def embed(some: list[int]) -> dict[int, bytes]:
        names = TokenizedNames()
        for place in some:
            names.add(token_ids[place])
        rows, bar = names.by_length(), show_progress(unit="names", quiet=True)
        vectors = embed_some(names, rows, encoder, None, bar)
        return {some[row]: v.tobytes() for row, v in zip(rows, vectors, strict=True)}

    every = embed([0, 1, 2, 3, 4, 5])
    for some in ([3], [5, 1], [4, 2, 0]):
        found = embed(some)
        assert found == {place: every[place] for place in some}


def test_build_kb_prints_how_long_it_will_take(
    concepts_file: Path,
    tiny_encoder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    build_small_kb(concepts_file, tmp_path / "kb", tiny_encoder, progress=True)
    text = " ".join(capsys.readouterr().out.split())
    names = r"21 names to embed, about 0\.\d s: in a trial, [\d,]+ a second"
    assert re.search(names, text), text


@pytest.mark.parametrize(
    "settings",
    [{"backend": "exact"}, {"backend": "faiss", "backend_settings": {"pca": 8}}],
)
def test_build_kb_that_reuses_vectors_writes_the_bytes_of_a_new_one(
    settings: dict[str, Any],
    few_concepts: list[Concept],
    sample_kb: Path,
    tiny_encoder: Path,
    contents: Contents,
    tmp_path: Path,
    encoded: list[int],
) -> None:
    concepts = few_concepts[2:] + [
        Concept("C1000000", ["Fever of unknown origin", "Heart attack", "pain"])
    ]
    path = tmp_path / "concepts.jsonl"
    write_concepts(path, concepts)
    build = {"encoder": str(tiny_encoder), "threads": 1, "engine": "torch", **settings}
    build_kb(path, tmp_path / "new", **build)
    at_first = sum(encoded)
    encoded.clear()
    build_kb(path, tmp_path / "kb", reuse=sample_kb, **build)
    assert contents(tmp_path / "kb") == contents(tmp_path / "new")
    assert sum(encoded) < at_first
    add_concepts(load_kb(tmp_path / "kb"), [Concept("C1", ["sore throat"])])
    # An overlay has names too, and a folder may be built from its own vectors.
    build_kb(path, tmp_path / "kb", reuse=tmp_path / "kb", force=True, **build)
    assert contents(tmp_path / "kb" / "v3") == contents(tmp_path / "new" / "v1")


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"settings": EncoderSettings("cls", 25, True)}, "encoder"),
        ({"precision": "bf16"}, "precision"),
        ({"encoder": "other"}, "encoder"),
    ],
)
def test_build_kb_that_reuses_vectors_of_another_encoder_is_an_error(
    changes: dict[str, Any],
    name: str,
    concepts_file: Path,
    sample_kb: Path,
    tiny_encoder: Path,
    make_bert: Any,
    tmp_path: Path,
) -> None:
    build: dict[str, Any] = {"encoder": str(tiny_encoder), **changes}
    if "encoder" in changes:
        build["encoder"] = str(make_bert(tmp_path / "bert", ["fever"]))
    with pytest.raises(SapbertError, match=rf"E394.*\(other: {name}\)"):
        build_kb(concepts_file, tmp_path / "kb", reuse=sample_kb, **build)
    assert not (tmp_path / "kb").exists()


def test_build_kb_does_not_reuse_short_values_for_long_ones(
    concepts_file: Path, tiny_encoder: Path, tmp_path: Path
) -> None:
    build = {"encoder": str(tiny_encoder), "backend": "exact", "engine": "torch"}
    build_kb(concepts_file, tmp_path / "short", **build | {"backend": "faiss"})
    with pytest.raises(SapbertError, match="E394.*16 bits"):
        build_kb(concepts_file, tmp_path / "kb", reuse=tmp_path / "short", **build)
