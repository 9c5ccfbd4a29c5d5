"""concepts.jsonl + encoder → the folder of a knowledge base."""

import shutil
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ...encoder.encoder import Encoder, EncoderConfig, prefers_onnx
from ...encoder.export import export_encoder
from ...encoder.huggingface import (
    EncoderSettings,
    load_encoder,
    read_settings,
    save_encoder,
)
from ...errors import SapbertError, check_choice
from ...io.progress import show_progress
from ...io.reading import check_not_empty, file_digest
from ...io.terminal import msg
from ...io.version import __version__
from ...io.writing import check_folder_output, link_file
from ...linking.chance import ORDERED, PLAIN, load_chance
from ...linking.options import check_threshold
from ...linking.probability import DEFAULT_THRESHOLD
from ...linking.text import hash_word
from ...linking.word_likeness import read_words
from ...vocabularies.concepts import read_concepts
from ...vocabularies.releases import read_releases
from ..database import Database
from ..folder.layout import (
    CURRENT,
    ENGLISH,
    KB_FOLDER,
    NGRAMS,
    STORE_FILE,
    WORDS,
)
from ..folder.publication import (
    LOCK_WAIT,
    Draft,
    describe_files,
    draft_version,
    lock_kb,
    open_target,
)
from ..folder.records import (
    CARD,
    ENCODER,
    EXPORTED,
    EncoderRecord,
    IndexRecord,
    Manifest,
    encoder_fingerprint,
)
from ..indexes.backends import (
    Backend,
    BuildRun,
    check_library,
    choose_index,
    make_backend,
    name_choice,
)
from ..knowledge_base import KnowledgeBase, load_kb, open_version
from ..learned_order.names import learn_order
from ..ngrams import build_ngrams
from ..packages import list_vocabularies
from ..probe import measure_recall, probe_kb
from ..replacements import build_replacements
from ..store import Store
from ..words import build_words
from .row_vectors import (
    check_plan,
    describe_index,
    embed_rows,
    lock_work_folder,
    not_reusable,
    read_names,
    read_state,
)

# Above, a search by 3-grams takes longer than the encoder; see docs/speed.md.
MOST_ROWS = 1_000_000
ORDERS = ("names", "none")
ENGLISH_WORDS = 512


@dataclass(frozen=True)
class BuildOptions:
    """The keyword arguments of `build_kb`.

    Attributes:
        settings: How names become vectors; None = as in the folder of the encoder.
        backend: "hnsw", "faiss" or "exact"; None = see `choose_index`, or "hnsw" if
            there are settings. A stopped build continues with its own.
        threshold: Probability below which a mention has no concept; 0 = link
            everything.
        sources: The vocabularies and their releases, for `kb info`.
        engine: See `EncoderConfig`. "auto" = ONNX Runtime on a CPU where it is
            installed and can run the encoder. For it the encoder is exported.
        device: See `EncoderConfig`. A stopped build may continue on a different one.
        threads: Threads of the index build, 0 = all. With 1, equal input gives equal
            bytes.
        order: "names" = learn an order of candidates from the names, for which their
            character 3-grams are indexed; "none" = candidates are ordered by cosine.
        reuse: A knowledge base of the same encoder, e.g. of the release before: only
            names that it lacks are embedded. The bytes are the same.
    """

    settings: EncoderSettings | None = None
    backend: str | None = None
    backend_settings: dict[str, int] | None = None
    threshold: float = DEFAULT_THRESHOLD
    sources: Sequence[str] = ()
    engine: str = "auto"
    names_per_pass: int = 64
    precision: str = "float32"
    device: str | None = None
    threads: int = 0
    order: str = "names"
    reuse: Path | None = None
    force: bool = False
    progress: bool = False

    def __post_init__(self) -> None:
        check_threshold(self.threshold)
        check_choice("order", ORDERS, self.order)
        if self.index is not None:
            check_library(self.index)
        self.config  # noqa: B018 (it checks its values)

    @cached_property
    def index(self) -> Backend | None:
        """The index; None if it is to be chosen."""
        if self.backend is None and not self.backend_settings:
            return None
        return make_backend(self.backend or "hnsw", self.backend_settings)

    @cached_property
    def config(self) -> EncoderConfig:
        return EncoderConfig(
            self.engine, self.names_per_pass, self.precision, self.device
        )


