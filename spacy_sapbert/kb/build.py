"""concepts.jsonl + encoder → kb/: the folder that the linker opens."""

import json
import os
import shutil
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from .. import __version__
from ..encoder.huggingface import (
    EncoderSettings,
    load_encoder,
    read_settings,
    save_encoder,
)
from ..encoder.name_encoder import (
    NameModel,
    create_encoder,
    encode_wordpieces,
    open_encoder,
    tokenize_names,
)
from ..encoder.openvino_export import export_encoder
from ..errors import Errors, SapbertError
from ..system.reading import check_file, file_digest
from ..system.writing import write_folder_atomically
from ..vocabularies.concepts import Concept, read_concepts
from .indexes.registry import build_index
from .knowledge_base import load_kb
from .manifest import EXPORTED, describe_files, encoder_fingerprint, write_meta
from .ngrams.build import build_ngrams, iterate_names
from .ngrams.index import FOLDER as NGRAMS_FOLDER
from .store import FILE as STORE_FILE
from .store import Store, name_key
from .store_writer import Origins, add_concept, create_store, finish_store

CONCEPTS_AT_ONCE = 2_000  # tokenised together
SHARD_ROWS = 8_192  # names embedded between two saves


class Names:
    """The distinct tokenised names, numbered in the order in which they come.

    rows (dict[bytes, int]): The row of each key.
    ids (array): The wordpieces of all rows, one after the other.
    ends (array): Where each row ends in `ids`.
    """

    def __init__(self) -> None:
        self.rows: dict[bytes, int] = {}
        self.ids = array("i")
        self.ends = array("q")

    def add(self, pieces: tuple[int, ...]) -> int | None:
        """Number a tokenised name.

        pieces (tuple[int, ...]): Its wordpieces; none if the encoder cannot read it.
        RETURNS (int | None): Its row, None for no wordpieces.
        """
        if not pieces:
            return None
        row = self.rows.setdefault(name_key(pieces), len(self.rows))
        if row == len(self.ends):
            self.ids.extend(pieces)
            self.ends.append(len(self.ids))
        return row

    def pieces(self, row: int) -> tuple[int, ...]:
        """Return the wordpieces of a row."""
        start = self.ends[row - 1] if row else 0
        return tuple(self.ids[start : self.ends[row]])

    def by_length(self) -> np.ndarray:
        """Order the rows by their number of wordpieces. Shape: (rows,)."""
        lengths = np.diff(np.frombuffer(self.ends, dtype=np.int64), prepend=0)
        return np.argsort(lengths, kind="stable")


def write_store(
    concepts: Iterable[Concept], path: Path, model: NameModel
) -> tuple[Names, dict[str, int]]:
    """Write concepts.db, and number the names that have to be embedded.

    concepts (Iterable[Concept]): The concepts, each once.
    path (Path): The file to write.
    model (Model[list[str], Floats2d]): With the encoder opened in it.
    RETURNS (tuple[Names, dict[str, int]]): The names, and how many concepts, aliases,
        rows and unreadable aliases there are.
    RAISES (SapbertError): If a concept comes twice, or no name can be read.
    """
    names = Names()
    origins: Origins = {}
    counts = {"concepts": 0, "aliases": 0, "rows": 0, "unreadable": 0}
    path.unlink(missing_ok=True)
    with create_store(path) as connection:
        stream = iter(concepts)
        while batch := list(islice(stream, CONCEPTS_AT_ONCE)):
            aliases = [alias for concept in batch for alias in concept.aliases]
            pieces, _ = tokenize_names(model, aliases)
            rows = iter([names.add(ids) for ids in pieces])
            for concept in batch:
                taken = list(islice(rows, len(concept.aliases)))
                add_concept(connection, counts["concepts"], concept, taken, origins)
                counts["concepts"] += 1
                counts["aliases"] += len(taken)
                counts["unreadable"] += taken.count(None)
        if not names.rows:
            raise SapbertError(Errors.E311.format(concepts=counts["concepts"]))
        finish_store(connection, names.rows, origins)
    counts["rows"] = len(names.rows)
    return names, counts


