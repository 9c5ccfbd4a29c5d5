"""Files of annotation tools: how they are told apart, read, written and refused."""

import io
import json
import shutil
import tempfile
import warnings
from pathlib import Path
from typing import Any

import cassis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.formats.corpus import detect_corpus, open_corpus, read_corpus
from spacy_sapbert.formats.entities import LinkedDoc, describe_mention
from spacy_sapbert.formats.format_table import FORMATS, load_writer
from spacy_sapbert.formats.inputs.files import detect_format, list_inputs
from spacy_sapbert.formats.inputs.reading import read_documents
from tests.commands import invoke
from tests.formats.test_examples import FOLDER

TOOLS = (
    "bionlp",
    "doccano",
    "inception",
    "labelstudio",
    "medcattrainer",
    "prodigy",
    "pubannotation",
)
FILES = [
    pytest.param(name, file.relative_to(FOLDER), id=f"{name}-{file.name}")
    for name in TOOLS
    for file in sorted((FOLDER / name).rglob("*"))
    if file.suffix in FORMATS[name].endings
    and file.name not in ("expected.jsonl", "converted.json")
]


@pytest.mark.parametrize(("name", "file"), FILES)
def test_a_file_of_a_tool_is_known_by_its_content(name, file):
    path = FOLDER / file
    # lines of JSON are read alike, whatever tool wrote them
    same = (name, "jsonl") if path.suffix == ".jsonl" else (name,)
    assert detect_format(path) in same
    assert detect_corpus(path) in same
    if path.suffix == ".a1":
        assert detect_format(path.with_suffix(".txt")) == name
        assert detect_corpus(path.parent) == name


@pytest.mark.parametrize(("name", "file"), FILES)
@pytest.mark.filterwarnings("ignore:.*(W533|W540)")
def test_link_has_the_spans_that_a_person_made(name, file):
    path, errors = FOLDER / file, list[SapbertError]()
    gold = [document for document in open_corpus(path, name) if document.text]
    for files in (list_inputs([path]), list_inputs([path], name)):
        documents = [
            *read_documents(
                files, longest=1000, overlapping=True, on_error=errors.append
            )
        ]
        assert [d.text for d in documents if d.text] == [d.text for d in gold]
        for document, same in zip(documents, gold, strict=False):
            mentions = document.mentions or []
            assert [m[:4] for m in mentions] == [m[:4] for m in same.mentions]
            covered = [document.text[m.start : m.end] for m in mentions]
            assert covered == [m.mention for m in mentions]
    assert bool(errors) == (path.name == "without_text.json")


def test_link_does_not_link_mentions_without_their_text():
    path = FOLDER / "medcattrainer" / "without_text.json"
    with pytest.raises(SapbertError, match="E117.*note 1: .*its text"):
        list(read_documents(list_inputs([path]), longest=1000))


WITHOUT_IDS = ["doccano/all.jsonl", "labelstudio/min.json", "bionlp/none"]


@pytest.mark.parametrize("file", WITHOUT_IDS)
def test_mentions_without_ids_are_not_nil_for_any_command(file, sample_kb, tmp_path):
    path, table, docs = FOLDER / file, tmp_path / "a.tsv", tmp_path / "a.spacy"
    for words in (
        ["evaluate", sample_kb, path],
        ["teach", sample_kb, path, "--output", tmp_path / "kb", "--force"],
        ["convert", path, "--output", table],
    ):
        shown = " ".join(invoke(*words, code=1).output.split())
        assert "[E106]" in shown
        assert "nobody has said that a mention has no concept" in shown
    assert not table.exists()
    invoke("convert", path, "--output", docs, code=0)
    assert [m.parts for d in open_corpus(docs) for m in d.mentions][0] == [[]]


def test_a_format_that_cannot_hold_ids_says_so():
    with pytest.raises(SapbertError, match="doccano has no place for one"):
        list(read_corpus(FOLDER / "doccano" / "all.jsonl", "doccano"))
    assert [name for name in TOOLS if not FORMATS[name].ids] == ["doccano"]
    path = FOLDER / "prodigy" / "marked.jsonl"
    with pytest.warns(UserWarning, match="W539.* 1 of 4 have neither.*`kb_id`"):
        found = [m.parts for d in read_corpus(path, "prodigy") for m in d.mentions]
    assert found == [[["C0004057"]], [], [["C0027051"]]]


