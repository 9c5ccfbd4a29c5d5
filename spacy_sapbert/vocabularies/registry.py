"""Readers of vocabularies by format.

To add a format, write a module with a reader and add it to `READERS`.
"""

import inspect
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from ..errors import Errors, SapbertError
from ..system.json_lines import load_line
from ..system.reading import read_blocks, read_lines
from .concepts import Concept
from .merge import unite_vocabularies
from .readers.sssom import read_mappings, read_sssom
from .report import Report, count_concepts
from .retired import add_retired_ids
from .xrefs import Other, add_mapped_names

# of a path, a report and options; yields concepts sorted by id
Reader = Callable[..., Iterator[Concept]]

# options that choose names, so they apply to the vocabularies of `--xrefs` too
XREF_OPTIONS = ("languages", "scopes", "suppressed")

MAPPINGS = "sssom"  # a format of mappings, whose ids need no names

# format: module and function, and patterns of file names
READERS: dict[str, tuple[str, Sequence[str]]] = {
    "rxnorm": (
        "readers.rxnorm:read_rxnorm",
        ("RXNCONSO.RRF*", "rrf/RXNCONSO.RRF*"),
    ),
    "rrf": (
        "rrf.release:read_rrf",
        ("MRCONSO.RRF*", "META/MRCONSO.RRF*", "*.RRF", "*.RRF.gz"),
    ),
    "omop": ("readers.omop:read_omop", ("CONCEPT.csv", "CONCEPT.csv.gz")),
    "snomed": (
        "readers.snomed:read_snomed",
        [
            f"{folder}sct2_Concept_*Snapshot*.txt{ending}"
            for folder in ("", "Terminology/", "Snapshot/Terminology/")
            for ending in ("", ".gz")
        ],
    ),
    "loinc": (
        "readers.loinc:read_loinc",
        ("Loinc.csv", "Loinc.csv.gz", "LoincTable/Loinc.csv"),
    ),
    "icd11": (
        "readers.icd11:read_icd11",
        ("SimpleTabulation*.txt", "SimpleTabulation*.txt.gz", "SimpleTabulation*.xlsx"),
    ),
    "rdf": (
        "ontologies.rdf:read_rdf",
        [
            f"*.{name}{end}"
            for name in ("owl", "rdf", "ttl", "nt")
            for end in ("", ".gz")
        ],
    ),
    "obo": ("ontologies.obo:read_obo", ("*.obo", "*.obo.gz")),
    "obographs": ("ontologies.obographs:read_obographs", ("*.json", "*.json.gz")),
    "biosyn": ("readers.biosyn:read_biosyn", ("*.txt", "*.txt.gz")),
    "jsonl": ("readers.jsonl:read_jsonl", ("*.jsonl", "*.jsonl.gz")),
    "phecode": ("readers.phecode:read_phecode", ("*phecode*_labels.csv*",)),
    "maps": ("readers.maps:read_maps", ("*_names.tsv", "*_names.tsv.gz")),
    "icd10cm": ("readers.icd10cm:read_icd10cm", ("*icd10cm*.xml", "*icd10cm*.xml.gz")),
    # XML with another root element than MeSH
    "claml": (
        "readers.claml:read_claml",
        ("*[Cc]la[Mm][Ll]*.xml", "*[Cc]la[Mm][Ll]*.xml.gz"),
    ),
    # any other XML
    "mesh": (
        "readers.mesh:read_mesh",
        ("desc[0-9]*.gz", "supp[0-9]*.gz", "*.xml", "*.xml.gz"),
    ),
    "sssom": (
        "readers.sssom:read_sssom",
        [f"*[._-]sssom.{end}" for end in ("tsv", "tsv.gz", "csv", "csv.gz")],
    ),
    # any other table
    "table": (
        "tables.table:read_table",
        ("*.csv", "*.csv.gz", "*.tsv", "*.tsv.gz", "*.xlsx", "*.xlsm"),
    ),
    # its file names are those of jsonl, so the first line tells them apart
    "scispacy": ("readers.jsonl:read_scispacy", ()),
}


# a file of a release of SNOMED CT that does not stand for the release
RF2 = re.compile(r"(?:sct2|der2)_(?!Concept_\w*Snapshot)")


def guess_format(path: Path) -> str:
    """Return the format of a file or release folder by its name.

    For `.jsonl` the first line decides, and for XML the first element.

    Raises:
        SapbertError: If it does not exist, or no format has such names.
    """
    if RF2.match(path.name):
        raise SapbertError(Errors.E125.format(path=path))
    for name, (_, patterns) in READERS.items():
        if path.is_dir():
            # a release folder: the names of its files
            own = (pattern for pattern in patterns if not pattern.startswith("*"))
            found = any(any(path.glob(pattern)) for pattern in own)
        else:
            found = any(path.match(pattern) for pattern in patterns)
        if found:
            if name == "jsonl" and is_scispacy(path):
                return "scispacy"
            return "claml" if name == "mesh" and is_claml(path) else name
    if not path.exists():
        raise SapbertError(Errors.E001.format(path=path))
    raise SapbertError(Errors.E110.format(path=path, formats=", ".join(READERS)))


