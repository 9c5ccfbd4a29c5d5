"""The parts of a version's folder: everything else is made from `PARTS`, one row each.

Size and sha256 of every file are in meta.json.
"""

import re
from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase
from typing import NamedTuple

from ...encoder.safety import is_encoder_file
from ...io.writing import CURRENT, VERSION, FolderKind
from ..indexes.backends import index_files
from .records import ENCODER, Manifest

FILE = "meta.json"
LOCK = ".lock"
STORE_FILE = "concepts.db"
ENCODER_FOLDER = f"{ENCODER}/"  # the start of the paths of its files
NGRAMS = "ngrams"
NGRAM_FILES = ("grams", "starts", "rows", "weights", "scales") + (
    *("english_weights", "english_scales"),
)
WORDS = "words"
WORD_FILES = (
    *("hashes", "english", "every"),
    *("starts", "places", "real", "totals"),
    *("name_words", "name_starts", "first_names"),
    *("pairs", "supports", "context_starts", "contexts", "owners", "added"),
)
ENGLISH = "english_words"
OVERLAY = "overlay"  # folder of what was changed since the build
CONCEPTS_FILE = f"{OVERLAY}/concepts.jsonl"
REMOVED_FILE = f"{OVERLAY}/removed.json"
TAUGHT_FILE = f"{OVERLAY}/taught.jsonl"
DRAFT_NAME = "version"  # of temporary folders: not published yet, or removed
DRAFT = re.compile(rf"\.{DRAFT_NAME}\..+\.tmp")


class Part(NamedTuple):
    """A file, or a folder, of a version; one without files by meta.json is left out.

    The part of an overlay is read together with the part of the rest of its name. Only
    the encoder may have other files too.
    """

    name: str  # its path, or the pattern of the paths of its files
    holds: str  # for the docs
    reader: str  # by its path in this package
    files: Callable[[Manifest], Iterable[str]]  # that it must have, by meta.json

    def may_have(self, path: str) -> bool:
        if self.name == ENCODER_FOLDER:
            return is_of_encoder(path)
        return fnmatchcase(path, self.name)


def list_arrays(folder: str, names: Iterable[str]) -> list[str]:
    return [f"{folder}/{name}.npy" for name in names]


def has_rows(manifest: Manifest) -> bool:
    return manifest.overlay is not None and manifest.overlay.rows > 0


PARTS = (
    Part(
        STORE_FILE,
        "SQLite: concepts, names with languages and sources, types, codes, parents, "
        "retired ids, and a full-text index of the names",
        "kb.database.Database",
        lambda manifest: [STORE_FILE],
    ),
    Part(
        "index.*",
        "the vectors; row *i* is the distinct tokenised name *i*",
        "kb.indexes.backends.load_index",
        lambda manifest: index_files(manifest.index.backend, manifest.index.settings),
    ),
    Part(
        ENCODER_FOLDER,
        "what `save_pretrained` writes, and `sapbert.json` with pooling, length and "
        "case",
        "encoder.encoder.Encoder",
        lambda manifest: [f"{ENCODER}/config.json"],
    ),
    Part(
        f"{NGRAMS}/*.npy",
        "character 3-grams of the names, if there is a [learned "
        "order](linker.md#learned-order)",
        "kb.ngrams.load_ngrams",
        lambda manifest: list_arrays(NGRAMS, NGRAM_FILES) if manifest.ngrams else [],
    ),
    Part(
        f"{WORDS}/*.npy",
        "the words of the names of each concept, what names say about them, and "
        "vectors of English words",
        "kb.agreement.WordTable",
        lambda manifest: list_arrays(WORDS, (*WORD_FILES, ENGLISH)),
    ),
    Part(
        CONCEPTS_FILE,
        "the concepts and names that were added since the build, as they were given",
        "kb.edits.change.read_edits",
        lambda manifest: [CONCEPTS_FILE] if manifest.overlay else [],
    ),
    Part(
        REMOVED_FILE,
        "the names that were removed, by concept; an empty list = the whole concept",
        "kb.edits.change.read_edits",
        lambda manifest: [REMOVED_FILE] if manifest.overlay else [],
    ),
    Part(
        TAUGHT_FILE,
        "[annotated mentions](teaching.md), which are names of their concepts",
        "kb.edits.change.read_taught",
        lambda manifest: [TAUGHT_FILE] if manifest.taught else [],
    ),
    Part(
        f"{OVERLAY}/{STORE_FILE}",
        "each changed concept whole, in place of the one that was built",
        "kb.database.Database",
        lambda manifest: [f"{OVERLAY}/{STORE_FILE}"] if manifest.overlay else [],
    ),
    Part(
        f"{OVERLAY}/index.*",
        "the vectors of new rows",
        "kb.indexes.backends.load_index",
        lambda manifest: (
            [f"{OVERLAY}/{name}" for name in index_files("exact", {})]
            if has_rows(manifest)
            else []
        ),
    ),
    Part(
        f"{OVERLAY}/{NGRAMS}/*.npy",
        "their 3-grams",
        "kb.ngrams.load_ngrams",
        lambda manifest: (
            list_arrays(f"{OVERLAY}/{NGRAMS}", NGRAM_FILES)
            if has_rows(manifest) and manifest.ngrams
            else []
        ),
    ),
)


def check_files(manifest: Manifest) -> None:
    """Raise a ValueError unless meta.json names all files, and none outside."""
    files = manifest.files
    needed = {name for part in PARTS for name in part.files(manifest)}
    if missing := sorted(needed - files.keys()):
        raise ValueError(f"`files` lacks {missing[0]}")
    encoder = [name for name in files if is_of_encoder(name)]
    if others := sorted(files.keys() - needed - {*encoder}):
        raise ValueError(f"`files` has {others[0]}, which no knowledge base has")
    if len({files[name].version for name in encoder}) > 1:
        raise ValueError(f"the files of {ENCODER_FOLDER} are in several versions")


def is_of_encoder(path: str) -> bool:
    """Return whether the encoder of a version may have a file, by its path."""
    return path.startswith(ENCODER_FOLDER) and is_encoder_file(
        path.removeprefix(ENCODER_FOLDER)
    )


def may_be_in_kb(name: str) -> bool:
    """Return whether a file, by its path with "/", may be in a knowledge base."""
    version, _, rest = name.partition("/")
    if not rest:
        return name in (CURRENT, LOCK)
    if not (VERSION.fullmatch(version) or DRAFT.fullmatch(version)):
        return False
    return rest == FILE or any(part.may_have(rest) for part in PARTS)


KB_FOLDER = FolderKind("a knowledge base", CURRENT, may_be_in_kb, nested=False)
