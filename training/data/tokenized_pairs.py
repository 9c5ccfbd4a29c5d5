"""pairs.tsv → corpus/: token arrays on the disk, read at random in constant memory."""

import hashlib
import json
import mmap
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from training.errors import Errors, SapbertError
from spacy_sapbert.system.reading import file_digest, open_to_read, read_lines
from spacy_sapbert.system.writing import write_folder_atomically

FORMAT = 1
META_FILE = "meta.json"
PAIRS_AT_ONCE = 5_000  # at most twice as many names are tokenised at once
REMEMBERED_NAMES = 100_000


@dataclass(slots=True)
class Corpus:
    """All pairs and names as arrays on the disk, of which memory holds what is used.

    Names and concepts are known by 64 bits of a hash: two of ten million are the same
    by chance with odds of one in 400,000, and no table of them has to be kept.

    labels (np.ndarray): Hash of each pair's concept, int64, in the order of the file.
        Shape: (pairs,).
    ends (np.ndarray): The two names of each pair, int64. Shape: (pairs, 2).
    names (np.ndarray): Hash of each name, int64: a name that two concepts have comes
        twice, with the same hash. Shape: (names,).
    starts (np.ndarray): Where each name's wordpieces begin, and the end, int64.
        Shape: (names+1,).
    ids (np.ndarray): Wordpieces of all names, special ones included, uint16 or int32.
        Shape: (wordpieces,).
    pad (int): The id to fill up with.
    concepts (int): How many there are, if the lines of each stand together.
    pairs_sha256 (str): Of the pairs.tsv that it was made of.
    maps (list[mmap.mmap]): What the arrays lie in.
    """

    labels: np.ndarray
    ends: np.ndarray
    names: np.ndarray
    starts: np.ndarray
    ids: np.ndarray
    pad: int
    concepts: int
    pairs_sha256: str
    maps: list[mmap.mmap] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.labels)

    def lengths(self, names: np.ndarray) -> np.ndarray:
        """Count the wordpieces of some names.

        names (np.ndarray): Which names. Shape: (n,).
        RETURNS (np.ndarray): Wordpieces of each, int64. Shape: (n,).
        """
        return self.starts[names + 1] - self.starts[names]

    def release(self) -> None:
        """Return the pages that were read back to the system; it still has them cached.

        They count as memory of the process, though the system takes them when it needs
        room. Linux maps 16 pages around each one that is read, whatever the advice: a
        batch of 256 pairs adds up to 80 MB, and many batches the size of the files.
        """
        if hasattr(mmap, "MADV_DONTNEED"):  # not on Windows
            for mapped in self.maps:
                mapped.madvise(mmap.MADV_DONTNEED)


def hash_text(text: str) -> int:
    """Hash a text, the same in every process.

    text (str): The text.
    RETURNS (int): 64 bits, signed, as torch has no unsigned ones.
    """
    digest = hashlib.blake2b(text.encode("utf8"), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


def tokenizer_digest(tokenizer: Any) -> str:
    """Compute a hash of all that decides how a tokenizer splits a name.

    tokenizer (PreTrainedTokenizerBase): The tokenizer.
    RETURNS (str): Its sha256, in hexadecimal.
    """
    parts: dict[str, Any] = {"truncation_side": tokenizer.truncation_side}
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is not None:
        parts.update(json.loads(backend.to_str()))
        # The last call leaves its settings there: they are not the tokenizer's own.
        parts.update(truncation=None, padding=None)
    else:
        parts["class"] = type(tokenizer).__name__
        parts["vocabulary"] = tokenizer.get_vocab()
        # do_lower_case and its like; other settings are paths and what is derived
        parts["switches"] = {
            key: value
            for key, value in tokenizer.init_kwargs.items()
            if isinstance(value, bool)
        }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode("utf8")).hexdigest()


def read_pairs(path: Path) -> Iterator[list[str]]:
    """Read the lines of pairs.tsv.

    path (Path): The file, plain or `.gz`.
    YIELDS (list[str]): The id of a concept, and two names.
    RAISES (SapbertError): With file and line, if a line has not three fields.
    """
    for line_number, line in read_lines(path):
        fields = line.split("\t")
        if len(fields) != 3:
            raise SapbertError(
                Errors.E603.format(path=path, line=line_number, fields=len(fields))
            )
        yield fields


