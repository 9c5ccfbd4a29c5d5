"""Exports of annotation tools in JSON: Label Studio, MedCATtrainer, PubAnnotation."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import Any

from ...errors import too_long
from ...io.json_members import read_members, read_values
from ...linking.sources import normalize_prefix
from ..bioc import VOCABULARIES, get_number
from ..documents import OnError, raise_error
from ..gold import LIKE_ID, LONGEST, NOWHERE, UNSAID, GoldDocument, GoldMention
from ..jsonl import list_objects, read_spans
from .spans import (
    Fail,
    Mark,
    place_marks,
    read_ids,
    read_records,
    warn_left_out,
)

Node = dict[str, Any]
# names of fields that have ids, in lower case without signs
ID_FIELD = re.compile(
    r"(.*(cui|code|concept|identifier|link)|(.*(concept|database|entity|kb))?id|"
    r"resolvedto|normali[sz]ation)s?"
)
REVIEWED = {"annotations", "completions"}  # of a task; the second before version 1


def is_id_field(name: object) -> bool:
    """Return whether the name of a field says that it has ids: tao:has_database_id."""
    words = str(name).rpartition(":")[2].lower()
    return bool(ID_FIELD.fullmatch("".join(filter(str.isalnum, words))))


def read_nodes(path: Path, _: Fail) -> Iterator[Node]:
    """Yield the objects of a file: its list, one a line, or one."""
    return (node for _, node in read_values(path))


def check_text(text: Any, path: Path, fail: Fail, longest: int) -> str:
    """Check the text of a document; JSON can escape halves of characters."""
    if not isinstance(text, str):
        raise fail("a text")
    if len(text) > longest:
        raise too_long(path=path, line=1, limit=longest)
    text.encode()
    return text


def name_node(node: Node, *names: str) -> str:
    """Return the id of a document, of fields of which each may be missing."""
    parts = [str(node[name]) for name in names if node.get(name) not in (None, "")]
    return "-".join(parts).encode("utf8", "replace").decode()


def read_label_studio(
    path: Path, *, longest: int = LONGEST, on_error: OnError = raise_error
) -> Iterator[GoldDocument]:
    """Read tasks of Label Studio, as JSON or JSON_MIN, that somebody has annotated.

    Of several annotations of a task the ground truth is read, or else the last one; a
    warning counts the others. Ids are what is said of a region: a text or choice whose
    control or form says that it is an id, the end of a taxonomy, or a note.

    Source: https://labelstud.io/guide/task_format
    """
    left_out, numbers = Counter[str](), count(1)

    def make(task: Node, fail: Fail) -> GoldDocument | None:
        number, id = next(numbers), name_node(task, "id") or path.name
        data = task.get("data")
        if data is None:  # JSON_MIN, which names a field like the control of a region
            text = check_text(task.get("text"), path, fail, longest)
            found = [each for value in task.values() for each in list_objects(value)]
            marks = list_regions([{"type": "labels", "value": v} for v in found], fail)
            spans = None if marks else read_spans(path, number, text, task)
            return GoldDocument(id, text, spans or place_marks(text, marks, fail))
        done = [each for name in REVIEWED for each in list_objects(task.get(name))]
        kept = [each for each in done if not each.get("was_cancelled")]
        kept = [each for each in kept if each.get("ground_truth")] or kept[-1:]
        left_out["tasks without an annotation"] += not kept
        left_out["annotations of the same task"] += len(done[1:])
        if not kept:
            return None
        marks = list_regions(kept[0]["result"], fail)
        texts = [value for value in data.values() if isinstance(value, str)]
        found = data.get("text", texts[0] if len(texts) == 1 else None)
        text = check_text(found, path, fail, longest)
        return GoldDocument(id, text, place_marks(text, marks, fail))

    def name(task: Node) -> str:
        return name_node(task, "id")

    format = "tasks of Label Studio"
    yield from read_records(path, format, read_nodes, make, name, on_error)
    warn_left_out(path, left_out)


def list_regions(result: Any, fail: Fail) -> list[Mark]:
    """Return the regions of a text that an annotation has, with their ids."""
    regions: dict[str, Node] = {}
    said: dict[str, list[list[list[str]]]] = {}
    for number, item in enumerate(list_objects(result)):
        value, kind = item.get("value"), str(item.get("type"))
        if not isinstance(value, dict) or "start" not in value:
            continue  # a relation, or what is said of the whole text
        key = str(item.get("id", number))
        named = is_id_field(item.get("from_name"))
        notes = (item.get("meta") or {}).get("text") or ()
        said.setdefault(key, []).append(read_ids(notes))
        if kind == "labels":
            regions[key] = value
        elif kind in ("choices", "textarea", "taxonomy"):
            regions.setdefault(key, {**value, "text": None, "labels": []})
            written = value["text" if kind == "textarea" else kind]
            ends = [each[-1] if isinstance(each, list) else each for each in written]
            said[key].append(read_ids(ends, named=named))
        elif kind.endswith("labels"):
            raise fail("regions of a plain text, by `Labels`")
    marks: list[Mark] = []
    for key, value in regions.items():
        parts = next((one for one in said[key] if one != UNSAID), UNSAID)
        covered = value.get("text")
        if covered is not None:
            covered = covered.replace("\\n", "\n")
        label = ",".join(value["labels"])
        start, end = get_number(value, "start"), get_number(value, "end")
        marks.append(Mark(start, end, label, covered, parts))
    return marks


def read_medcat(
    path: Path, *, longest: int = LONGEST, on_error: OnError = raise_error
) -> Iterator[GoldDocument]:
    """Read the projects of MedCATtrainer, exported with or without texts.

    An annotation counts if a person has validated it, and it is not deleted, killed or
    irrelevant. One that was corrected has the other concept as its `cui`. Without
    texts, mentions have no offsets.

    Source: https://github.com/CogStack/MedCATtrainer
    """
    left_out = Counter[str]()

    def make(document: Node, fail: Fail) -> GoldDocument:
        text = check_text(document.get("text", ""), path, fail, longest)
        marks: list[Mark] = []
        for node in document["annotations"]:
            if any(node.get(name) for name in ("deleted", "killed", "irrelevant")):
                left_out["mentions that a person refused"] += 1
            elif not node.get("validated", True):
                left_out["mentions that nobody has reviewed"] += 1
            else:
                parts, covered = read_ids([node["cui"]], named=True), node["value"]
                marks.append(Mark(node["start"], node["end"], "", covered, parts))
        if text or not marks:
            mentions = place_marks(text, marks, fail)
        else:
            mentions = [
                GoldMention(*NOWHERE, "", str(mark.covered), mark.parts, number)
                for number, mark in enumerate(marks, 1)
            ]
        return GoldDocument(name(document), text, mentions)

    def name(document: Node) -> str:
        return name_node(document, "name") or name_node(document, "id") or path.name

    def read_documents(path: Path, _: Fail) -> Iterator[Node]:
        return (node for _, node in read_members(path, [("projects", "documents")]))

    format = "projects of MedCATtrainer"
    yield from read_records(path, format, read_documents, make, name, on_error)
    warn_left_out(path, left_out)


def read_pubannotation(
    path: Path, *, longest: int = LONGEST, on_error: OnError = raise_error
) -> Iterator[GoldDocument]:
    """Read documents of PubAnnotation: one, a list of them, or one a line.

    The id of a denotation is an attribute with the form or the name of an id, else its
    `obj`, if that has the form of an id; else this is its type. Prefixes that
    `namespaces` declare as addresses are left as they are.

    Source: https://www.pubannotation.org/docs/annotation-format/
    """

    def make(document: Node, fail: Fail) -> GoldDocument:
        text = check_text(document.get("text"), path, fail, longest)
        tracks = [document, *list_objects(document.get("tracks"))]
        marks = [mark for track in tracks for mark in list_denotations(track)]
        return GoldDocument(name(document), text, place_marks(text, marks, fail))

    def name(document: Node) -> str:
        id = name_node(document, "sourcedb", "sourceid", "divid")
        return id or name_node(document, "id") or path.name

    format = "documents of PubAnnotation"
    return read_records(path, format, read_nodes, make, name, on_error)


def list_denotations(track: Mapping[str, Any]) -> Iterator[Mark]:
    """Yield the denotations of a project, with what its attributes say of them."""
    ids = defaultdict[str, list[str]](list)
    for attribute in track.get("attributes") or ():
        name, value = str(attribute["pred"]), str(attribute["obj"])
        named = is_id_field(name) or normalize_prefix(name) in VOCABULARIES
        if named or LIKE_ID.fullmatch(value):
            ids[str(attribute["subj"])].append(value)
    for denotation in track.get("denotations") or ():
        spans, type = denotation["span"], str(denotation["obj"])
        spans = spans if isinstance(spans, list) else [spans]
        start, end = spans[0]["begin"], spans[-1]["end"]
        own = read_ids([type])
        known = ids.get(str(denotation.get("id")))
        parts = read_ids(known, named=True) if known else own
        yield Mark(start, end, type if own == UNSAID else "", None, parts)