def embed_rows(
    names: Names, folder: Path, model: NameModel, *, progress: bool
) -> np.ndarray:
    """Embed all rows, sorted by length; a shard that is there is not made again.

    names (Names): The rows.
    folder (Path): Where the shards lie.
    model (Model[list[str], Floats2d]): With the encoder opened in it.
    progress (bool): Show a bar.
    RETURNS (np.ndarray): Memory-mapped, float32. Shape: (rows, width).
    RAISES (SapbertError): If a vector is not finite.
    """
    order = names.by_length()
    shape = (len(order), model.get_dim("nO"))
    matrix = np.memmap(folder / "vectors.f32", dtype="<f4", mode="w+", shape=shape)
    finished = len(list(folder.glob("shard-*.npy"))) * SHARD_ROWS
    with tqdm(
        total=len(order),
        initial=min(finished, len(order)),
        unit=" names",
        desc="Embed",
        disable=not progress,
    ) as bar:
        for number, start in enumerate(range(0, len(order), SHARD_ROWS)):
            rows = order[start : start + SHARD_ROWS]
            path = folder / f"shard-{number:06}.npy"
            if path.is_file():
                vectors = np.load(path, allow_pickle=False)
            else:
                vectors = embed_shard(names, rows, model, bar)
                write_shard(path, vectors)
            matrix[rows] = vectors
    matrix.flush()
    return matrix


def embed_shard(
    names: Names, rows: np.ndarray, model: NameModel, bar: Any
) -> np.ndarray:
    """Embed some rows of like length.

    names (Names): All rows.
    rows (np.ndarray): Which ones. Shape: (n,).
    model (Model[list[str], Floats2d]): With the encoder opened in it.
    bar (tqdm): Is told how far it is.
    RETURNS (np.ndarray): Unit vectors in float32. Shape: (n, width).
    RAISES (SapbertError): If one is not finite.
    """
    _, size, _ = model.attrs["run"]
    parts: list[np.ndarray] = []
    for start in range(0, len(rows), size):
        batch = rows[start : start + size]
        parts.append(encode_wordpieces(model, [names.pieces(row) for row in batch]))
        bar.update(len(batch))
    vectors = np.concatenate(parts)
    if not np.isfinite(vectors).all():
        raise SapbertError(Errors.E315)
    return vectors


def write_shard(path: Path, vectors: np.ndarray) -> None:
    """Write a shard; it takes its name when it is whole.

    path (Path): The file.
    vectors (np.ndarray): Shape: (n, width).
    """
    part = path.with_suffix(".part")
    with open(part, "wb") as file:
        np.save(file, vectors, allow_pickle=False)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)


def begin_work(folder: Path, plan: dict[str, Any]) -> None:
    """Make the folder of a build ready, and keep in it what the same build left.

    folder (Path): Where shards are kept while a build lasts.
    plan (dict[str, Any]): What decides the vectors.
    """
    path = folder / "plan.json"
    if not path.is_file() or json.loads(path.read_text("utf8")) != plan:
        for shard in folder.glob("shard-*.npy"):
            shard.unlink()
        path.write_text(json.dumps(plan, indent=2), "utf8")


def prepare_encoder(
    name: str, folder: Path, settings: EncoderSettings | None
) -> EncoderSettings:
    """Put the encoder into a folder as plain AutoModel reads it.

    name (str): A folder or a hub id.
    folder (Path): Where to write it.
    settings (EncoderSettings | None): How to run it; None = as its folder says.
    RETURNS (EncoderSettings): How it is run.
    """
    settings = settings or read_settings(Path(name))
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    tokenizer, model = load_encoder(name)
    save_encoder(folder, tokenizer, model, settings)
    card = Path(name) / "README.md"
    if card.is_file():
        shutil.copyfile(card, folder / "README.md")
    return settings