def number_pairs(
    path: Path, *, lowercase: bool
) -> Iterator[tuple[np.ndarray, np.ndarray, list[str]]]:
    """Read pairs.tsv in blocks and number the names.

    A name gets one number as long as the lines of its concept follow one another, and
    another one later: so memory does not grow with the file.

    path (Path): The file, plain or `.gz`.
    lowercase (bool): Lower-case the names.
    YIELDS (tuple[np.ndarray, np.ndarray, list[str]]): Hash of each pair's concept,
        int64, shape (pairs,), the numbers of its names, int64, shape (pairs, 2), and
        the names that have got a number in this block.
    RAISES (SapbertError): With file and line, if a line has not three fields.
    """
    labels: list[int] = []
    ends: list[int] = []
    names: list[str] = []
    concept, label, total = "", hash_text(""), 0
    numbers: dict[str, int] = {}
    for fields in read_pairs(path):
        if fields[0] != concept:
            concept, label = fields[0], hash_text(fields[0])
            numbers.clear()
        elif len(numbers) > REMEMBERED_NAMES:
            numbers.clear()
        labels.append(label)
        for name in fields[1:]:
            name = name.lower() if lowercase else name
            number = numbers.setdefault(name, total)
            if number == total:
                names.append(name)
                total += 1
            ends.append(number)
        if len(labels) == PAIRS_AT_ONCE:
            yield np.array(labels), np.array(ends).reshape(-1, 2), names
            labels, ends, names = [], [], []
    if labels:
        yield np.array(labels), np.array(ends).reshape(-1, 2), names


def write_corpus(
    folder: Path,
    pairs_path: Path,
    tokenizer: Any,
    *,
    max_length: int,
    lowercase: bool,
    progress: bool,
) -> dict[str, Any]:
    """Write the arrays of a corpus, block by block.

    folder (Path): An empty folder.
    pairs_path (Path): pairs.tsv, plain or `.gz`.
    tokenizer (PreTrainedTokenizerBase): The encoder's tokenizer.
    max_length (int): Wordpieces of a name at the most, `[CLS]` and `[SEP]` included.
    lowercase (bool): Lower-case the names.
    progress (bool): Show a bar.
    RETURNS (dict[str, Any]): How much there is of everything, and the type of the ids.
    RAISES (SapbertError): If a line has not three fields, or there is none.
    """
    largest = max(tokenizer.get_vocab().values())
    ids_type = "<u2" if largest < 1 << 16 else "<i4"
    counts = dict.fromkeys(("pairs", "names", "concepts", "wordpieces"), 0)
    last: int | None = None
    with ExitStack() as stack:
        files = {
            name: stack.enter_context(open(folder / f"{name}.bin", "wb"))
            for name in ("labels", "ends", "names", "starts", "ids")
        }
        bar = stack.enter_context(tqdm(unit=" pairs", disable=not progress))
        files["starts"].write(bytes(8))
        for labels, ends, names in number_pairs(pairs_path, lowercase=lowercase):
            files["labels"].write(labels.astype("<i8").tobytes())
            files["ends"].write(ends.astype("<i8").tobytes())
            if names:
                pieces = tokenizer(
                    names,
                    truncation=True,
                    max_length=max_length,
                    return_attention_mask=False,
                    return_token_type_ids=False,
                )["input_ids"]
                ids = np.fromiter(chain.from_iterable(pieces), dtype=ids_type)
                hashes = np.array([hash_text(name) for name in names], dtype="<i8")
                lengths = np.array([len(piece) for piece in pieces], dtype="<i8")
                starts = counts["wordpieces"] + lengths.cumsum(dtype="<i8")
                files["ids"].write(ids.tobytes())
                files["names"].write(hashes.tobytes())
                files["starts"].write(starts.tobytes())
                counts["wordpieces"] += len(ids)
            counts["pairs"] += len(labels)
            counts["names"] += len(names)
            counts["concepts"] += int((labels[1:] != labels[:-1]).sum())
            counts["concepts"] += int(labels[0]) != last
            last = int(labels[-1])
            bar.update(len(labels))
    if not counts["pairs"]:
        raise SapbertError(Errors.E604.format(path=pairs_path))
    return {**counts, "ids_type": ids_type}


