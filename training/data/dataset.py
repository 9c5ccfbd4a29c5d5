"""pairs.tsv → a folder of tokenised pairs, which training maps into memory."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.format import open_memmap
from pydantic import BaseModel

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.io.progress import show_progress
from spacy_sapbert.io.reading import file_digest, open_to_read
from spacy_sapbert.io.writing import FolderKind, write_folder_atomically
from training.data.pairs import hash_text, read_pairs

FORMAT = 2
META_FILE, PAIRS_FILE, NAMES_FILE = "meta.json", "pairs.npy", "names.npy"
DATASET_FOLDER = FolderKind(
    "tokenised pairs", META_FILE, {META_FILE, PAIRS_FILE, NAMES_FILE}.__contains__
)
PAIRS_PER_BLOCK = 5_000
NAMES_KEPT = 100_000  # of a concept, to number equal names once
# The concept as a hash, and the rows of the two names
PAIR = np.dtype([("label", "<i8"), ("names", "<i8", 2)])


class MadeOf(BaseModel):
    """The inputs of a dataset; if one differs, it is built again."""

    format: int = FORMAT
    pairs_sha256: str
    tokenizer_sha256: str
    pad: int
    max_length: int
    lowercase: bool


class DatasetMeta(BaseModel):
    """The content of meta.json: inputs and counts."""

    made_of: MadeOf
    pairs: int
    names: int
    concepts: int


@dataclass(slots=True)
class PairDataset:
    """All pairs and their names, as arrays of records.

    Names and concepts are 64-bit hashes. Two of ten million are equal by chance with a
    probability of one in 400,000, and no table of them is needed.

    Attributes:
        pairs: Records of `PAIR`, mapped into memory. Shape: (pairs,).
        names: Records of `name_type`; a name of two concepts comes twice. Shape:
            (names,).
        meta: The inputs, and the counts.
    """

    pairs: np.ndarray
    names: np.ndarray
    meta: DatasetMeta


def name_type(tokenizer: Any, max_length: int) -> np.dtype:
    """Return the type of a name: hash of the text, number of tokens, padded tokens."""
    largest = max(tokenizer.get_vocab().values())
    token = "<u2" if largest < 1 << 16 else "<i4"
    fields = [("hash", "<i8"), ("length", "<u2"), ("tokens", token, max_length)]
    return np.dtype(fields)


def tokenizer_digest(tokenizer: Any) -> str:
    """Return the sha256 of everything that decides how a tokenizer splits a name."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is not None:
        # settings of the last call, not of the tokenizer
        parts = json.loads(backend.to_str()) | {"truncation": None, "padding": None}
    else:
        # do_lower_case and the like; other settings are paths or derived
        options = tokenizer.init_kwargs.items()
        switches = {key: value for key, value in options if isinstance(value, bool)}
        parts = {"vocabulary": tokenizer.get_vocab(), "switches": switches}
    parts |= {"class": type(tokenizer).__name__, "side": tokenizer.truncation_side}
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode("utf8")).hexdigest()


def number_pairs(
    path: Path, *, lowercase: bool
) -> Iterator[tuple[np.ndarray, list[str]]]:
    """Yield blocks of pairs.tsv: records of `PAIR`, and the names numbered in them.

    Equal names of one concept get one number if its lines are together, so memory does
    not grow with the file.
    """
    pairs: list[tuple[int, tuple[int, ...]]] = []
    names: list[str] = []
    concept, label, total = "", hash_text(""), 0
    rows: dict[str, int] = {}
    for cui, *texts in read_pairs(path):
        if cui != concept or len(rows) > NAMES_KEPT:
            concept, label = cui, hash_text(cui)
            rows.clear()
        for number, text in enumerate(texts):
            texts[number] = text = text.lower() if lowercase else text
            if text not in rows:
                rows[text] = total
                total += 1
                names.append(text)
        pairs.append((label, tuple(rows[text] for text in texts)))
        if len(pairs) == PAIRS_PER_BLOCK:
            yield np.array(pairs, PAIR), names
            pairs, names = [], []
    if pairs:
        yield np.array(pairs, PAIR), names