def is_scispacy(path: Path) -> bool:
    """Return whether the first line of a JSONL file is an entity of scispaCy."""
    if not path.is_file():
        return False
    for _, line in read_lines(path):
        if line.strip():
            with suppress(ValueError):
                data = load_line(line)
                return isinstance(data, dict) and "concept_id" in data
            return False
    return False


def is_claml(path: Path) -> bool:
    """Return whether an XML file begins with the root element of ClaML."""
    with suppress(EOFError, SapbertError, zlib.error):
        return b"<ClaML" in next(read_blocks([path]), b"")
    return False


def load_reader(format: str) -> Reader:
    """Import the reader of a format."""
    if format not in READERS:
        raise SapbertError(
            Errors.E111.format(formats=", ".join(READERS), format=format)
        )
    module, _, name = READERS[format][0].partition(":")
    reader: Reader = getattr(import_module(f".{module}", __package__), name)
    return reader


def read_vocabulary(
    path: Path,
    format: str | None = None,
    *,
    on_error: str = "fail",
    report: Report | None = None,
    **options: Any,
) -> Iterator[Concept]:
    """Read a vocabulary of any format.

    Args:
        path: A file, or the folder of a release.
        format: A key of `READERS`; None = by the name of the file.
        on_error: "fail", or "skip" to count invalid rows and continue.

    Returns:
        The concepts.

    Raises:
        SapbertError: See `read_vocabularies`.
    """
    reports = None if report is None else [report]
    return read_vocabularies(
        [path], format, on_error=on_error, reports=reports, **options
    )


def read_vocabularies(
    paths: Sequence[Path],
    format: str | None = None,
    *,
    on_error: str = "fail",
    xrefs: Sequence[Path] = (),
    add_unmapped: bool = False,
    retired: Sequence[Path] = (),
    reports: Sequence[Report] | None = None,
    **options: Any,
) -> Iterator[Concept]:
    """Read vocabularies as one, sorted by id.

    Args:
        paths: Files or release folders, the one whose names and definitions are
            preferred first.
        format: Of all of them; None = by the names of the files.
        on_error: "fail", or "skip" to count invalid rows and continue.
        xrefs: Vocabularies whose names are added to the concepts that they are mapped
            to; see `add_mapped_names`.
        add_unmapped: The concepts of `xrefs` that are mapped to no concept, or to
            several, are concepts too.
        retired: Files of retired ids; see `add_retired_ids`.
        reports: One for each of `paths`, `xrefs` and `retired`, filled while reading.
        options: Options of the readers; each reader gets its own.

    Returns:
        Each concept once.

    Raises:
        SapbertError: If a format is unknown, or none has such an option; later, with
            file and line, at the first invalid row, or if no concept is left.
    """
    if on_error not in ("fail", "skip"):
        raise SapbertError(Errors.E112.format(value=on_error))
    formats = [guess_format(path) if format is None else format for path in paths]
    known = [inspect.signature(load_reader(name)).parameters for name in formats]
    for option in options:
        if not any(option in names for names in known):
            raise SapbertError(
                Errors.E113.format(
                    formats=", ".join(dict.fromkeys(formats)),
                    option=option.replace("_", "-"),
                )
            )
    files = [*paths, *xrefs, *retired]
    reports = [Report() for _ in files] if reports is None else reports
    formats += [guess_format(path) for path in xrefs] + ["retired ids"] * len(retired)
    for path, name, report in zip(files, formats, reports, strict=True):
        report.path, report.format, report.on_error = str(path), name, on_error
    inputs = [
        open_vocabulary(path, report, options)
        for path, report in zip(paths, reports, strict=False)
    ]
    concepts = inputs[0] if len(inputs) == 1 else unite_vocabularies(inputs)
    if retired:
        concepts = add_retired_ids(concepts, retired, reports[-len(retired) :])
    if xrefs:
        chosen = {key: options[key] for key in XREF_OPTIONS if key in options}
        xref_options = {**chosen, "cui_pattern": ".+"}  # ids of any vocabulary
        others = []
        for path, report in zip(xrefs, reports[len(paths) :], strict=False):
            if report.format == MAPPINGS:  # maybe without a name
                uncounted = Report(on_error=on_error)
                named = read_sssom(path, report)
                others.append(
                    Other(path, named, report, read_mappings(path, uncounted))
                )
            else:
                named = open_vocabulary(path, report, xref_options)
                others.append(Other(path, named, report))
        concepts = add_mapped_names(concepts, others, add_unmapped=add_unmapped)
    return concepts


def open_vocabulary(
    path: Path, report: Report, options: Mapping[str, Any]
) -> Iterator[Concept]:
    """Return the counted concepts of one file.

    Args:
        options: Of which the reader gets its own.
    """
    reader = load_reader(report.format)
    known = inspect.signature(reader).parameters
    chosen = {key: value for key, value in options.items() if key in known}
    return count_concepts(reader(path, report, **chosen), report)