def test_what_nobody_has_accepted_is_counted():
    for file, counts in (
        ("labelstudio/project.json", "1 tasks without.*, 2 annotations of the same"),
        ("medcattrainer/with_text.json", "3 mentions .*refused, 1 mentions .*nobody"),
    ):
        with pytest.warns(UserWarning, match=f"W540.*{counts}"):
            list(open_corpus(FOLDER / file))


def test_ids_have_prefixes_as_asked():
    path = FOLDER / "inception" / "note.xmi"
    prefix = "http://www.wikidata.org/entity/"
    with pytest.warns(UserWarning, match="W539"):
        [document] = read_corpus(path, drop_prefix=prefix, prefix="WIKIDATA:")
    assert document.mentions[0].parts == [["WIKIDATA:Q18216"]]


def test_a_folder_of_files_is_one_corpus(tmp_path):
    for name in ("b", "a/b"):
        path = tmp_path / name / "user.xmi"
        path.parent.mkdir(parents=True)
        path.write_bytes((FOLDER / "inception" / "note.xmi").read_bytes())
    (tmp_path / "TypeSystem.xml").write_text("<typeSystemDescription/>")
    assert detect_corpus(tmp_path) == "inception"
    ids = ["a/b/user.xmi", "b/user.xmi"]
    assert [document.id for document in open_corpus(tmp_path)] == ids
    files = list_inputs([tmp_path], "inception")
    documents = read_documents(files, longest=1000, overlapping=True)
    assert [document.id for document in documents] == ids


TEXTS = st.text(st.sampled_from("ab 💊é\u200d\r\n|_[]*\\"), min_size=1, max_size=30)
SPANS = st.lists(st.tuples(st.integers(0, 29), st.integers(1, 9)), max_size=4)


def make_linked(text: str, spans: Any) -> LinkedDoc:
    places = {(start, min(start + size, len(text))) for start, size in spans}
    entities = [
        describe_mention(start, end, text[start:end], label, cui)
        for number, (start, end) in enumerate(sorted(places))
        if start < end
        for label, cui in [(("DRUG", "C1"), ("", None))[number % 2]]
    ]
    return LinkedDoc("1", text, entities)


def submit(tasks: list[Any]) -> list[Any]:
    """What a person makes of tasks in Label Studio who accepts each prediction."""
    return [
        {
            "id": task["data"]["id"],
            "data": task["data"],
            "annotations": [{"id": 1, "result": task["predictions"][0]["result"]}],
        }
        for task in tasks
    ]


@pytest.mark.parametrize("name", ["doccano", "labelstudio"])
@given(docs=st.lists(st.builds(make_linked, TEXTS, SPANS), min_size=1, max_size=3))
def test_what_is_written_for_a_tool_comes_back_from_it(name, docs):
    file = io.BytesIO()
    load_writer(name)(iter(docs), file)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"out{FORMATS[name].part_suffix}"
        path.write_bytes(file.getvalue())
        if name == "labelstudio":
            path.write_text(json.dumps(submit(json.loads(file.getvalue()))))
        found = [*open_corpus(path, name)]
    assert [document.text for document in found] == [doc.text for doc in docs]
    for document, doc in zip(found, docs, strict=True):
        expected = [
            (
                entity["start"],
                entity["end"],
                entity["label"] or "ENTITY",
                [[entity["cui"]]] if entity["cui"] and name != "doccano" else [[]],
            )
            for entity in doc.entities
        ]
        assert [(m[0], m[1], m.type, m.parts) for m in document.mentions] == expected


