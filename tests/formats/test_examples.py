"""Annotated files and the documents in them, and linked documents as each file.

A folder of `examples` has files and `expected.jsonl`: there a line says what is read,
with which options, and the lines below it are the documents, with mentions as lists.
`converted.json` has what `convert` writes of each case: a table, and Docs.
`written` has the same documents as each format writes them. After a change,
`python -m tests.formats.test_examples` writes all of it again, and git shows what is
different: read it.
"""

import json
import re
import shutil
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from spacy.tokens import DocBin, Span

from spacy_sapbert import __version__
from spacy_sapbert.errors import SapbertError
from spacy_sapbert.formats.convert import convert_corpus
from spacy_sapbert.formats.corpus import open_corpus
from spacy_sapbert.formats.documents import FIELDS
from spacy_sapbert.formats.entities import LinkedDoc, describe_docs
from spacy_sapbert.formats.format_table import FORMATS, load_writer, open_target
from spacy_sapbert.formats.gold_docs import read_docs
from spacy_sapbert.formats.inputs.files import list_inputs
from spacy_sapbert.formats.inputs.reading import read_documents
from spacy_sapbert.formats.inputs.rows import Columns
from spacy_sapbert.formats.linked_docs import TO_CORRECT, detect_linked, open_linked
from tests.golden import read_cases
from tests.pipelines import NLP, make_nlp

FOLDER = Path(__file__).parent / "examples"
READ = sorted({path.name for path in FOLDER.iterdir()} - {"written", "documents"})
WRITTEN = {
    name: format.suffixes[0] if format.suffixes else format.part_suffix
    for name, format in FORMATS.items()
    if format.write
}
WITHOUT_TEXT = ("jsonl", "csv", "parquet", "biocxml", "biocjson", "table")
WRITES = [
    *((name, True) for name in WRITTEN),
    *((name, False) for name in WITHOUT_TEXT),
]
WHOLE = ("jsonl", "csv", "parquet")  # of which all fields are read
UNREAD = ("table", "html", "omop", *TO_CORRECT)  # as links
REWRITTEN = [
    *((name, True) for name in WRITTEN if name not in UNREAD),
    *((name, False) for name in WHOLE),
]
ERROR = "[E117] notes.jsonl:2: Expected a document with a text as `text`."
ASPIRIN = {
    "cui": "C0004057",
    "name": "Aspirin\tpills",
    "alias": "aspirin",
    "score": -0.5,
    "rank": 1,
    "types": ["T109"],
    "codes": {"MSH": ["D001241", "\u2028"], "OMOP": ["1112807", "5"]},
    "tie": "id",
    "probability": np.float32(0.75),
}
OTHER = {**ASPIRIN, "cui": "C2", "name": "=1+1", "score": float("nan"), "codes": {}}
OTHER["probability"] = None


def read_case(name: str, case: dict[str, Any]) -> list[dict[str, Any]]:
    path, options = FOLDER / name / case["read"], case.get("options", {})
    documents = open_corpus(path, case.get("format"), **options)
    return [
        {"id": each.id, "text": each.text, "mentions": [*map(list, each.mentions)]}
        for each in documents
    ]


CASES = [
    pytest.param(name, case, documents, id=f"{name}-{number}")
    for name in READ
    for number, (case, documents) in enumerate(read_cases(FOLDER / name))
]


@pytest.mark.parametrize(("name", "case", "expected"), CASES)
def test_example_has_its_documents(name, case, expected):
    assert read_case(name, case) == expected


