"""Formats of documents, to write and to read; without spaCy, for the training."""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol, runtime_checkable

from ..errors import SapbertError
from ..io.plugins import load_object, load_plugins, require
from ..io.tables.spreadsheets import ENDINGS as EXCEL
from ..io.writing import write_atomically, write_folder_atomically
from .gold import GoldDocument

if TYPE_CHECKING:
    from spacy.tokens import Doc

    from .entities import AttributeNames, LinkedDoc, NamedDoc

GoldReader = Callable[..., Iterator[GoldDocument]]
RowReader = Callable[..., Iterator[tuple[int, Mapping[str, Any]]]]
PLUGINS = "spacy_sapbert_formats"  # entry points of other packages: each a `Format`


@runtime_checkable
class Writer(Protocol):
    """The function of a format that writes documents."""

    def __call__(
        self,
        docs: "Iterable[LinkedDoc]",
        target: Any,
        *,
        include_text: bool = True,
        **options: Any,
    ) -> None:
        """Write linked documents one by one, in bounded memory.

        Args:
            docs: From `entities.describe_docs`; may be changed.
            target: A file open for writing; of a format with `folder` the path of an
                empty folder.
            include_text: Write the texts of the documents and mentions. A format that
                needs them raises a `SapbertError`.
            options: Those that the format names in `takes`.
        """


@dataclass(frozen=True)
class Format:
    """A format of documents. Everything about it is declared here.

    A function is given itself, or as "module:function" of this package.

    Args:
        purpose: Whom the output is for, and what it has.
        write: A `Writer`; None = the format is only read.
        suffixes: Endings of output files.
        part_suffix: Ending of parts; empty = the first of `suffixes`.
        read: Yields `GoldDocument`s of a path, with `longest` and `on_error`; after the
            error of one, maybe its id with the error.
        rows: Yields the rows of a table, with `columns`, `on_error` and `encoding`.
        endings: Endings of input files; others are detected by their content.
        content: What the first bytes of a file match, as a pattern; of formats with the
            same ending, the first is that of files that match none.
        annotated: Whether documents may have mentions.
        ids: Where a mention has the id of its concept, in words; "" = it cannot.
        streamed: Whether it can be read from the standard input.
        library: A module that it needs, and what pip installs.
        folder: Each document is a `.txt` file with annotations in a file beside it,
            with this ending.
        media: Media type, if the service offers decisions of reviewers in it.
        takes: What the writer takes besides the documents: "keep", columns of the input
            to repeat; "kb_digest"; "system", what linked; "first_id", of a row.
        errors: Whether the output says why a document could not be linked; see
            `LinkedDoc.error`.
        candidates, returned, without_text: How far candidates are written, what can be
            read back, and what is left out without the text, in words.
    """

    purpose: str = ""
    write: Writer | str | None = None
    suffixes: tuple[str, ...] = ()
    part_suffix: str = ""
    read: GoldReader | str | None = None
    rows: RowReader | str | None = None
    endings: tuple[str, ...] = ()
    content: str = ""
    annotated: bool = True
    ids: str = "a column"
    streamed: bool = False
    library: tuple[str, str] | None = None
    folder: str = ""
    media: str = ""
    takes: tuple[str, ...] = ()
    errors: bool = False
    candidates: str = "no"
    returned: str = "–"
    without_text: str = "not possible"