@pytest.mark.filterwarnings("ignore:.*W540")
def test_predictions_that_a_person_accepts_are_measured_and_taught(sample_kb, tmp_path):
    notes, path = tmp_path / "notes.txt", tmp_path / "tasks.json"
    notes.write_text("Fever and a heart attack.", "utf8")
    words = ("--format", "labelstudio", "--output", path)
    invoke("link", sample_kb, notes, *words, code=0)
    tasks = json.loads(path.read_text("utf8"))
    with pytest.raises(SapbertError, match="E106"):  # nobody has accepted them
        list(read_corpus(path))
    path.write_text(json.dumps(submit(tasks)), "utf8")
    found = [(m.mention, m.parts) for d in read_corpus(path) for m in d.mentions]
    assert found == [("Fever", [["C0000004"]]), ("heart attack", [["C0000001"]])]
    invoke("evaluate", sample_kb, path, code=0)
    words = ("--output", tmp_path / "taught", "--force")
    invoke("teach", sample_kb, path, *words, code=0)
    output = tmp_path / "again.jsonl"
    invoke("link", sample_kb, path, "--output", output, code=0)
    [document] = open_corpus(output)
    assert [(m.mention, m.parts) for m in document.mentions] == found


NAMED_ENTITY = "de.tudarmstadt.ukp.dkpro.core.api.ner.type.NamedEntity"


def make_cas(doc: LinkedDoc) -> Any:
    types = cassis.TypeSystem()
    entity = types.create_type(NAMED_ENTITY, supertypeName="uima.tcas.Annotation")
    for feature in ("value", "identifier"):
        types.create_feature(entity, feature, "uima.cas.String")
    cas = cassis.Cas(typesystem=types)
    cas.sofa_string, cas.sofa_mime = doc.text, "text/plain"
    for each in doc.entities:
        place = {"begin": each["start"], "end": each["end"]}
        cas.add(entity(**place, value=each["label"] or None, identifier=each["cui"]))
    return cas


@given(doc=st.builds(make_linked, TEXTS, SPANS))
def test_a_cas_is_read_as_the_library_writes_it(doc):
    cas = make_cas(doc)
    with tempfile.TemporaryDirectory() as folder:
        for name, text in (("a.xmi", cas.to_xmi()), ("a.json", cas.to_json())):
            path = Path(folder) / name
            path.write_text(text, "utf8", newline="")
            [document] = open_corpus(path)
            assert document.text == doc.text
            found = [(*m[:4], m.parts) for m in document.mentions]
            expected = [
                (
                    each["start"],
                    each["end"],
                    each["label"],
                    doc.text[each["start"] : each["end"]],
                    [[each["cui"]]] if each["cui"] else [[]],
                )
                for each in doc.entities
            ]
            assert sorted(found) == sorted(expected)


@pytest.mark.parametrize(("name", "file"), FILES)
@given(data=st.data())
def test_a_damaged_file_is_an_error_with_its_name(name, file, data):
    whole = (FOLDER / file).read_bytes()
    start = data.draw(st.integers(0, len(whole)))
    size = data.draw(st.sampled_from([0, 1, 2, 5, 40, len(whole)]))
    new = data.draw(st.sampled_from([b"", b"{", b"]", b'"', b"\xff", b"null", b"-1"]))
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / file.name
        for other in (FOLDER / file).parent.glob(f"{file.stem}.*"):
            path.with_name(other.name).write_bytes(other.read_bytes())
        path.write_bytes(whole[:start] + new + whole[start + size :])
        for read in (
            lambda: [*open_corpus(path, name)],
            lambda: [*read_documents(list_inputs([path], name), longest=1000)],
            lambda: [*open_corpus(path)],
        ):
            told = ""
            try:
                read()
            except SapbertError as error:
                told = str(error)
            assert file.name in told or file.stem in told or not told
            assert "aspirin" not in told


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("labelstudio", '[{"id": 1, "data": {"a": "x", "b": "y"}, "annotations": %s}]'),
        ("labelstudio", '[{"data": {"text": "ab"}, "annotations": [{"result": 7}]}] 7'),
        ("labelstudio", "[7]"),
        ("medcattrainer", '{"projects": [{"documents": [{"text": "ab"}]}]}'),
        ("medcattrainer", '{"projects": 7}'),
        ("pubannotation", '{"text": "ab", "denotations": [{"id": "T1"}]}'),
        ("pubannotation", '{"text": "ab", "denotations": [{"span": {"begin": 1, '
         '"end": 9}, "obj": "X"}]}'),
        ("inception", '{"%FEATURE_STRUCTURES": []}'),
        ("inception", '{"%FEATURE_STRUCTURES": 7}'),
        ("inception", "<a/>"),
        ("inception", "#FORMAT=WebAnno TSV 3.3\n1-1 0-1 a"),
        ("inception", "#FORMAT=WebAnno TSV 3.3\n#Text=a\n1-1\t2-3\ta\n#Text=b\n"
         "2-1\t0-1\tb\n"),
        ("prodigy", '[{"text": "a"}, 7]'),
        ("doccano", '[{"text": "ab", "label": [[0, "X"]]}]'),
    ],
)  # fmt: skip
def test_a_file_of_another_structure_is_an_error(name, text, tmp_path):
    path = tmp_path / "export.json"
    path.write_text(text.replace("%s", '[{"result": []}]'))
    with pytest.raises(SapbertError, match="E117|E150") as caught:
        list(open_corpus(path, name))
    assert str(path) in str(caught.value)