def build_kb(
    concepts_path: str | Path, output: str | Path, encoder: str, **options: Any
) -> Manifest:
    """Build a knowledge base; a build that was stopped is continued.

    Args:
        concepts_path: concepts.jsonl.
        output: The folder to write.
        encoder: A folder or a hub id.
        options: Fields of `BuildOptions` (in `kb.building.build`): `backend`,
            `threshold`, `order`, `force`, `progress` … as `spacy sapbert kb build` has
            them.

    Returns:
        The meta.json of the knowledge base.

    Examples:
        >>> concepts = read_vocabulary("assets/sample")
        >>> count = write_concepts("concepts.jsonl", concepts)
        >>> encoder = "models/sample/encoder"
        >>> manifest = build_kb("concepts.jsonl", "models/kb", encoder)
        >>> manifest.counts.concepts == count
        True
    """
    build = BuildOptions(**options)
    concepts_path, output = Path(concepts_path), Path(output)
    check_not_empty(concepts_path, "concepts")
    check_folder_output(output, KB_FOLDER, force=build.force)
    with (
        lock_work_folder(output) as work,
        open_target(output) as root,
        draft_version(root) as draft,
    ):
        reused = load_kb(build.reuse) if build.reuse else None
        engine = build.engine
        if engine == "auto":  # as the vectors that are there
            engine = reused.manifest.encoder.engine if reused else engine
            engine = read_state(work).get("engine", engine)
        opened, record = copy_encoder(encoder, draft.path, build, engine)
        plan = {
            "concepts_sha256": file_digest(concepts_path),
            **record.model_dump(exclude={"base", "width"}),
            "names_per_pass": build.names_per_pass,
        }
        left = check_plan(work, plan, build.index, replace=build.force)
        if reused:
            check_reused(reused, record)

        concepts = show_progress(
            read_concepts(concepts_path),
            unit="concepts",
            desc="Read",
            quiet=not build.progress,
        )
        names, counts = read_names(concepts, opened, work / STORE_FILE)
        # The libraries that are installed may have changed since.
        index = make_backend(**left["index"]) if left else build.index
        index = index or choose_index(counts.rows)
        if build.progress:
            named = name_choice(index, counts.rows)
            msg.info(f"{counts.rows:,} distinct names; index: {named}")
        state = plan | describe_index(index) | {"done": left.get("done", 0)}
        matrix = embed_rows(
            names,
            work,
            opened,
            reused,
            state,
            compact=index.stores_16_bits,
            progress=build.progress,
        )

        link_file(work / STORE_FILE, draft.path / STORE_FILE)
        index.build(matrix, draft.path, BuildRun(build.threads, build.progress))
        store = Store(Database(draft.path / STORE_FILE), counts)
        words = build_words(store, draft.path / WORDS)
        build_replacements(words, draft.path / WORDS)
        embed_english(opened, draft.path / WORDS / f"{ENGLISH}.npy")
        ngrams = build.order == "names" and counts.rows <= MOST_ROWS
        if ngrams:
            build_ngrams(store, range(counts.rows), draft.path / NGRAMS)
        elif build.order == "names" and build.progress:
            msg.info(f"No order is learned for more than {MOST_ROWS:,} names")
        manifest = Manifest(
            package_version=__version__,
            encoder=record,
            index=IndexRecord(backend=index.name, settings=index.settings),
            counts=counts,
            ngrams=ngrams,
            chance=load_chance(PLAIN),
            sources=list(build.sources),
            vocabularies=list_vocabularies(
                store.count_sources(), read_releases(concepts_path)
            ),
            threshold=build.threshold,
            files=describe_files(draft.path),
        )
        manifest = probe_draft(draft, manifest, build, output)
        replaces = (root / CURRENT).exists()
        with lock_kb(root, wait=LOCK_WAIT) if replaces else nullcontext():
            draft.publish()
    return manifest


