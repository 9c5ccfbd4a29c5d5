"""Small files that unpack or parse to gigabytes: a named error, in bounded memory."""

import gzip
import json
import random
import zlib
from pathlib import Path
from typing import Any

from srsly import msgpack

READ = """
import json, os, resource, sys
resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
from pathlib import Path
from spacy_sapbert.errors import SapbertError
from spacy_sapbert.formats.inputs.files import list_inputs
from spacy_sapbert.formats.inputs.reading import read_documents
from spacy_sapbert.formats.format_table import load_reader
from spacy_sapbert.vocabularies.concepts import read_concepts
from spacy_sapbert.vocabularies.reader_table import READERS, read_vocabulary

def read(format, path):
    if format == "documents":
        return read_documents(list_inputs([path]), longest=1_000_000)
    if format == "concepts":
        return read_concepts(path)
    return (read_vocabulary if format in READERS else load)(path, format)

def load(path, format):
    return load_reader(format)(path)

for format, path in json.load(sys.stdin):
    child = os.fork()  # so that each has the memory of its own alone
    if not child:
        try:
            print(sum(1 for _ in read(format, Path(path))), "read", flush=True)
        except SapbertError as error:
            print(error, flush=True)
        status = Path("/proc/self/status")
        peak = 0
        if status.is_file():
            peak = int(status.read_text().partition("VmHWM:")[2].split()[0]) >> 10
        os._exit(peak > 1000)
    assert os.waitpid(child, 0)[1] == 0, path
"""
MB = 1 << 20
MESH = b"<DescriptorRecordSet><DescriptorRecord>"
FHIR = b'{"resourceType": "ConceptMap", "group": [{"element": ['
OWL = b"<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'>"


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


def read(new_process: Any, *files: tuple[str, Path]) -> list[str]:
    """Read files one after another in a process; return what each ended with."""
    given = json.dumps([(format, str(path)) for format, path in files])
    done = new_process.python(READ, input=given, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.splitlines()


# format, name, head, repeated block
STREAMS = [
    ("rrf", "MRCONSO.RRF.gz", b"", bytes(MB)),
    ("jsonl", "x.jsonl.gz", b'{"cui": "a", "name": "', b"a" * MB),
    ("obographs", "x.json.gz", b'{"graphs": [{"nodes": [', b" " * MB),
    ("mesh", "desc.xml.gz", MESH, b"<b>" * (MB // 3)),
    ("fhir", "x.json.gz", FHIR, b"{}," * (MB // 3)),
    ("rdf", "x.owl.gz", OWL, b"<a><rdf:rest>" * (MB // 13)),
    ("biocxml", "x.xml.gz", b"<collection><document>", b"a" * MB),
    ("documents", "x.jsonl.gz", b'{"text": [', b"[]," * (MB // 3)),
    ("documents", "x.spacy", b"", bytes(MB)),
]


def test_what_unpacks_to_gigabytes_is_a_named_error_in_bounded_memory(
    tmp_path, new_process
):
    files = []
    for number, (format, name, head, block) in enumerate(STREAMS):
        is_gzip = name.endswith(".gz")
        data = gzip.compress(head) if is_gzip else b""
        data += repeat(block, 9_000, 31 if is_gzip else 15)
        (tmp_path / str(number)).mkdir()
        files.append((format, write(tmp_path / str(number), name, data)))
        assert len(data) < 64 * MB
    errors = read(new_process, *files)
    for (_, path), error in zip(files, errors, strict=True):
        assert error.startswith(f"[E007] {path}")


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


# field, value, in how many lists it is packed
VALUES = [
    ("strings", b"\xa2aa", 0),
    ("span_groups", b"\x80", 2),
]


def test_many_values_need_bounded_memory(tmp_path, new_process):
    """Each takes one byte in a DocBin, and seventy in Python."""
    files = []
    for number, (field, value, nested) in enumerate(VALUES):
        count = 25 * MB // len(value)
        values = b"\xdd" + count.to_bytes(4, "big") + value * count
        for _ in range(nested):  # a list of bytes, which are a list
            values = b"\x91\xc6" + len(values).to_bytes(4, "big") + values
        path = write_docbin(tmp_path / f"{number}.spacy", field, values)
        assert path.stat().st_size < 2 * MB
        files.append(("documents", path))
    # as many as a record may have
    items = ",".join(['{"a":1}'] * ((1 << 23) // 3 - 9))
    line = f'{{"cui": "a", "name": "a", "aliases": [{items}]}}'
    concepts = write(tmp_path, "x.jsonl", line.encode())
    *errors, last = read(new_process, *files, ("concepts", concepts))
    for (_, path), error in zip(files, errors, strict=True):
        assert error.startswith(f"[E007] {path}")
    assert "[E117]" in last