ANNOTATIONS = "text, offsets, labels, ids"
FORMATS: dict[str, Format] = {
    "text": Format(endings=(".txt",), annotated=False, streamed=True),
    "jsonl": Format(
        "programs: one document a line",
        write="jsonl:write_docs",
        media="application/jsonl",
        suffixes=(".jsonl",),
        read="jsonl:read_gold",
        rows="inputs.rows:read_json_rows",
        endings=(".jsonl",),
        ids="`cui`, null for none, or as another tool has it",
        streamed=True,
        takes=("keep",),
        errors=True,
        candidates="yes",
        returned="everything but candidates, score, note and tie",
        without_text="`text` is left out everywhere",
    ),
    "csv": Format(
        "spreadsheets: one mention a row",
        read="mention_tables:read_table",
        write="csv:write_docs",
        media="text/csv; charset=utf-8",
        errors=True,
        suffixes=(".csv",),
        rows="inputs.rows:read_csv_rows",
        endings=(".csv", ".tsv"),
        annotated=False,
        streamed=True,
        takes=("keep",),
        candidates="yes, as JSON",
        without_text="no column `text`",
    ),
    "excel": Format(
        read="mention_tables:read_table",
        rows="inputs.rows:read_excel_rows",
        endings=EXCEL,
        annotated=False,
        library=("python_calamine", "python-calamine"),
    ),
    "parquet": Format(
        "data frames, databases: one mention a row",
        write="parquet:write_docs",
        suffixes=(".parquet",),
        read="mention_tables:read_table",
        rows="inputs.parquet_rows:read_parquet_rows",
        endings=(".parquet",),
        content=r"PAR1",
        annotated=False,
        library=("pyarrow", "pyarrow"),
        takes=("keep", "kb_digest"),
        errors=True,
        candidates="yes, nested",
        without_text="no column `text`",
    ),
    "omop": Format(
        "the table `note_nlp` of OMOP: one mention a row, CSV",
        write="omop:write_docs",
        part_suffix=".csv",
        takes=("system", "first_id"),
    ),
    "spacy": Format(
        read="gold_docs:read_gold", endings=(".spacy",), ids="`kb_id_`, or NIL"
    ),
    "pubtator": Format(
        "annotation tools, corpora: title and abstract",
        write="pubtator:write_docs",
        media="text/plain; charset=utf-8",
        suffixes=(".pubtator",),
        read="pubtator:read_gold",
        endings=(".pubtator", ".txt"),
        content=r"\s*+([^|\t\r\n]++)\|t\|[^\n]*+\s*+(?:\1(?![^|\t\n])|(?![^|\t\n]))",
        ids="the last column, `-` for none",
        streamed=True,
        returned="offsets, labels, ids",
    ),
    "brat": Format(
        "the annotation tool brat: `.txt` and `.ann`",
        write="brat:write_docs",
        media="application/zip",
        read="brat:read_gold",
        endings=(".ann",),
        ids="`N1`, `Reference T1 SOURCE:ID`; without these, whole notes",
        folder=".ann",
        errors=True,
        candidates="no; score, types, codes, note and tie as a note",
        returned=ANNOTATIONS,
    ),
    "biocxml": Format(
        "BioC tools: one collection",
        write="bioc:write_xml",
        media="application/xml",
        errors=True,
        suffixes=(".xml",),
        read="bioc:read_xml",
        endings=(".xml",),
        content=r"\s*<.*<collection",
        ids="the infon `identifier`, or one with the name of a vocabulary",
        candidates="yes, as JSON",
        returned=ANNOTATIONS,
        without_text="texts are empty",
    ),
    "biocjson": Format(
        "BioC tools: one collection",
        write="bioc:write_json",
        media="application/json",
        errors=True,
        suffixes=(".json",),
        read="bioc:read_json",
        endings=(".json",),
        content=r'\s*\{(?!\s*"projects").*"(documents|passages)"\s*:\s*\[',
        ids="the infon `identifier`, or one with the name of a vocabulary",
        candidates="yes, as JSON",
        returned=ANNOTATIONS,
        without_text="texts are empty",
    ),
    "bionlp": Format(
        read="brat:read_bionlp",
        endings=(".a1",),
        folder=".a1",
        ids="`N1` in `.a2`: `Reference T1 ID`, or `SOURCE Annotation:T1 Referent:ID`",
    ),
    "prodigy": Format(
        read="jsonl:read_gold",
        endings=(".jsonl",),
        ids="`kb_id` of a span, or the option that was chosen",
    ),
    "labelstudio": Format(
        "the annotation tool Label Studio: predictions, to accept or correct",
        write="tools.writers:write_label_studio",
        part_suffix=".json",
        read="tools.exports:read_label_studio",
        endings=(".json", ".jsonl"),
        content=r'\s*+(?:\[\s*+)?\{(?!\s*"projects")(?=.*"(?:data|result)"\s*:)'
        r'(?=.*"(?:annotations|completions|predictions)"\s*:\s*\[)|'
        r'\s*\[\s*\{.*"labels"\s*:\s*\[\s*"',
        ids="a text, choice, taxonomy or note of a region",
        candidates="no; id and probability of a region",
    ),
    "medcattrainer": Format(
        read="tools.exports:read_medcat",
        endings=(".json",),
        content=r'\s*\{\s*"projects"\s*:\s*\[',
        ids="`cui`",
    ),
    "pubannotation": Format(
        read="tools.exports:read_pubannotation",
        endings=(".json", ".jsonl"),
        content=r'\s*[\[{].*"(?:(?:denotations|tracks)"\s*:\s*\[|sourcedb"\s*:)',
        ids="an attribute, or `obj`, that has the form of an id",
    ),
    "inception": Format(
        read="tools.inception:read_gold",
        endings=(".xmi", ".json", ".tsv"),
        content=r"\s*(?:<\?xml[^>]*>\s*)?<xmi:XMI\b|#FORMAT=WebAnno TSV 3|"
        r'\s*\{\s*"%[A-Z]',
        ids="the feature `identifier`, or another with an address",
    ),
    "doccano": Format(
        "the annotation tool doccano: one document a line",
        write="tools.writers:write_doccano",
        part_suffix=".jsonl",
        read="jsonl:read_gold",
        endings=(".jsonl", ".json"),
        content=r'\s*\[\s*\{.*"(?:text|data)"\s*:',
        ids="",
        candidates="no; id, name and probability as `links`, which nobody sees there",
        returned="text, offsets, labels",
    ),
    "tsv": Format(read="mention_tables:read_table"),
    "sssom": Format(read="mention_tables:read_sssom"),
    "html": Format(
        "people: one [page](#html) that loads nothing from outside",
        write="page.write:write_docs",
        suffixes=(".html", ".htm"),
        errors=True,
        candidates="yes",
    ),
    "table": Format(
        "people: a table for each document",
        write="table:write_docs",
        suffixes=(".txt",),
        errors=True,
        without_text="places instead of mentions",
    ),
}