def build_kb(
    concepts_path: Path,
    output: Path,
    encoder: str,
    *,
    settings: EncoderSettings | None = None,
    backend: str = "hnsw",
    backend_settings: dict[str, int] | None = None,
    threshold: float | None = None,
    sources: Sequence[str] = (),
    engine: str = "torch",
    names_per_pass: int = 64,
    precision: str = "float32",
    threads: int = 0,
    ngrams: bool = False,
    force: bool = False,
    progress: bool = False,
) -> dict[str, Any]:
    """Build a knowledge base; a build that was stopped goes on where it was.

    concepts_path (Path): concepts.jsonl.
    output (Path): The folder to write.
    encoder (str): A folder or a hub id.
    settings (EncoderSettings | None): How to run it; None = as its folder says.
    backend (str): Of the index, "hnsw" or "exact".
    backend_settings (dict[str, int] | None): Those that differ from the defaults.
    threshold (float | None): Cosine under which a mention has no concept.
    sources (Sequence[str]): The vocabularies and their releases, for people.
    engine (str): What runs the encoder; see `create_encoder`. With "openvino" the
        encoder is exported for it, and the linker may use it too.
    names_per_pass (int): Names that go through the encoder at once.
    precision (str): Of the encoder, "float32" or "bf16".
    threads (int): For the index, 0 = all; with 1 the bytes are always the same.
    ngrams (bool): Index the character 3-grams of the names too, for `fusion`.
    force (bool): Replace a folder that is there.
    progress (bool): Show bars.
    RETURNS (dict[str, Any]): The meta.json of the knowledge base.
    RAISES (SapbertError): If input, encoder, settings or place are not usable.
    """
    check_file(concepts_path)
    if output.exists() and not force:
        raise SapbertError(Errors.E003.format(path=output))
    if threshold is not None and not -1 <= threshold <= 1:
        raise SapbertError(
            Errors.E313.format(setting="threshold", low=-1, high=1, value=threshold)
        )
    model = create_encoder(engine, names_per_pass, precision)
    work = output.with_name(f".{output.name}.build")
    settings = prepare_encoder(encoder, work / "encoder", settings)
    fingerprint = encoder_fingerprint(describe_files(work / "encoder"))
    plan = {
        "concepts_sha256": file_digest(concepts_path),
        "fingerprint": fingerprint,
        "settings": asdict(settings),
        "engine": engine,
        "precision": precision,
        "names_per_pass": names_per_pass,
        "shard_rows": SHARD_ROWS,
    }
    begin_work(work, plan)
    if engine == "openvino":
        export_encoder(work / "encoder", work / EXPORTED, settings)
    open_encoder(model, work / "encoder", settings=settings)
    concepts: Iterator[Concept] = iter(
        tqdm(
            read_concepts(concepts_path),
            unit=" concepts",
            desc="Read",
            disable=not progress,
        )
    )
    names, counts = write_store(concepts, work / STORE_FILE, model)
    matrix = embed_rows(names, work, model, progress=progress)
    with write_folder_atomically(output) as part:
        shutil.copytree(work / "encoder", part / "encoder")
        shutil.copyfile(work / STORE_FILE, part / STORE_FILE)
        used = build_index(
            matrix,
            part,
            backend=backend,
            settings=backend_settings or {},
            threads=threads,
            progress=progress,
        )
        if ngrams:
            build_ngrams(iterate_names(Store(part), len(matrix)), part / NGRAMS_FOLDER)
        write_meta(
            part,
            {
                "package_version": __version__,
                "encoder": {
                    # A folder's own name is enough: where it lay is nobody's business.
                    "base": Path(encoder).name if Path(encoder).is_dir() else encoder,
                    "fingerprint": fingerprint,
                    "width": int(matrix.shape[1]),
                    "engine": engine,
                    "precision": precision,
                    **asdict(settings),
                },
                "index": {"backend": backend, "settings": used},
                "counts": counts,
                "ngrams": ngrams,
                "sources": list(sources),
                "threshold": threshold,
            },
        )
    shutil.rmtree(work, ignore_errors=True)
    return load_kb(output).meta
