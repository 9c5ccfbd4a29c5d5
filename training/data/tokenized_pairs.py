"""pairs.tsv → corpus/: arrays of token ids on the disk, memory-mapped for training."""

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
from pydantic import BaseModel, ValidationError
from tqdm import tqdm

from spacy_sapbert.system.reading import file_digest, open_to_read
from spacy_sapbert.system.writing import FolderKind, write_folder_atomically
from training.data.pairs import hash_text, read_pairs
from training.errors import Errors, SapbertError

FORMAT = 1
META_FILE = "meta.json"
CORPUS_FILES = (
    META_FILE,
    *(f"{name}.bin" for name in ("labels", "ends", "names", "starts", "ids")),
)
CORPUS_FOLDER = FolderKind("a tokenised corpus", META_FILE, CORPUS_FILES.__contains__)
PAIRS_PER_BLOCK = 5_000
NAMES_KEPT = 100_000  # of a concept, to number equal names once


class MadeOf(BaseModel):
    """The inputs of a corpus; if one differs, the corpus is built again."""

    corpus: int = FORMAT
    pairs_sha256: str
    pairs_bytes: int
    tokenizer_sha256: str
    pad: int
    max_length: int
    lowercase: bool


class CorpusMeta(BaseModel):
    """The content of meta.json: inputs, counts, and the type of the token ids."""

    made_of: MadeOf
    pairs: int
    names: int
    concepts: int
    wordpieces: int
    ids_type: str


@dataclass(slots=True)
class Corpus:
    """All pairs and names as memory-mapped arrays.

    Names and concepts are 64-bit hashes. Two of ten million are equal by chance with a
    probability of one in 400,000, and no table of them is needed.

    labels (np.ndarray): Hash of each pair's concept, int64. Shape: (pairs,).
    ends (np.ndarray): The two names of each pair, int64. Shape: (pairs, 2).
    names (np.ndarray): Hash of each name, int64. A name of two concepts comes twice.
        Shape: (names,).
    starts (np.ndarray): Start of each name's token ids, and the end of the last, int64.
        Shape: (names+1,).
    ids (np.ndarray): Token ids of all names, special tokens included, uint16 or int32.
        Shape: (tokens,).
    pad (int): The id for padding.
    concepts (int): Number of concepts, if the lines of each are together.
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
        """Return the number of tokens of each name. Shape: (n,)."""
        return self.starts[names + 1] - self.starts[names]

    def release(self) -> None:
        """Release the pages that were read, up to 80 MB for a batch of 256 pairs.

        Mapped pages count as memory of the process. The system keeps them cached.
        """
        if hasattr(mmap, "MADV_DONTNEED"):  # not on Windows
            for mapped in self.maps:
                mapped.madvise(mmap.MADV_DONTNEED)


def tokenizer_digest(tokenizer: Any) -> str:
    """Return the sha256 of everything that decides how a tokenizer splits a name."""
    parts: dict[str, Any] = {"truncation_side": tokenizer.truncation_side}
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is not None:
        parts.update(json.loads(backend.to_str()))
        # settings of the last call, not of the tokenizer
        parts.update(truncation=None, padding=None)
    else:
        parts["class"] = type(tokenizer).__name__
        parts["vocabulary"] = tokenizer.get_vocab()
        # do_lower_case and the like; other settings are paths or derived
        parts["switches"] = {
            key: value
            for key, value in tokenizer.init_kwargs.items()
            if isinstance(value, bool)
        }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode("utf8")).hexdigest()


def number_pairs(
    path: Path, *, lowercase: bool
) -> Iterator[tuple[np.ndarray, np.ndarray, list[str]]]:
    """Read pairs.tsv in blocks and number the names.

    Equal names of one concept get one number if its lines are together, so memory does
    not grow with the file.

    YIELDS (tuple[np.ndarray, np.ndarray, list[str]]): Hash of each pair's concept,
        int64, shape (pairs,); the numbers of its names, int64, shape (pairs, 2); and
        the names that were numbered in this block.
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
        elif len(numbers) > NAMES_KEPT:
            numbers.clear()
        labels.append(label)
        for name in fields[1:]:
            name = name.lower() if lowercase else name
            number = numbers.setdefault(name, total)
            if number == total:
                names.append(name)
                total += 1
            ends.append(number)
        if len(labels) == PAIRS_PER_BLOCK:
            yield np.array(labels), np.array(ends).reshape(-1, 2), names
            labels, ends, names = [], [], []
    if labels:
        yield np.array(labels), np.array(ends).reshape(-1, 2), names