def test_offsets_in_units_of_javascript_are_known_by_the_text(tmp_path):
    def write(*values: dict[str, Any]) -> Path:
        result = [
            {"id": str(n), "type": "labels", "value": v} for n, v in enumerate(values)
        ]
        task = {"id": 1, "data": {"text": "💊 fever 💊 cough"}}
        path = tmp_path / "tasks.json"
        path.write_text(json.dumps([{**task, "annotations": [{"result": result}]}]))
        return path

    fever = {"start": 3, "end": 8, "text": "fever", "labels": ["X"]}
    cough = {"start": 12, "end": 17, "text": "cough", "labels": ["X"]}
    [document] = open_corpus(write(fever, cough))
    assert [m[:4] for m in document.mentions] == [
        (2, 7, "X", "fever"),
        (10, 15, "X", "cough"),
    ]
    stars = {"start": 3, "end": 8, "text": "fever", "rating": 4}
    rated = write(fever)
    rated.write_text(
        rated.read_text().replace(
            '"result": [',
            f'"result": [{json.dumps({"type": "rating", "value": stars})}, ',
        )
    )
    [document] = open_corpus(rated)
    assert [m.mention for m in document.mentions] == ["fever"]
    characters = {"start": 2, "end": 7, "text": "fever", "labels": ["X"]}
    [document] = open_corpus(write(characters))
    assert document.mentions[0][:2] == (2, 7)
    with pytest.raises(SapbertError, match="E117.*give their text"):
        list(open_corpus(write(characters, cough)))


@pytest.mark.parametrize("name", ["doccano", "inception", "brat"])
def test_an_export_in_a_zip_is_read_as_its_folder(name, tmp_path):
    if name == "brat":
        folder = FOLDER / "brat" / "corpus"
    else:
        folder = tmp_path / "export"
        folder.mkdir()
        files = [f for f in (FOLDER / name).iterdir() if "expected" not in f.name]
        file = next(f for f in sorted(files) if f.suffix in (".jsonl", ".xmi"))
        shutil.copy(file, folder)
        (folder / "TypeSystem.xml").write_text("<typeSystemDescription/>")
    archive = Path(shutil.make_archive(str(tmp_path / "all"), "zip", folder))
    assert [*open_corpus(archive)] == [*open_corpus(folder)]
    # an error names the file in the zip
    target = next(
        f for f in folder.rglob("*") if f.suffix in (".jsonl", ".xmi", ".ann")
    )
    copy = Path(shutil.copytree(folder, tmp_path / "broken"))
    (copy / target.relative_to(folder)).write_bytes(b"T1\tX 7\n\xff<")
    archive = Path(shutil.make_archive(str(tmp_path / "broken"), "zip", copy))
    with pytest.raises(SapbertError) as caught:
        [*open_corpus(archive, name)]
    assert f"{archive}/" in str(caught.value)
    assert "spacy-sapbert-" not in str(caught.value)
