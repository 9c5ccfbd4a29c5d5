"""pairs.tsv → token arrays → batches, the same for a seed."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, Iterator, List, Sequence, Tuple

import numpy as np

from spacy_sapbert.errors import Errors, SapbertError
from spacy_sapbert.files import read_lines

TOKENIZED_AT_ONCE = 10_000


@dataclass(slots=True)
class Pairs:
    """All pairs as numbers, and the names that they point to.

    labels (np.ndarray): The concept of each pair, int32. Shape: (pairs,).
    ends (np.ndarray): The two names of each pair, int32. Shape: (pairs, 2).
    names (List[str]): The distinct names.
    """

    labels: np.ndarray
    ends: np.ndarray
    names: List[str]

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(slots=True)
class Tokens:
    """Wordpiece ids of many names, one after the other.

    ids (np.ndarray): All ids, special ones included, int32. Shape: (total,).
    starts (np.ndarray): Where each name begins, and the end, int64. Shape: (names+1,).
    pad (int): The id to fill up with.
    """

    ids: np.ndarray
    starts: np.ndarray
    pad: int

    @property
    def lengths(self) -> np.ndarray:
        """Wordpieces of each name. Shape: (names,)."""
        return np.diff(self.starts)


def read_pairs(path: Path, *, lowercase: bool = True) -> Pairs:
    """Read pairs.tsv.

    path (Path): The file, plain or `.gz`.
    lowercase (bool): Lower-case the names.
    RETURNS (Pairs): The pairs, in the order of the file.
    RAISES (SapbertError): With file and line, if a line has not three fields.
    """
    labels: List[int] = []
    ends: List[int] = []
    concepts: Dict[str, int] = {}
    names: Dict[str, int] = {}
    for number, line in read_lines(path):
        fields = line.split("\t")
        if len(fields) != 3:
            raise SapbertError(
                Errors.E603.format(path=path, line=number, fields=len(fields))
            )
        labels.append(concepts.setdefault(fields[0], len(concepts)))
        for name in fields[1:]:
            name = name.lower() if lowercase else name
            ends.append(names.setdefault(name, len(names)))
    if not labels:
        raise SapbertError(Errors.E604.format(path=path))
    return Pairs(
        np.array(labels, dtype=np.int32),
        np.array(ends, dtype=np.int32).reshape(-1, 2),
        list(names),
    )


def tokenize_names(tokenizer: Any, names: Sequence[str], *, max_length: int) -> Tokens:
    """Turn each name into wordpieces, once.

    tokenizer (PreTrainedTokenizerBase): The encoder's tokenizer.
    names (Sequence[str]): The names.
    max_length (int): Wordpieces of a name at the most, `[CLS]` and `[SEP]` included.
    RETURNS (Tokens): The wordpieces.
    """
    parts: List[np.ndarray] = []
    lengths = np.zeros(len(names) + 1, dtype=np.int64)
    for start in range(0, len(names), TOKENIZED_AT_ONCE):
        batch = tokenizer(
            list(names[start : start + TOKENIZED_AT_ONCE]),
            truncation=True,
            max_length=max_length,
            return_attention_mask=False,
            return_token_type_ids=False,
        )["input_ids"]
        lengths[start + 1 : start + 1 + len(batch)] = [len(ids) for ids in batch]
        parts.append(np.concatenate([np.array(ids, dtype=np.int32) for ids in batch]))
    return Tokens(np.concatenate(parts), lengths.cumsum(), tokenizer.pad_token_id or 0)


def pad_names(tokens: Tokens, names: np.ndarray) -> Tuple[np.ndarray, np.ndarray]:
    """Lay the wordpieces of some names side by side.

    tokens (Tokens): The wordpieces of all names.
    names (np.ndarray): Which names. Shape: (n,).
    RETURNS (Tuple[np.ndarray, np.ndarray]): Ids and attention mask, int64, as long as
        the longest of these names. Shape: (n, length) each.
    """
    lengths = tokens.lengths[names]
    columns = np.arange(lengths.max())
    mask = columns < lengths[:, None]  # (n, length)
    ids = np.full(mask.shape, tokens.pad, dtype=np.int64)
    places = tokens.starts[names][:, None] + columns
    ids[mask] = tokens.ids[places[mask]]
    return ids, mask.astype(np.int64)


def split_by_length(lengths: np.ndarray, chunks: int) -> List[np.ndarray]:
    """Part a batch into chunks of names of like length, so that little is padding.

    lengths (np.ndarray): Wordpieces of each row. Shape: (n,).
    chunks (int): How many; fewer if there are fewer rows.
    RETURNS (List[np.ndarray]): Rows of each chunk; together every row once.
    """
    order = np.argsort(lengths, kind="stable")
    return np.array_split(order, min(chunks, len(order)))


def shuffled_batches(
    total: int, *, size: int, seed: int, epoch: int
) -> Iterator[np.ndarray]:
    """Give each pair once, in an order that the seed and the epoch decide.

    total (int): How many pairs there are.
    size (int): Pairs in a batch; the last one may have fewer.
    seed (int): Of the run.
    epoch (int): From 0.
    YIELDS (np.ndarray): Numbers of pairs. Shape: (size,).
    """
    order = np.random.default_rng([seed, epoch]).permutation(total)
    for start in range(0, total, size):
        yield order[start : start + size]
