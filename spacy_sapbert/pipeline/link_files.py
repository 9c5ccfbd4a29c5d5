"""Files of documents → files of linked documents: what `spacy sapbert link` does."""

import hashlib
import json
import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from ..errors import SapbertError, check_choice, check_range, may_skip
from ..formats.documents import Document, FailOrSkip, OnError
from ..formats.entities import COLUMNS as OWN_COLUMNS
from ..formats.entities import RUN_COLUMNS, LinkedDoc
from ..formats.format_table import (
    Format,
    Writer,
    check_library,
    guess_format,
    list_formats,
    list_suffixes,
    load_writer,
    open_target,
)
from ..formats.inputs.files import InputFile, count_documents, list_inputs
from ..formats.inputs.reading import ENTITIES, read_documents
from ..formats.inputs.rows import COLUMNS, Columns
from ..formats.omop import SOURCE as OMOP
from ..formats.shards import FAILED, Shard, lock_folder, open_state, write_parts
from ..io.progress import show_progress
from ..io.reading import file_digest
from ..io.version import __version__
from ..io.writing import check_existing, check_outputs, check_replaceable
from ..kb.folder.layout import CURRENT
from ..kb.folder.versions import read_version
from ..linking.candidates import CANDIDATES
from .running import link_documents, open_pipeline
from .workers import Workers

if TYPE_CHECKING:
    from spacy.language import Language

    from .linker import SapbertLinker

MOST = 10**9
MOST_LISTED = 20


def no_effect(default: Any) -> Any:
    """Declare a field of a job on which the content of the output does not depend."""
    return field(default=default, metadata={"changes_output": False})