def embed_english(encoder: Encoder, path: Path) -> None:
    """Write vectors of some English words, with which mentions are compared."""
    words = sorted(read_words(), key=hash_word)[:ENGLISH_WORDS]
    token_ids, _ = encoder.tokenize(words)
    np.save(path, encoder.encode(token_ids), allow_pickle=False)


def copy_encoder(
    name: str, version: Path, options: BuildOptions, engine: str
) -> tuple[Encoder, EncoderRecord]:
    """Copy an encoder (a folder or a hub id) into a version, and open the copy."""
    folder = version / ENCODER
    folder.mkdir()
    settings = options.settings or read_settings(Path(name))
    tokenizer, model = load_encoder(name)
    save_encoder(folder, tokenizer, model, settings)
    fingerprint = encoder_fingerprint(describe_files(version))
    card = Path(name) / CARD
    if card.is_file():  # after the fingerprint: it changes no vector
        shutil.copyfile(card, folder / CARD)
    if engine == "onnx" or (engine == "auto" and prefers_onnx(options.config)):
        try:
            export_encoder(folder, version / EXPORTED, settings)
            engine = "onnx"
        except SapbertError:
            if engine != "auto":
                raise
            shutil.rmtree(version / EXPORTED, ignore_errors=True)
    engine = "torch" if engine == "auto" else engine
    config = replace(options.config, engine=engine)
    opened = Encoder.open(folder, config, settings=settings)
    record = {
        # Only the name of a folder: its path may be private.
        "base": Path(name).name if Path(name).is_dir() else name,
        "fingerprint": fingerprint,
        "width": opened.width,
        "engine": "onnx" if engine == "onnx" else "torch",  # or with its vectors
        "precision": options.precision,
        **asdict(opened.settings),
    }
    return opened, EncoderRecord.model_validate(record)


def check_reused(kb: KnowledgeBase, record: EncoderRecord) -> None:
    """Check that the vectors of `kb` are as a build would compute them."""
    # The files of the encoder have the settings too.
    for name in ("fingerprint", "engine", "precision"):
        if getattr(kb.manifest.encoder, name) != getattr(record, name):
            raise not_reusable(kb, name.replace("fingerprint", "encoder"))


def probe_draft(
    draft: Draft, manifest: Manifest, options: BuildOptions, output: Path
) -> Manifest:
    """Check that a new index finds its names, measure it, and write meta.json.

    If there are 3-grams, an order is learned; without an order they are removed.
    """
    try:
        built = open_version(draft.write(manifest), encoder=options.config)
        probe_kb(built)
        measured: dict[str, Any] = {"recall": measure_recall(built)}
        if manifest.ngrams:
            learned = learn_order(built, progress=options.progress)
            measured["order"] = learned
            if learned is not None:
                measured["chance"] = load_chance(ORDERED)
            if learned is None:
                if options.progress:
                    msg.info(
                        "No order of candidates is learned, since the names are too "
                        "few: the cosine orders them"
                    )
                shutil.rmtree(draft.path / NGRAMS)
                files = describe_files(draft.path)
                measured |= {"ngrams": False, "files": files}
        return draft.write(manifest.model_copy(update=measured)).manifest
    except SapbertError as error:
        # hnswlib ignores write errors, so that a full disk cuts the index.
        raise SapbertError(
            "E355",
            f"Expected to write a knowledge base that works to {output}, but: {error} "
            "Nothing was replaced. If the disk is full, make space, and repeat the "
            "command.",
        ) from error
