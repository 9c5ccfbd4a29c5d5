"""Small files that unpack or parse to gigabytes: a named error, in bounded memory."""

import gzip
import random
import zlib
from pathlib import Path
from typing import Any

import pytest
from srsly import msgpack

READ = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
from pathlib import Path
from spacy_sapbert.errors import SapbertError
from spacy_sapbert.formats.inputs.files import list_inputs
from spacy_sapbert.formats.inputs.reading import read_documents
from spacy_sapbert.formats.registry import load_reader
from spacy_sapbert.vocabularies.concepts import read_concepts
from spacy_sapbert.vocabularies.registry import READERS, read_vocabulary

format, path = sys.argv[1], Path(sys.argv[2])
if format == "documents":
    items = read_documents(list_inputs([path]), longest=1_000_000)
elif format == "concepts":
    items = read_concepts(path)
elif format in READERS:
    items = read_vocabulary(path, format)
else:
    items = load_reader(format)(path)
try:
    count = sum(1 for _ in items)
    print(f"{count} read")
except SapbertError as error:
    print(error)
# Of this program alone: getrusage has the peak of the parent too.
status = Path("/proc/self/status")
if status.is_file():
    peak = int(status.read_text().partition("VmHWM:")[2].split()[0]) >> 10
    assert peak < 1000, f"{peak} MB"
"""
MB = 1 << 20
MESH = b"<DescriptorRecordSet><DescriptorRecord>"


def write(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def repeat(block: bytes, times: int, window: int) -> bytes:
    """Pack a block of bytes once, and repeat the packed bytes; the end is missing."""
    packer = zlib.compressobj(9, zlib.DEFLATED, window)
    first, packed = (packer.compress(block) + packer.flush(zlib.Z_FULL_FLUSH), b"")
    packed = packer.compress(block) + packer.flush(zlib.Z_FULL_FLUSH)
    return first + packed * times


def read(new_process: Any, format: str, path: Path) -> str:
    done = new_process.python(READ, format, str(path), timeout=100)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


# format, name, head, repeated block, its times, code
STREAMS = [
    ("rrf", "MRCONSO.RRF.gz", b"", bytes(MB), 9_000, "E007"),
    ("jsonl", "x.jsonl.gz", b'{"cui": "a", "name": "', b"a" * MB, 9_000, "E007"),
    ("obographs", "x.json.gz", b'{"graphs": [{"nodes": [', b" " * MB, 9_000, "E007"),
    ("icd10cm", "icd10cm.xml.gz", b"<a>", b"<diag>" * (MB // 6), 9_000, "E007"),
    ("mesh", "desc.xml.gz", MESH, b"<b>" * (MB // 3), 9_000, "E007"),
    ("mesh", "desc.xml.gz", MESH + b"<!--", b"a" * MB, 9_000, "E007"),
    ("biocxml", "x.xml.gz", b"<collection><document>", b"a" * MB, 9_000, "E007"),
    ("biocjson", "x.json.gz", b'{"documents": ["', b"a" * MB, 9_000, "E007"),
    ("documents", "x.jsonl.gz", b'{"text": [', b"[]," * (MB // 3), 9_000, "E007"),
    ("documents", "x.spacy", b"", bytes(MB), 9_000, "E007"),
]


@pytest.mark.parametrize(
    ("format", "name", "head", "block", "times", "code"),
    STREAMS,
    ids=[f"{number}-{format}" for number, (format, *_) in enumerate(STREAMS)],
)
def test_what_unpacks_to_gigabytes_is_a_named_error_in_bounded_memory(
    tmp_path: Path,
    format: str,
    name: str,
    head: bytes,
    block: bytes,
    times: int,
    code: str,
    new_process: Any,
) -> None:
    is_gzip = name.endswith(".gz")
    data = gzip.compress(head) if is_gzip else b""
    path = write(tmp_path, name, data + repeat(block, times, 31 if is_gzip else 15))
    assert path.stat().st_size < 64 * MB
    assert read(new_process, format, path).startswith(f"[{code}] {path}")


def write_docbin(path: Path, field: str, values: bytes) -> Path:
    """Write a DocBin of an empty Doc, of which a field has other values in msgpack."""
    noise = random.Random(0).randbytes(MB).hex()  # lets the file unpack to more
    whole = {"version": noise, "attrs": [65], "strings": ["fever"], "tokens": b""}
    whole |= {"spaces": b"", "lengths": bytes(4), "cats": [{}], "flags": [{}]}
    whole |= {"span_groups": [b"\x90"], "user_data": [b"\x80"]}
    del whole[field]
    packer = msgpack.Packer(use_bin_type=True)
    data = packer.pack_map_header(len(whole) + 1)
    data += b"".join(packer.pack(part) for pair in whole.items() for part in pair)
    path.write_bytes(zlib.compress(data + packer.pack(field) + values))
    return path


@pytest.mark.parametrize(
    ("field", "value", "nested"),
    [
        ("cats", b"\x80", 0),
        ("strings", b"\xa2aa", 0),
        ("flags", b"\x81\xa1a\x80", 0),
        ("user_data", b"\x80", 1),
        ("span_groups", b"\x80", 1),
        ("span_groups", b"\x80", 2),
    ],
)
def test_values_in_a_docbin_need_bounded_memory(
    tmp_path: Path, field: str, value: bytes, nested: int, new_process: Any
) -> None:
    """Each takes one byte in the file, and seventy in Python."""
    count = 25 * MB // len(value)
    values = b"\xdd" + count.to_bytes(4, "big") + value * count
    for _ in range(nested):  # a list of bytes, which are a list
        values = b"\x91\xc6" + len(values).to_bytes(4, "big") + values
    path = write_docbin(tmp_path / "x.spacy", field, values)
    assert path.stat().st_size < 2 * MB
    assert read(new_process, "documents", path).startswith(f"[E007] {path}")


def test_as_many_values_as_a_record_may_have_need_bounded_memory(
    tmp_path: Path, new_process: Any
) -> None:
    items = ",".join(['{"a":1}'] * ((1 << 23) // 3 - 9))
    line = f'{{"cui": "a", "name": "a", "aliases": [{items}]}}'
    assert "[E117]" in read(
        new_process, "concepts", write(tmp_path, "x.jsonl", line.encode())
    )