@dataclass(frozen=True)
class LinkJob:
    """Which documents are linked, how, and what is written.

    Every field decides the output, unless it says that it does not: a stopped job
    resumes only if all that decide it are the same.

    Args:
        inputs: Files, and folders of them; `-` = the standard input, as JSONL. One path
            and texts are accepted too, and become a tuple of paths.
        output: The file, or the folder of parts; None = the standard output. The output
            does not depend on it.
        input_format: See `list_inputs`; None = by the ending, else the content.
        encoding: Of texts, JSONL and CSV.
        text: Of JSONL, CSV and Parquet; "a.b" = nested.
        id: The same for the id of a document.
        keep: Fields of the input to repeat.
        columns: Of tables of mentions, see `mention_tables.read_table`; None = a row is
            a document.
        delimiter: Of tables of mentions.
        on_error: "fail", or "skip" to leave out documents that are invalid or fail.
        pipeline: Folder or package; None = a blank one that detects names.
        lang: Language of the blank pipeline; None = English.
        kb: Folder or name of a knowledge base; None = the only one installed.
        mentions: "names" = detect the names of the knowledge base.
        options: Fields of `LinkOptions` that replace those of the linker.
        engine: See `EncoderConfig`; None = as the linker.
        precision: See `EncoderConfig`; None = as the linker.
        device: See `EncoderConfig`; None = as the linker.
        format: Such as "jsonl"; None = by the ending of the output, JSONL for parts,
            and else a table.
        shard_size: Documents in a part; None = one file.
        candidates: Of a mention, that are written; None = the `k` of the options, if
            they have one, else `CANDIDATES`. Links do not depend on it.
        no_text: Do not write the texts of documents and mentions.
        first_id: Of the rows of OMOP.
        batch_size: Documents in memory at once, in each process. The output does not
            depend on it.
        n_process: Number of processes. The output does not depend on it.
        force: Replace the output.
    """

    inputs: tuple[Path, ...]
    output: Path | None = no_effect(None)
    input_format: str | None = None
    encoding: str = "utf-8"
    text: str = COLUMNS.text
    id: str = COLUMNS.id
    keep: tuple[str, ...] = ()
    columns: str | None = None
    delimiter: str | None = None
    on_error: FailOrSkip = "fail"
    pipeline: str | None = None
    lang: str | None = None
    kb: str | None = None
    mentions: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    engine: str | None = None
    precision: str | None = None
    device: str | None = no_effect(None)
    format: str | None = None
    shard_size: int | None = None
    candidates: int | None = None
    no_text: bool = False
    first_id: int = 1
    batch_size: int = no_effect(64)
    n_process: int = no_effect(1)
    force: bool = no_effect(False)

    def __post_init__(self) -> None:
        given: Any = self.inputs
        paths = [given] if isinstance(given, (str, Path)) else given
        object.__setattr__(self, "inputs", tuple(map(Path, paths)))
        if self.output is not None:
            object.__setattr__(self, "output", Path(self.output))
        check_choice("on-error", get_args(FailOrSkip), self.on_error)
        for name in ("shard_size", "first_id", "batch_size", "n_process"):
            if (value := getattr(self, name)) is not None:
                check_range(name, value, 1, MOST)
        if self.candidates is None:
            most = self.options.get("k", CANDIDATES)
            object.__setattr__(self, "candidates", most)

    @property
    def table(self) -> dict[str, str]:
        """The options of tables of mentions; empty if they are of documents."""
        given = {"columns": self.columns, "delimiter": self.delimiter}
        return {name: value for name, value in given.items() if value is not None}

    def choose_format(self) -> str:
        """Return the format of the output; what cannot be written is an error."""
        output, parts = self.output, self.shard_size is not None
        is_folder = output is not None and output.is_dir()
        if self.format is not None:
            name = self.format
        elif parts:
            ending = "" if output is None else output.suffix
            name = list_suffixes().get(ending, "jsonl")
        elif output is None or is_folder:  # the latter is an error
            name = "table"
        else:
            name = guess_format(output)
        load_writer(name)
        format = list_formats()[name]
        if output is not None:
            check_replaceable(output)
        got = None
        if parts and format.folder:
            got = f"`--shard-size` with {name}, which writes files for each document"
        elif parts and output is None:
            got = "`--shard-size` without `--output`"
        elif is_folder and not parts and not format.folder:
            got = f"the folder {output} without `--shard-size`"
        if got is not None:
            raise SapbertError(
                "E423",
                "Expected a file as `--output`, or with `--shard-size` a folder for "
                f"parts of one file each, but got {got}. Pass a file, or pass "
                "`--output FOLDER --shard-size 1000`.",
            )
        if output is not None and format.folder:
            check_existing(output, force=self.force)
        elif not parts:
            check_outputs(output, force=self.force)
        self.check_keep(name, format)
        return name

    def check_keep(self, name: str, format: Format) -> None:
        """Raise an error if the format cannot repeat the fields, or has one itself."""
        own = (*OWN_COLUMNS, *RUN_COLUMNS, ENTITIES)
        wrong = [n for n in self.keep if n in own or self.keep.count(n) > 1]
        if self.keep and "keep" not in format.takes:
            wrong = [name]
        if wrong:
            keeping = list_formats("takes").items()
            known = ", ".join(n for n, other in keeping if "keep" in other.takes)
            raise SapbertError(
                "E331",
                f"Expected `--keep` with a `--format` of {known}, and with fields "
                "once, which the output does not have itself, but got "
                f"{wrong[0]!r}. Correct it, or remove `--keep`.",
            )

    def describe(self, files: Iterable[InputFile], nlp: "Language") -> dict[str, Any]:
        """Return what decides the output, as JSON; options are digests."""
        values = {
            setting.name: getattr(self, setting.name)
            for setting in fields(self)
            if setting.metadata.get("changes_output", True)
        }
        for name, value in sorted(values.pop("options").items()):
            values[name] = digest_json(value)
        values["inputs"] = digest_json(
            [
                [name, format, path.stat().st_size if path.is_file() else None]
                for path, name, format in files
            ]
        )
        if nlp.path is not None:  # not blank
            values["pipeline"] = digest_pipeline(nlp.path)
        values["version"] = __version__
        return values