def tokenize_names(
    names: list[str], tokenizer: Any, dtype: np.dtype, pad: int
) -> np.ndarray:
    """Return the records of names, of `name_type`."""
    records = np.zeros(len(names), dtype)
    if not names:
        return records
    tokens = tokenizer(
        names,
        truncation=True,
        max_length=records["tokens"].shape[1],
        return_attention_mask=False,
        return_token_type_ids=False,
    )["input_ids"]
    records["hash"] = [hash_text(name) for name in names]
    records["length"] = [len(each) for each in tokens]
    # not padding; (names, columns)
    is_token = np.arange(records["tokens"].shape[1]) < records["length"][:, None]
    records["tokens"] = pad
    records["tokens"][is_token] = list(chain.from_iterable(tokens))
    return records


def write_arrays(
    folder: Path, pairs_path: Path, tokenizer: Any, made_of: MadeOf, *, progress: bool
) -> DatasetMeta:
    """Write the arrays of a dataset in two passes, of which the first one counts."""
    names = concepts = pairs = 0
    last = None
    for records, texts in number_pairs(pairs_path, lowercase=made_of.lowercase):
        labels = records["label"]
        concepts += int((labels[1:] != labels[:-1]).sum()) + int(labels[0] != last)
        last, pairs, names = labels[-1], pairs + len(records), names + len(texts)
    if not pairs:
        raise SapbertError(
            "E106",
            f"Expected pairs in {pairs_path}, but it is empty. Make it with `python "
            "-m training pairs`.",
        )
    dtype = name_type(tokenizer, made_of.max_length)
    all_pairs = open_memmap(folder / PAIRS_FILE, "w+", PAIR, (pairs,))
    all_names = open_memmap(folder / NAMES_FILE, "w+", dtype, (names,))
    pair = name = 0
    with show_progress(total=pairs, unit="pairs", quiet=not progress) as bar:
        for records, texts in number_pairs(pairs_path, lowercase=made_of.lowercase):
            all_pairs[pair : pair + len(records)] = records
            tokenised = tokenize_names(texts, tokenizer, dtype, made_of.pad)
            all_names[name : name + len(texts)] = tokenised
            pair, name = pair + len(records), name + len(texts)
            bar.update(len(records))
    all_pairs.flush()
    all_names.flush()
    return DatasetMeta(made_of=made_of, pairs=pairs, names=names, concepts=concepts)


def open_dataset(folder: Path) -> PairDataset:
    """Open a folder that `build_dataset` wrote; pairs.tsv is not needed."""
    try:
        meta = DatasetMeta.model_validate_json((folder / META_FILE).read_bytes())
        pairs, names = (
            np.load(folder / name, mmap_mode="r") for name in (PAIRS_FILE, NAMES_FILE)
        )
    except (OSError, ValueError):
        raise SapbertError(
            "E560",
            f"Expected whole tokenised pairs in {folder}, but a file is missing, cut "
            "or something else. Remove the folder; the next run makes it again.",
        ) from None
    return PairDataset(pairs, names, meta)


def build_dataset(
    pairs_path: Path,
    folder: Path,
    tokenizer: Any,
    *,
    max_length: int,
    lowercase: bool,
    progress: bool = False,
) -> PairDataset:
    """Tokenise all names of pairs.tsv, or open the dataset of an earlier run.

    Args:
        pairs_path: pairs.tsv, plain or `.gz`, best with the lines of each concept
            together.
        folder: Built again if the file or a setting differs.
        max_length: Tokens of a name at most, `[CLS]` and `[SEP]` included.

    Returns:
        Pair 0 is the first line of the file.
    """
    open_to_read(pairs_path).close()  # raises its errors before the digest
    made_of = MadeOf(
        pairs_sha256=file_digest(pairs_path),
        tokenizer_sha256=tokenizer_digest(tokenizer),
        pad=tokenizer.pad_token_id or 0,
        max_length=max_length,
        lowercase=lowercase,
    )
    is_there = (folder / META_FILE).is_file()
    if not is_there or open_dataset(folder).meta.made_of != made_of:
        with write_folder_atomically(folder, DATASET_FOLDER) as part:
            meta = write_arrays(part, pairs_path, tokenizer, made_of, progress=progress)
            text = meta.model_dump_json(indent=2)
            (part / META_FILE).write_text(text + "\n", "utf8")
    return open_dataset(folder)