def read_meta(folder: Path) -> dict[str, Any] | None:
    """Read what a corpus was made of.

    folder (Path): Where it may be.
    RETURNS (dict[str, Any] | None): Its settings and counts; None if there is
        nothing, or an empty folder.
    RAISES (SapbertError): If something else is there, which is not ours to replace.
    """
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return None
    try:
        meta = json.loads((folder / META_FILE).read_text("utf8"))
        if "corpus" in meta["made_of"]:
            return dict(meta)
    except (OSError, ValueError, TypeError, KeyError):
        pass
    raise SapbertError(Errors.E621.format(path=folder))


def map_file(
    path: Path, dtype: str, shape: tuple[int, ...]
) -> tuple[np.ndarray, mmap.mmap]:
    """Open a file of bare numbers as an array.

    path (Path): The file.
    dtype (str): Type and byte order of its numbers.
    shape (tuple[int, ...]): Of the array.
    RETURNS (tuple[np.ndarray, mmap.mmap]): The array, read-only, and what it lies in.
    RAISES (SapbertError): If the file is missing or of another size.
    """
    expected = int(np.prod(shape)) * np.dtype(dtype).itemsize
    with open_to_read(path) as file:
        size = path.stat().st_size
        if size != expected:
            raise SapbertError(
                Errors.E620.format(
                    path=path, expected=expected, got=size, folder=path.parent
                )
            )
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    return np.frombuffer(mapped, dtype=dtype).reshape(shape), mapped


def open_corpus(folder: Path) -> Corpus:
    """Open a corpus; its pairs.tsv need not be there any more.

    folder (Path): The folder that `build_corpus` wrote.
    RETURNS (Corpus): The corpus.
    RAISES (SapbertError): If there is none, or a file of it is missing or cut.
    """
    meta = read_meta(folder)
    if meta is None:
        raise SapbertError(Errors.E622.format(path=folder))
    pairs, names = meta["pairs"], meta["names"]
    layout: dict[str, tuple[str, tuple[int, ...]]] = {
        "labels": ("<i8", (pairs,)),
        "ends": ("<i8", (pairs, 2)),
        "names": ("<i8", (names,)),
        "starts": ("<i8", (names + 1,)),
        "ids": (meta["ids_type"], (meta["wordpieces"],)),
    }
    opened = {
        name: map_file(folder / f"{name}.bin", dtype, shape)
        for name, (dtype, shape) in layout.items()
    }
    return Corpus(
        **{name: array for name, (array, _) in opened.items()},
        pad=meta["made_of"]["pad"],
        concepts=meta["concepts"],
        pairs_sha256=meta["made_of"]["pairs_sha256"],
        maps=[mapped for _, mapped in opened.values()],
    )


def build_corpus(
    pairs_path: Path,
    folder: Path,
    tokenizer: Any,
    *,
    max_length: int,
    lowercase: bool,
    progress: bool = False,
) -> Corpus:
    """Tokenise all names of pairs.tsv, or open what an earlier run made of it.

    pairs_path (Path): pairs.tsv, plain or `.gz`, best with the lines of each concept
        together: names are made distinct among these, and memory does not grow.
    folder (Path): The corpus; made again if the file or a setting is another.
    tokenizer (PreTrainedTokenizerBase): The encoder's tokenizer.
    max_length (int): Wordpieces of a name at the most, `[CLS]` and `[SEP]` included.
    lowercase (bool): Lower-case the names.
    progress (bool): Show a bar.
    RETURNS (Corpus): The corpus; pair 0 is the first line of the file.
    RAISES (SapbertError): If the pairs are not usable, the folder is something else,
        or a file in it is missing or cut.
    """
    open_to_read(pairs_path).close()  # its errors, before the digest is computed
    made_of = {
        "corpus": FORMAT,
        "pairs_sha256": file_digest(pairs_path),
        "pairs_bytes": pairs_path.stat().st_size,
        "tokenizer_sha256": tokenizer_digest(tokenizer),
        "pad": tokenizer.pad_token_id or 0,
        "max_length": max_length,
        "lowercase": lowercase,
    }
    meta = read_meta(folder)
    if meta is None or meta["made_of"] != made_of:
        with write_folder_atomically(folder) as part:
            counts = write_corpus(
                part,
                pairs_path,
                tokenizer,
                max_length=max_length,
                lowercase=lowercase,
                progress=progress,
            )
            text = json.dumps({"made_of": made_of, **counts}, indent=2)
            (part / META_FILE).write_text(text + "\n", "utf8")
    return open_corpus(folder)