@dataclass
class LinkResult:
    """What was written.

    Attributes:
        counts: "documents", "entities", "linked", and the reasons of mentions without
            a concept: "NIL: …".
        left_out: Numbers of documents without a text, and of skipped ones.
        not_read: Numbers of files and folders that were not read.
        parts: Number of parts in the folder; None = it is one file.
        documents: How many were linked in this run.
        seconds: That the run took, without loading.
        unmarked: Ids of documents that could not be linked, the first of them, if the
            output does not say so; see `Format.errors`.
    """

    counts: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    not_read: Counter[str] = field(default_factory=Counter)
    parts: int | None = None
    documents: int = 0
    seconds: float = 0.0
    unmarked: list[Any] = field(default_factory=list)


def link_files(
    job: LinkJob, *, progress: bool = False, on_skip: OnError | None = None
) -> LinkResult:
    """Link the documents of files and write them, all or nothing.

    In parts, each part is written as a whole, and the same job continues a stopped one.

    Args:
        on_skip: Called with the error of each document that is left out.

    Examples:
        >>> notes = Path("assets/sample/notes")
        >>> job = LinkJob((notes,), Path("linked.jsonl"), kb="models/sample/kb")
        >>> link_files(job).documents
        5
    """
    name = job.choose_format()
    result = LinkResult()
    files = list_inputs(job.inputs, job.input_format, left_out=result.not_read)
    for input_format in {file.format for file in files}:
        check_library(input_format)
    settings: dict[str, Any] = {
        "name": job.pipeline,
        "lang": job.lang,
        "kb": job.kb,
        "mentions": job.mentions,
        "options": job.options,
        "engine": job.engine,
        "precision": job.precision,
        "device": job.device,
        # other files may have mentions in all documents
        "detection": job.columns is None
        and not all(list_formats()[file.format].annotated for file in files),
    }
    nlp, linker = open_pipeline(**settings)
    # One version links all documents.
    kb, linker.reload_seconds = linker.kb, None
    workers = Workers(settings, kb, job.n_process) if job.n_process > 1 else None
    total = count_documents(files) if progress else None
    write = JobWriter(
        job,
        nlp,
        linker,
        workers,
        writer=load_writer(name),
        writes_errors=list_formats()[name].errors,
        options=make_writer_options(job, list_formats()[name], nlp, linker),
        bar=show_progress(unit="documents", total=total, quiet=not progress),
        on_skip=on_skip,
    )
    documents = read_documents(
        files,
        longest=nlp.max_length,
        vocab=nlp.vocab,
        columns=Columns(job.text, job.id, job.keep),
        keep_failed=True,
        overlapping=linker.spans_key is not None,
        on_error=write.skip,
        counts=result.left_out,
        encoding=job.encoding,
        table=job.table,
    )
    start = time.monotonic()
    with write.bar, workers or nullcontext():
        if job.shard_size is None:
            with open_target(job.output, name) as target:
                result.counts += write(iter(documents), target)
                write.check_written(result.counts)
        else:
            command = job.describe(files, nlp)
            command |= {"kb": kb.manifest.digest, "format": name}
            parts = write_folder(job, command, documents, write)
            result.parts = len(parts)
            for part in parts:
                result.counts.update(part["counts"])
            write.check_written(result.counts)
    result.left_out["skipped"] = write.skipped
    result.unmarked = write.unmarked
    result.documents = write.documents
    result.seconds = time.monotonic() - start
    return result


