"""INCEpTION and WebAnno: UIMA CAS as XMI or JSON, and WebAnno TSV 3.

All count offsets in UTF-16 units. A file is a document.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

from ...errors import SapbertError, too_long
from ...io.json_members import read_members
from ...io.reading import read_lines
from ...io.xml_blocks import read_children
from ..documents import OnError, raise_error
from ..gold import LONGEST, MENTIONS, GoldDocument, check_count
from ..inputs.files import read_head
from .exports import check_text, is_id_field
from .spans import Fail, Mark, place_marks, read_ids, read_records

Features = Mapping[str, Any]
NAMED_ENTITY = "NamedEntity"  # the layer for mentions; others are custom ones
CUSTOM = re.compile(r"(webanno\.)?custom\d*[.:]")
# of relations, links of chains, and what is no annotation of a person
OTHER_FEATURES = ("Governor", "Dependent", "governor", "dependent", "next", "target")
LABELS = ("value", "label")
TSV = b"#FORMAT=WebAnno TSV 3"
TSV_ROW = re.compile(r"\d+-\d+(?:\.\d+)?\t(\d+)-(\d+)\t([^\t]*)(?:\t(.*))?")
TSV_VALUE = re.compile(r"((?:\\.|[^\\|\[])*)(?:\[(\d+)\])?(?:\||$)")
ESCAPED = re.compile(r"\\(->|.)")
BLANKS = {"t": "\t", "n": "\n", "r": "\r"}
NO_LAYER, NO_VALUE = "_", "*"


def is_mention_layer(layer: str, features: Iterable[str]) -> bool:
    """Return whether a layer is for mentions, by its name and its features."""
    names = {*features}
    is_custom = CUSTOM.match(layer) and names.isdisjoint(OTHER_FEATURES)
    return bool(layer.endswith(NAMED_ENTITY) or is_custom or "identifier" in names)


def make_mark(layer: str, features: Features) -> Mark:
    ids = [value for key, value in features.items() if is_id_feature(key, value)]
    flat = chain.from_iterable(v if isinstance(v, list) else [v] for v in ids)
    named = "" if layer.endswith(NAMED_ENTITY) else re.split(r"[.:]", layer)[-1]
    label = next(filter(None, map(features.get, LABELS)), named)
    start, end = int(features["begin"]), int(features["end"])
    return Mark(start, end, str(label), None, read_ids(flat, named=True))


def is_id_feature(name: str, value: Any) -> bool:
    is_address = isinstance(value, str) and value.startswith(("http://", "https://"))
    return is_address or (is_id_field(name) and not name.startswith(("xmi:", "%")))


def read_gold(
    path: Path, *, longest: int = LONGEST, on_error: OnError = raise_error
) -> Iterator[GoldDocument]:
    """Read a document of INCEpTION: XMI, CAS JSON, or WebAnno TSV 3.

    Mentions are the layer `NamedEntity`, custom layers, and others with a feature
    `identifier`. The type is the feature `value` or `label`; an id is a feature that is
    named so, such as `identifier`, or an address in one. No type system is needed.

    Source: https://inception-project.github.io/releases/38.0/docs/user-guide.html
    """
    head = read_head(path).lstrip()
    if head.startswith(TSV):
        try:
            yield read_tsv(path, longest=longest)
        except SapbertError as error:
            on_error(error)
        return

    def make(features: Iterable[Features], fail: Fail) -> GoldDocument:
        return to_gold(path, features, fail, longest=longest)

    parse = parse_xmi if head.startswith(b"<") else parse_json
    format = "UIMA CAS in XMI or JSON"
    yield from read_records(path, format, parse, make, lambda _: path.name, on_error)


def to_gold(
    path: Path, structures: Iterable[Features], fail: Fail, *, longest: int
) -> GoldDocument:
    """Convert feature structures as CAS JSON has them; those of mentions are kept."""
    texts: dict[str, Any] = {}
    lists: dict[Any, Any] = {}
    kept: list[Features] = []
    for each in structures:
        type, id = each["%TYPE"], each["%ID"]
        if type.endswith("Sofa"):
            texts[str(id)] = each.get("sofaString")
        elif "%ELEMENTS" in each:
            lists[id] = each["%ELEMENTS"]
        elif "begin" in each and is_mention_layer(type, (n.lstrip("@") for n in each)):
            kept.append(each)
        if len(kept) + len(lists) > MENTIONS:
            raise fail(f"at most {MENTIONS:,} mentions")
    sofa, text = next((item for item in texts.items() if item[1]), ("", None))
    text = check_text(text, path, fail, longest)
    marks: list[Mark] = []
    for each in kept:
        if str(each["@sofa"]) == sofa:
            listed = {
                name[1:]: lists[value]
                for name, value in each.items()
                if name[:1] == "@" and value in lists  # else another annotation
            }
            plain = {name: value for name, value in each.items() if name[:1] != "@"}
            marks.append(make_mark(each["%TYPE"], {**plain, **listed}))
    return GoldDocument(path.name, text, place_marks(text, marks, fail, utf16=True))


def parse_json(path: Path, _: Fail) -> list[Iterator[Features]]:
    places = [("%FEATURE_STRUCTURES",)]
    return [(structure for _, structure in read_members(path, places))]


def parse_xmi(path: Path, fail: Fail) -> list[Iterator[Features]]:
    def check_root(tag: str, _: dict[str, str], __: int) -> None:
        if not tag.endswith("XMI"):
            raise fail("`xmi:XMI` as the root element")

    return [(to_features(each) for _, each in read_children(path, check_root))]


def to_features(element: Element) -> Features:
    """Return an element as CAS JSON has it; a list has an element for each member."""
    features: dict[str, Any] = {"%TYPE": element.tag, "%ID": element.get("xmi:id")}
    for name, value in element.attrib.items():
        features["@sofa" if name == "sofa" else name] = value
    for child in element:
        features.setdefault(child.tag, []).append(child.text)
    return features


def read_tsv(path: Path, *, longest: int) -> GoldDocument:
    """Read WebAnno TSV: sentences, a line a token, and a column a feature.

    An annotation of several tokens has a number in brackets in each of them; bars are
    between annotations of one token. Line feeds fill what is between sentences.
    """
    layers: list[tuple[str, list[str]]] = []
    texts: list[str] = []
    sentence: list[str] = []
    length = 0  # of the text, in UTF-16 units
    found = defaultdict[tuple[str, str], dict[str, Any]](dict)

    def wrong(number: int, expected: str) -> SapbertError:
        return SapbertError(
            "E117",
            f"{path}:{number}: Expected {expected}, as WebAnno TSV 3 has it, but got "
            "something else. Export the file again.",
        )

    def close_sentence(number: int, start: int) -> None:
        nonlocal length
        if sentence:
            if start < length:
                raise wrong(number, "a sentence after the end of the one before")
            text = "\n" * (start - length) + "\n".join(sentence)
            length += len(text.encode("utf-16-le")) // 2
            texts.append(text)
            sentence.clear()

    for number, line in read_lines(path):
        if match := TSV_ROW.fullmatch(line):
            start, end = int(match[1]), int(match[2])
            close_sentence(number, start)
            if length > 2 * longest:
                raise too_long(path=path, line=number, limit=longest)
            cells = iter((match[4] or "").split("\t"))
            for layer, names in layers:
                for name in names:
                    cell = next(cells, NO_LAYER)
                    values = split_cell(cell) if layer else []
                    for place, (value, key) in enumerate(values):
                        known = found[layer, key or f"{number} {place}"]
                        check_count(path, number, found)
                        known["begin"] = min(start, known.get("begin", start))
                        known["end"] = max(end, known.get("end", end))
                        if value is not None:
                            known[name] = value
        elif line.startswith("#T_"):
            name, *names = line.partition("=")[2].split("|")
            is_kept = line.startswith("#T_SP=") and is_mention_layer(name, names)
            layers.append((name if is_kept else "", names or [""]))
        elif line.startswith("#Text="):
            sentence.append(unescape(line.removeprefix("#Text=")))
        elif line.strip() and not line.startswith("#"):
            raise wrong(number, "a token with its place, and tabs")
    text = "".join(texts)
    if len(text) > longest:
        raise too_long(path=path, line=1, limit=longest)
    marks = [make_mark(layer, features) for (layer, _), features in found.items()]
    kept = [mark for mark in marks if mark.start < mark.end]
    mentions = place_marks(text, kept, partial(wrong, 1), utf16=True)
    return GoldDocument(path.name, text, mentions)


def split_cell(cell: str) -> list[tuple[str | None, str]]:
    """Return the values of a cell, and the numbers of their annotations."""
    if cell in (NO_LAYER, ""):
        return []
    values = (match.groups() for match in TSV_VALUE.finditer(cell))
    return [
        (None if value == NO_VALUE else unescape(value), key or "")
        for value, key in values
        if value
    ]


def unescape(text: str) -> str:
    return ESCAPED.sub(lambda match: BLANKS.get(match[1], match[1]), text)