def write_corpus(
    folder: Path, pairs_path: Path, tokenizer: Any, made_of: MadeOf, *, progress: bool
) -> CorpusMeta:
    """Write the arrays of a corpus to an empty folder; see `build_corpus`."""
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
        for labels, ends, names in number_pairs(
            pairs_path, lowercase=made_of.lowercase
        ):
            files["labels"].write(labels.astype("<i8").tobytes())
            files["ends"].write(ends.astype("<i8").tobytes())
            if names:
                pieces = tokenizer(
                    names,
                    truncation=True,
                    max_length=made_of.max_length,
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
    return CorpusMeta(made_of=made_of, ids_type=ids_type, **counts)


def read_meta(folder: Path) -> CorpusMeta | None:
    """Read meta.json of a corpus; None if the folder is missing or empty."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return None
    try:
        return CorpusMeta.model_validate_json((folder / META_FILE).read_bytes())
    except (OSError, ValidationError):
        raise SapbertError(Errors.E621.format(path=folder)) from None


def map_file(
    path: Path, dtype: str, shape: tuple[int, ...]
) -> tuple[np.ndarray, mmap.mmap]:
    """Map a file of numbers as a read-only array; return it with its memory."""
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
    """Open a folder that `build_corpus` wrote; pairs.tsv is not needed."""
    meta = read_meta(folder)
    if meta is None:
        raise SapbertError(Errors.E622.format(path=folder))
    layout: dict[str, tuple[str, tuple[int, ...]]] = {
        "labels": ("<i8", (meta.pairs,)),
        "ends": ("<i8", (meta.pairs, 2)),
        "names": ("<i8", (meta.names,)),
        "starts": ("<i8", (meta.names + 1,)),
        "ids": (meta.ids_type, (meta.wordpieces,)),
    }
    opened = {
        name: map_file(folder / f"{name}.bin", dtype, shape)
        for name, (dtype, shape) in layout.items()
    }
    return Corpus(
        **{name: array for name, (array, _) in opened.items()},
        pad=meta.made_of.pad,
        concepts=meta.concepts,
        pairs_sha256=meta.made_of.pairs_sha256,
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
    """Tokenise all names of pairs.tsv, or open the corpus of an earlier run.

    pairs_path (Path): pairs.tsv, plain or `.gz`, best with the lines of each concept
        together.
    folder (Path): The corpus; built again if the file or a setting differs.
    max_length (int): Tokens of a name at most, `[CLS]` and `[SEP]` included.
    RETURNS (Corpus): Pair 0 is the first line of the file.
    """
    open_to_read(pairs_path).close()  # raises its errors before the digest
    made_of = MadeOf(
        pairs_sha256=file_digest(pairs_path),
        pairs_bytes=pairs_path.stat().st_size,
        tokenizer_sha256=tokenizer_digest(tokenizer),
        pad=tokenizer.pad_token_id or 0,
        max_length=max_length,
        lowercase=lowercase,
    )
    meta = read_meta(folder)
    if meta is None or meta.made_of != made_of:
        with write_folder_atomically(folder, CORPUS_FOLDER) as part:
            meta = write_corpus(part, pairs_path, tokenizer, made_of, progress=progress)
            text = meta.model_dump_json(indent=2)
            (part / META_FILE).write_text(text + "\n", "utf8")
    return open_corpus(folder)