@dataclass
class JobWriter:
    """Links documents and writes them to a file, e.g. of a part.

    `first_id` of `options` grows with the rows that were written; `first` is the error
    of the first document that was skipped, and `unmarked` as in `LinkResult`.
    """

    job: LinkJob
    nlp: "Language"
    linker: "SapbertLinker"
    workers: Workers | None
    writer: Writer
    writes_errors: bool
    options: dict[str, Any]
    bar: Any
    on_skip: OnError | None
    documents: int = 0
    skipped: int = 0
    first: SapbertError | None = None
    unmarked: list[Any] = field(default_factory=list)

    def __call__(self, documents: Iterable[Document], file: Any) -> Counter[str]:
        counts: Counter[str] = Counter()
        docs = link_documents(
            self.nlp,
            documents,
            batch_size=self.job.batch_size,
            run=self.workers.run if self.workers else None,
            on_error=self.skip,
        )
        self.writer(self.count(docs, counts), file, **self.options)
        self.skip_ids(counts)
        return counts

    def count(
        self, docs: Iterable[LinkedDoc], counts: Counter[str]
    ) -> Iterator[LinkedDoc]:
        """Yield documents unchanged, and count their links."""
        for doc in docs:
            if doc.error:
                counts[FAILED] += 1
                if not self.writes_errors and len(self.unmarked) < MOST_LISTED:
                    self.unmarked.append(doc.id)
                yield doc
                continue
            self.documents += 1
            self.bar.update()
            counts["documents"] += 1
            for entity in doc.entities:
                entity["candidates"] = entity["candidates"][: self.job.candidates]
                counts["entities"] += 1
                reason = f"NIL: {entity['note'] or 'no candidate'}"
                counts[reason if entity["cui"] is None else "linked"] += 1
            yield doc

    def skip_ids(self, counts: Mapping[str, int]) -> None:
        """Count the ids of a written part, which the next part must not use."""
        if "first_id" in self.options:
            self.options["first_id"] += counts.get("entities", 0)

    def skip(self, error: SapbertError) -> None:
        """Count a document that is left out, or raise its error."""
        if self.job.on_error != "skip":
            raise may_skip(error)
        self.skipped += 1
        self.first = self.first or error
        if self.on_skip is not None:
            self.on_skip(error)

    def check_written(self, counts: Mapping[str, int]) -> None:
        if not counts["documents"] and self.first is not None:
            raise self.first


def make_writer_options(
    job: LinkJob, format: Format, nlp: "Language", linker: "SapbertLinker"
) -> dict[str, Any]:
    digest = linker.kb.manifest.digest
    options: dict[str, Any] = {"include_text": not job.no_text}
    if job.keep:
        options["keep"] = job.keep
    if "kb_digest" in format.takes:
        options["kb_digest"] = digest
    if "system" in format.takes:
        pipeline = f"{nlp.lang}_{nlp.meta.get('name')} {nlp.meta.get('version')}"
        options["system"] = f"{pipeline}, spacy-sapbert {__version__}, kb {digest[:16]}"
    if "first_id" in format.takes:
        options["first_id"] = job.first_id
        known = linker.options.codes or linker.kb.store.sources_of_codes
        if OMOP not in known:  # no mention would have the id of a concept
            got = ", ".join(known) or "none"
            raise SapbertError(
                "E471",
                "Expected a knowledge base whose concepts have codes of OMOP for "
                f"`--format omop`, but got {got}, so that each row would have the "
                "concept 0. Build it from files of Athena, or write another format.",
            )
    return options


def write_folder(
    job: LinkJob,
    command: dict[str, Any],
    documents: Iterable[Document],
    write: JobWriter,
) -> list[Shard]:
    """Write the parts that are missing; `command` has all that decides the output."""
    assert job.output is not None
    assert job.shard_size is not None
    format = list_formats()[command["format"]]
    with lock_folder(job.output):
        state = open_state(job.output, command, force=job.force)
        write.bar.initial = write.bar.n = sum(p["documents"] for p in state["parts"])
        for part in state["parts"]:
            write.skip_ids(part["counts"])
        write_parts(
            job.output,
            state,
            documents,
            size=job.shard_size,
            suffix=format.part_suffix or format.suffixes[0],
            write_part=write,
        )
    return state["parts"]


def digest_json(data: Any) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


def digest_pipeline(path: Path) -> str:
    """Return the sha256 of all files of a pipeline; of a knowledge base its digest."""
    digests: dict[str, str] = {}
    for parent, folders, files in os.walk(path, followlinks=True):
        folder = Path(parent)
        name = folder.relative_to(path).as_posix()
        if (folder / CURRENT).is_file():
            digests[name] = read_version(folder).manifest.digest
            folders.clear()
            continue
        for file in filter(Path.is_file, map(folder.joinpath, files)):
            digests[f"{name}/{file.name}"] = file_digest(file)
    return digest_json(digests)