def read_to_link(case: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the documents to link in a case, then errors and counts."""
    folder = FOLDER / "documents"
    errors: list[SapbertError] = []
    counts = Counter[str]()
    columns = Columns(*case.get("columns", []))
    documents = read_documents(
        list_inputs([folder / case["read"]]),
        longest=1_000,
        columns=columns,
        encoding=case.get("encoding", "utf-8"),
        on_error=errors.append,
        counts=counts,
        keep_failed=True,
        **case.get("options", {}),
    )
    shown: list[dict[str, Any]] = []
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", ResourceWarning)  # of garbage of other tests
        for each in documents:
            data = {"id": each.id, "text": each.text, "mentions": each.mentions}
            data |= {"fields": each.fields, "place": each.place}
            data["failed"] = bool(each.error)
            shown.append({k: v for k, v in data.items() if v not in (None, "", False)})
    texts = [
        str(each).replace(f"{folder}/", "")
        for each in (*errors, *(warning.message for warning in warned))
    ]
    assert "SENTINEL" not in "".join(texts)
    # without reasons of libraries, and how to correct it
    first = [re.split(r" \(|\. ", text)[0] for text in texts[: len(errors)]]
    shown.append({"errors": first, "counts": dict(counts)})
    if warned:
        shown[-1]["warnings"] = texts[len(errors) :]
    return shown


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        pytest.param(case, expected, id=case["read"])
        for case, expected in read_cases(FOLDER / "documents")
    ],
)
def test_example_has_its_documents_to_link(case, expected):
    assert json.loads(json.dumps(read_to_link(case))) == expected


def convert_case(name: str, case: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return the table and the entities of Docs of a case, and what was counted."""
    path, options = FOLDER / name / case["read"], case.get("options", {})
    documents = [*open_corpus(path, case.get("format"), **options)]
    counts = convert_corpus(documents, folder / "gold.tsv")
    found: dict[str, Any] = {
        "table": (folder / "gold.tsv").read_text("utf8").split("\n")
    }
    for which in ("entities", "linked"):
        output = folder / f"{which}.spacy"
        more = convert_corpus(documents, output, linked_only=which == "linked")
        docs = DocBin().from_disk(output).get_docs(NLP.vocab)
        found[which] = [show_spans(doc.ents) for doc in docs]
        counts |= {f"{which}: {key}": n for key, n in more.items()}
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", ResourceWarning)  # of garbage of other tests
        named = [*read_docs(path, NLP, format=case.get("format"), **options)]
    found["warnings"] = [str(w.message).replace(f"{FOLDER}/", "") for w in warned]
    found["keys"] = [key for key, _ in named]
    groups = [doc.spans["gold"] for _, doc in named]
    found["groups"] = [show_spans(group) for group in groups]
    attributes = [dict(sorted(group.attrs.items())) for group in groups]
    found["attributes"] = [json.dumps(a, ensure_ascii=False) for a in attributes]
    return {**found, "counts": counts}


def show_spans(spans: Iterable[Span]) -> str:
    """Spans of a document in a line: text, label and id."""
    return "; ".join(f"{span.text} / {span.label_} / {span.kb_id_}" for span in spans)


@pytest.mark.filterwarnings("ignore:.*W530")
@pytest.mark.parametrize("name", READ)
def test_example_is_converted_to_a_table_and_to_docs(name, tmp_path):
    expected = json.loads((FOLDER / name / "converted.json").read_text("utf8"))
    cases = [case for case, _ in read_cases(FOLDER / name)]
    assert [convert_case(name, case, tmp_path) for case in cases] == expected


def make_docs(name: str) -> list[LinkedDoc]:
    """A Doc with a linked entity, and NIL, and one without; one that failed."""
    make_nlp(None)  # registers the attributes
    doc = NLP('💊 Took\r\n"aspirin" & <more>\ntoday')
    doc.user_data[FIELDS] = {"ward": "'=A"}
    doc.ents = [Span(doc, 4, 5, label="DRUG NAME"), Span(doc, 0, 1, label="A\u00a0B")]
    doc.ents[1]._.cui, doc.ents[1]._.candidates = "C0004057", [ASPIRIN, OTHER]
    doc.ents[0]._.candidates = [{**OTHER, "score": np.float32("inf")}]
    doc.ents[0]._.link_note = "below_threshold"
    ids = (7, -8) if name == "omop" else ("ward/n<1>.txt", 2)
    docs = [*describe_docs(zip(ids, (doc, NLP("nothing")), strict=True))]
    if name != "omop":
        docs.append(LinkedDoc("n3", "", [], {"ward": "B"}, error=ERROR))
    if name == "html":
        docs.append(make_page_doc())
    return docs


def make_page_doc() -> LinkedDoc:
    """What the page shows in several ways: ties, scores, groups, overlaps, markup."""
    text = "MI cold ASPIRIN heart attack now low high anat none <p> <q> <r>"
    tied = [
        {**OTHER, "cui": f"C{n}", "name": f"<b>{n}", "alias": "<i>", "score": score}
        for n, score in enumerate([1.0, 1.0, *[0.5] * 11])
    ]
    shown: list[tuple[str, dict[str, Any]]] = [
        ("MI", {"cui": "C0", "name": "Name 0", "tie": "id", "candidates": tied}),
        ("cold", {"name": "long " * 50, "tie": "preferred", "types": ["T047"]}),
        ("ASPIRIN", {"types": ["HPO class", "T121"]}),
        ("heart", {"types": ["HPO class"]}),
        ("heart attack", {"types": ["T047"]}),
        ("attack now", {"types": ["T047"]}),
        ("low", {"score": 0.79}),
        ("high", {"score": 0.8}),
        ("anat", {"cui": "UBERON:1", "types": ["ANAT"]}),
        ("none", {"cui": None, "name": None, "score": None, "note": "empty"}),
        ("<q>", {"cui": None, "name": None, "score": None, "note": "<i>"}),
        ("<p>", {"label": "<b>", "cui": "<b>'\"&", "name": "<u>", "types": ["<s>"]}),
        ("<r>", {"tie": "<em>", "note": "<i>", "candidates": [ASPIRIN]}),
    ]
    base: dict[str, Any] = {"label": "L", "cui": "C0004057", "name": "Aspirin"}
    base |= {"score": 0.9, "probability": None, "types": [], "codes": {}}
    base |= {"candidates": [], "note": None, "tie": None}
    entities: list[Any] = [
        {**base, "start": start, "end": start + len(mention), "text": mention, **fields}
        for mention, fields in shown
        for start in [text.index(mention)]
    ]
    return LinkedDoc("<es>", text, entities, lang="es")


def write_docs(
    name: str, docs: Iterable[LinkedDoc], path: Path, *, include_text: bool
) -> None:
    options: dict[str, Any] = {} if include_text else {"include_text": False}
    if "keep" in FORMATS[name].takes:
        options["keep"] = ["ward"]
    with open_target(path, name) as target:
        load_writer(name)(iter(docs), target, **options)


def write_example(name: str, folder: Path, *, include_text: bool) -> list[Path]:
    """Write the documents, without what is different in each run."""
    path = folder / f"{name}{'' if include_text else '-without-text'}{WRITTEN[name]}"
    write_docs(name, make_docs(name), path, include_text=include_text)
    if name == "parquet":
        parquet = pytest.importorskip("pyarrow.parquet")
        rows = parquet.read_table(path).to_pylist()
        path.unlink()
        path = path.with_suffix(".jsonl")
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf8")
    files = sorted(each for each in (path, *path.rglob("*")) if each.is_file())
    for file in files:
        text = file.read_bytes().decode().replace(__version__, "VERSION")
        if name == "html":  # these have tests of their own
            text = re.sub(r"(?s)<(style|script)>.*?</\1>", r"<\1></\1>", text)
            text = re.sub("sha256-[^']+", "HASH", text)
        text = re.sub(r"\d{4}-\d\d-\d\d( \d\d:\d\d:\d\d)?", "DATE", text)
        file.write_bytes(text.encode())
    return files


@pytest.mark.filterwarnings("ignore:.*W520")
@pytest.mark.parametrize(("name", "include_text"), WRITES)
def test_documents_are_written_as_in_the_example(name, include_text, tmp_path):
    if library := FORMATS[name].library:
        pytest.importorskip(library[0])
    files = write_example(name, tmp_path, include_text=include_text)
    assert files
    for file in files:
        expected = FOLDER / "written" / file.relative_to(tmp_path)
        assert file.read_bytes().decode() == expected.read_bytes().decode(), file.name


@pytest.mark.filterwarnings("ignore:.*W520")
@pytest.mark.parametrize(("name", "include_text"), REWRITTEN)
def test_documents_are_read_whole_and_written_again(name, include_text, tmp_path):
    first, again = (tmp_path / f"{which}{WRITTEN[name]}" for which in ("one", "two"))
    write_docs(name, make_docs(name), first, include_text=include_text)
    assert detect_linked(first) == name
    docs, options = open_linked(first, name)
    with open_target(again, name) as target:
        load_writer(name)(docs, target, **options)
    if name in WHOLE:
        assert again.read_bytes() == first.read_bytes()
    found = [*open_linked(first, name)[0]]
    cuis = [each["cui"] or None for doc in found for each in doc.entities]
    assert cuis == [None, "C0004057"]
    assert [*open_linked(again, name)[0]] == found


LINE = '{"text": "", "ward": "A", "entities": []}\n'


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("a.jsonl", '{"text": "", "entities": 7}'),
        ("a.jsonl", '{"text": "", "entities": [7]}'),
        ("a.jsonl", '{"text": 7, "entities": []}'),
        ("a.jsonl", '{"text": "", "bed": 7, "entities": []}'),
        ("biocjson/corpus.json", ""),  # has a mention with a gap
        ("pubtator/corpus.txt", ""),  # has one with two ids
    ],
)
def test_linked_documents_that_link_does_not_write_are_an_error(name, more, tmp_path):
    path = tmp_path / name if more else FOLDER / name
    if more:
        path.write_text(LINE + more)
    documents, _ = open_linked(path, str(detect_linked(path)))
    with pytest.raises(SapbertError, match=r"E117.*:2:" if more else "E117.*one id"):
        list(documents)


def write_expected() -> None:
    """Write what is expected again, as it is now."""
    for name in (*READ, "documents"):
        lines: list[Any] = []
        for case, _ in reversed([*read_cases(FOLDER / name)]):
            made = read_to_link(case) if name == "documents" else read_case(name, case)
            lines += [case, *made]
        texts = [json.dumps(line, ensure_ascii=False) + "\n" for line in lines]
        (FOLDER / name / "expected.jsonl").write_text("".join(texts), "utf8")
        if name == "documents":
            continue
        with tempfile.TemporaryDirectory() as folder:
            found = [
                convert_case(name, c, Path(folder))
                for c, _ in read_cases(FOLDER / name)
            ]
        text = json.dumps(found, ensure_ascii=False, indent=1)
        (FOLDER / name / "converted.json").write_text(f"{text}\n", "utf8")
    shutil.rmtree(FOLDER / "written", ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:
        for name, include_text in WRITES:
            write_example(name, Path(folder), include_text=include_text)
        shutil.copytree(folder, FOLDER / "written")


if __name__ == "__main__":
    write_expected()
