import gzip
import json
from pathlib import Path
from typing import Any

import ijson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.io import json_members, reading
from spacy_sapbert.io.json_members import JSONError, read_members

PLACES = (("a", "b"), ("c",))


def write(folder: Path, data: bytes) -> Path:
    path = folder / "x.json"
    path.write_bytes(data)
    return path


def read(path: Path) -> list[tuple[tuple[str, ...], Any]]:
    return list(read_members(path, PLACES))


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 62), 1 << 62)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "b", "c", "ü"]), inner, max_size=3)
    ),
    max_leaves=6,
)
LISTS = st.lists(VALUES, max_size=4)


@given(
    graphs=st.lists(LISTS, min_size=1, max_size=3),
    others=st.dictionaries(st.sampled_from(["x", "a2"]), VALUES),
    direct=LISTS,
    indent=st.sampled_from([None, 1]),
    ascii=st.booleans(),
    block_bytes=st.integers(1, 30),
    packed=st.booleans(),
)
def test_read_members_parses_as_python_does_whatever_the_blocks(
    tmp_path_factory, graphs, others, direct, indent, ascii, block_bytes, packed
):
    data = {**others, "a": [{**others, "b": each} for each in graphs], "c": direct}
    text = json.dumps(data, indent=indent, ensure_ascii=ascii)
    path = tmp_path_factory.mktemp("json") / ("x.json.gz" if packed else "x.json")
    raw = text.encode("utf8", "surrogatepass")
    path.write_bytes(gzip.compress(raw) if packed else raw)
    expected = [(("a", "b"), each) for graph in graphs for each in graph]
    expected += [(("c",), each) for each in direct]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "BLOCK_BYTES", block_bytes)
        assert read(path) == expected


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b'{"c": {}}',
        b'{"c": ["a',
        b'{"c": ["\xed\xa0\x80"]}',  # half of a character
        b'{"c": [NaN, 1e999]}',
        b'{"c": [' + b"[" * 200_000,
        b'{"c": [' + b"9" * 5_000 + b"]}",
    ],
)
@pytest.mark.parametrize("backend", ["yajl2_c", "python"])
def test_read_members_what_is_no_json_is_an_error_that_quotes_nothing(
    tmp_path, data, backend, monkeypatch
):
    monkeypatch.setattr(ijson, "basic_parse", ijson.get_backend(backend).basic_parse)
    with pytest.raises(JSONError, match="list|JSON|nesting"):
        read(write(tmp_path, data))


def test_read_members_too_large_a_member_is_an_error(tmp_path, monkeypatch):
    path = write(tmp_path, json.dumps({"c": [1, [["x" * 70]] * 40_000]}).encode())
    assert len(read(path)) == 2
    monkeypatch.setattr(json_members, "RECORD_VALUES", 30_000)
    with pytest.raises(SapbertError, match=r"E007.*x\.json:1: "):
        read(path)
    monkeypatch.undo()
    monkeypatch.setattr(json_members, "RECORD_BYTES", 1 << 20)
    with pytest.raises(SapbertError, match=r"E007.*x\.json:1: "):
        read(path)