def list_formats(what: str = "") -> dict[str, Format]:
    """Return the formats, also of other packages, that have a field, e.g. "write"."""
    every = {**FORMATS, **load_plugins(PLUGINS, Format, (*FORMATS,))}
    return {
        name: format
        for name, format in every.items()
        if not what or getattr(format, what)
    }


def load_function(name: str, what: str) -> Any:
    """Import the function of a format that is "write", "read" or "rows"."""
    formats = list_formats(what)
    if name not in formats:
        verb = "written" if what == "write" else "read"
        raise SapbertError(
            "E110",
            f"Expected a format that can be {verb}, one of {sorted(formats)}, but got "
            f"{name!r}. Correct `--format`.",
        )
    check_library(name)
    return load_object(getattr(formats[name], what), __package__)


def check_library(name: str) -> None:
    needed = list_formats()[name].library
    if needed is not None:
        require(*needed)


def load_writer(name: str) -> Writer:
    writer: Writer = load_function(name, "write")
    return writer


def load_reader(name: str) -> GoldReader:
    reader: GoldReader = load_function(name, "read")
    return reader


def file_ending(path: Path) -> str:
    """Return the ending of a file name in lower case, without `.gz`."""
    return Path(path.stem if path.suffix == ".gz" else path.name).suffix.lower()


def list_suffixes() -> dict[str, str]:
    """Return the format of each ending of output files, of several the first."""
    found: dict[str, str] = {}
    for name, format in list_formats("write").items():
        for suffix in format.suffixes:
            found.setdefault(suffix, name)
    return found


def guess_format(path: Path) -> str:
    """Return the format of an output by its ending."""
    known = list_suffixes()
    if (suffix := file_ending(path)) in known:
        return known[suffix]
    formats = [*list_formats("write")]
    raise SapbertError(
        "E110",
        f"Expected a file that ends with one of {sorted(known)}, but got {path}. "
        f"Rename it, or choose one of {formats} with `--format`.",
    )


def check_folder(path: Path, suffix: str) -> None:
    """Check that a folder may be replaced: it has only files of a format and `.txt`."""
    found = "a file" if path.exists() and not path.is_dir() else ""
    for file in path.rglob("*"):
        partner = file.with_suffix(".txt" if file.suffix == suffix else suffix)
        if not file.is_dir() and not (
            file.suffix in (".txt", suffix) and partner.is_file()
        ):
            found = "one with others"
    if found:
        raise SapbertError(
            "E522",
            f"Expected {path} not to exist, or a folder with only `.txt` and `.ann` "
            f"files, because its content is replaced, but it is {found}. Pass another "
            "path.",
        )


@contextmanager
def open_target(path: Path | None, format: str) -> Iterator[IO[bytes] | Path]:
    """Open the target of a `Writer`, which is renamed at the end."""
    if folder_ending := list_formats()[format].folder:
        if path is None:
            raise SapbertError(
                "E110",
                f"Expected a folder as `--output`, because {format} writes files for "
                "each document, but got none. Pass one.",
            )
        check_folder(path, folder_ending)
        with write_folder_atomically(path, None) as folder:
            yield folder
    elif path is not None:
        with write_atomically(path) as file:
            yield file
    else:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()


def write_linked(
    docs: "Iterable[NamedDoc | Doc]",
    path: str | Path,
    *,
    format: str | None = None,
    spans_key: str | None = None,
    names: "AttributeNames | None" = None,
    **options: Any,
) -> None:
    """Write linked documents to a file or folder, all or nothing.

    Args:
        docs: Pairs of id and document; the id of a document alone is its number.
        path: The file or folder; it is replaced.
        format: A format that is written; None = by the ending of the path.
        spans_key: A span group; None = the entities.
        names: The attributes of the linker, if they have other names.
        options: Options of the `Writer`.

    Examples:
        >>> nlp = spacy.blank("en")
        >>> linker = nlp.add_pipe("sapbert_linker", config={"kb": "models/sample/kb"})
        >>> write_linked([nlp("Fever.")], "linked.jsonl")
    """
    from .entities import ATTRIBUTE_NAMES, describe_docs

    path = Path(path)
    format = format or guess_format(path)
    writer = load_writer(format)
    named = (
        doc if isinstance(doc, tuple) else (str(number), doc)
        for number, doc in enumerate(docs, 1)
    )
    linked = describe_docs(named, spans_key=spans_key, names=names or ATTRIBUTE_NAMES)
    with open_target(path, format) as target:
        writer(linked, target, **options)
