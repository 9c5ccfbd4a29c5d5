"""The parts of a version's folder: one row each, from which everything else is made.

What meta.json must name, what may be in the folder, what is copied and packaged, and
the table in docs/knowledge_base.md follow from `PARTS`. Size and sha256 of every file
are in meta.json.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from ...encoder.safety import is_encoder_file
from ...io.writing import CURRENT, VERSION, FolderKind
from ..indexes.registry import index_files

if TYPE_CHECKING:
    from .records import Manifest

FILE = "meta.json"
LOCK = ".lock"
STORE_FILE = "concepts.db"
ENCODER = "encoder"
EXPORTED = "encoder/openvino"  # the encoder for another engine
NGRAMS = "ngrams"
NGRAM_FILES = ("grams", "starts", "rows", "weights", "scales") + (
    *("english_weights", "english_scales"),
)
WORDS = "words"
WORD_FILES = (
    *("hashes", "kinds", "english", "every"),
    *("starts", "places", "real", "totals"),
)
OVERLAY = "overlay"  # folder of what was changed since the build
CONCEPTS_FILE = f"{OVERLAY}/concepts.jsonl"
REMOVED_FILE = f"{OVERLAY}/removed.json"
TAUGHT_FILE = f"{OVERLAY}/taught.jsonl"
DRAFT_NAME = "version"  # of temporary folders: not published yet, or removed
DRAFT = re.compile(rf"\.{DRAFT_NAME}\..+\.tmp")


@dataclass(frozen=True)
class Part:
    """A file, or a folder, of a version.

    Attributes:
        name: Its path, or the pattern of the paths of its files. What begins with
            `overlay/` is written by an edit, and is read together with the part of the
            rest of the name.
        holds: What it holds, for the docs.
        reader: What reads it, by its path in this package.
        files: The files that it must have, by meta.json; none = it is left out.
        others: Whether it may have another file, by its path in the folder. Its reader
            opens the folder then, so all its files are in one version; None = it has no
            others.
    """

    name: str
    holds: str
    reader: str
    files: Callable[["Manifest"], Iterable[str]]
    others: Callable[[str], bool] | None = None

    def may_have(self, path: str) -> bool:
        """Return whether a file, by its path in a version, may be in this part."""
        if self.others is None:
            return fnmatchcase(path, self.name)
        return path.startswith(self.name) and self.others(path[len(self.name) :])


def array_files(folder: str, names: Iterable[str]) -> list[str]:
    """Return the paths of numpy's files in a folder."""
    return [f"{folder}/{name}.npy" for name in names]


def has_rows(manifest: "Manifest") -> bool:
    """Return whether an overlay has rows of its own."""
    return manifest.overlay is not None and manifest.overlay.rows > 0


PARTS = (
    Part(
        STORE_FILE,
        "SQLite: concepts, names with languages and sources, types, codes, parents, "
        "retired ids",
        "kb.database.Database",
        files=lambda manifest: [STORE_FILE],
    ),
    Part(
        "index.*",
        "the vectors; row *i* is the distinct tokenised name *i*",
        "kb.indexes.registry.load_index",
        files=lambda m: index_files(m.index.backend, m.index.settings),
    ),
    Part(
        f"{ENCODER}/",
        "what `save_pretrained` writes, and `sapbert.json` with pooling, length and "
        "case",
        "encoder.encoder.Encoder",
        files=lambda manifest: [f"{ENCODER}/config.json"],
        others=is_encoder_file,
    ),
    Part(
        f"{NGRAMS}/*.npy",
        "character 3-grams of the names, if there is a [learned "
        "order](linker.md#learned-order)",
        "kb.ngrams.load_ngrams",
        files=lambda m: array_files(NGRAMS, NGRAM_FILES) if m.ngrams else (),
    ),
    Part(
        f"{WORDS}/*.npy",
        "the words of the names of each concept",
        "kb.agreement.WordTable",
        files=lambda manifest: array_files(WORDS, WORD_FILES),
    ),
    Part(
        CONCEPTS_FILE,
        "the concepts and names that were added since the build, as they were given",
        "kb.edits.edits.read_edits",
        files=lambda m: [CONCEPTS_FILE] if m.overlay else (),
    ),
    Part(
        REMOVED_FILE,
        "the names that were removed, by concept; an empty list = the whole concept",
        "kb.edits.edits.read_edits",
        files=lambda m: [REMOVED_FILE] if m.overlay else (),
    ),
    Part(
        TAUGHT_FILE,
        "[annotated mentions](teaching.md), which are names of their concepts",
        "kb.edits.edits.read_taught",
        files=lambda m: [TAUGHT_FILE] if m.taught else (),
    ),
    Part(
        f"{OVERLAY}/{STORE_FILE}",
        "each changed concept whole, in place of the one that was built",
        "kb.database.Database",
        files=lambda m: [f"{OVERLAY}/{STORE_FILE}"] if m.overlay else (),
    ),
    Part(
        f"{OVERLAY}/index.*",
        "the vectors of new rows",
        "kb.indexes.registry.load_index",
        files=lambda m: (
            [f"{OVERLAY}/{n}" for n in index_files("exact", {})] if has_rows(m) else ()
        ),
    ),
    Part(
        f"{OVERLAY}/{NGRAMS}/*.npy",
        "their 3-grams",
        "kb.ngrams.load_ngrams",
        files=lambda m: (
            array_files(f"{OVERLAY}/{NGRAMS}", NGRAM_FILES)
            if has_rows(m) and m.ngrams
            else ()
        ),
    ),
)


def check_files(manifest: "Manifest") -> None:
    """Raise a ValueError unless meta.json names all files, and none outside."""
    files = manifest.files
    needed = {name for part in PARTS for name in part.files(manifest)}
    if missing := sorted(needed - files.keys()):
        raise ValueError(f"`files` lacks {missing[0]}")
    for name in sorted(files.keys() - needed):
        if not any(part.others and part.may_have(name) for part in PARTS):
            raise ValueError(f"`files` has {name}, which no knowledge base has")
    for part in PARTS:
        places = {files[name].version for name in files if part.may_have(name)}
        if part.others and len(places) > 1:
            raise ValueError(f"the files of {part.name} are in several versions")


def may_be_in_kb(name: str) -> bool:
    """Return whether a file, by its path with "/", may be in a knowledge base."""
    version, _, rest = name.partition("/")
    if not rest:
        return name in (CURRENT, LOCK)
    if not (VERSION.fullmatch(version) or DRAFT.fullmatch(version)):
        return False
    return rest == FILE or any(part.may_have(rest) for part in PARTS)


KB_FOLDER = FolderKind("a knowledge base", CURRENT, may_be_in_kb, nested=False)
