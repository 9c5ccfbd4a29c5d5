"""Readers of vocabularies by format: each is declared once, in `READERS`."""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from collections.abc import Mapping as Map
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import (
    SapbertError,
    missing_file,
    missing_in_folder,
    unknown_on_error,
)
from ..io.plugins import load_object, load_plugins
from ..io.reading import read_start
from ..io.tables.spreadsheets import ENDINGS as EXCEL
from ..io.unpacking import Unpacked
from .concepts import Concept, unite_vocabularies
from .facts import KEEP, Fact, build_concepts
from .locate import find_best, has_name, list_some
from .options import ReadOptions
from .report import Report, count_concepts
from .sssom import Mapping
from .united import Other, add_from_files

FactReader = Callable[[Path, Report, ReadOptions], Iterator[Fact]]
ConceptReader = Callable[[Path, Report, ReadOptions], Iterator[Concept]]
MappingReader = Callable[[Path, Report, ReadOptions], Iterator[Mapping]]
PLUGINS = "spacy_sapbert_readers"  # entry points of other packages: each a `Reader`

# options that choose names, so they apply to the vocabularies of `--xrefs` too
XREF_OPTIONS = ("languages", "scopes", "suppressed", "least_confidence")
# Names that files of several formats have
SHARED = ("*.xml", "*.json", "*.jsonl")


@dataclass(frozen=True)
class Reader:
    """A format of vocabularies. Everything about it is declared here.

    Args:
        content: What its files are, for the docs.
        read: The function, or "module:function" of this package. It yields facts of
            concepts in any order, and may stream: a database sorts them. It counts what
            it drops in the report, and passes each invalid record to `report.bad_line`
            or `report.skip`. It raises a `SapbertError` with file and line if the file
            is missing or damaged.
        patterns: Of the names of its files, in any case, without `.gz`. In a folder or
            a `.zip` the file with the first of them is read.
        takes: The fields of `ReadOptions` that it uses; `type` is applied to what it
            yields.
        gate: Rule that counts concepts without the fact KEEP; empty = all are kept.
        mark: What its files begin with, if other formats have the same names.
        is_sorted: It yields concepts, sorted by id, instead of facts.
        is_folder: Its files in one folder are one release, of which it gets any.
        mappings: The function, or "module:function" of this package, that yields the
            mappings of a file, whose ids need no names; empty = it has none.
    """

    content: str
    read: FactReader | ConceptReader | str
    patterns: tuple[str, ...]
    takes: tuple[str, ...] = ()
    gate: str = ""
    mark: re.Pattern[bytes] | None = None
    is_sorted: bool = False
    is_folder: bool = False
    mappings: MappingReader | str = ""

    def rank(self, path: Path) -> int | None:
        """Return which of the patterns a file has; None if it has another format."""
        for number, pattern in enumerate(self.patterns):
            if has_name(path, pattern) and (
                self.mark is None
                or pattern not in SHARED
                or self.mark.search(read_start(path))
            ):
                return number
        return None


TERM_TYPES = ("term_types", "exclude_term_types")
ONTOLOGY = (
    *("ids", "xref_prefix", "multi_xref", "scopes", "obsolete", "type"),
    "cui_pattern",
)
TABLE_OPTIONS = ("columns", "separator", "delimiter", "comment", "encoding", "type")
# The first that has the name of a file reads it.
READERS: dict[str, Reader] = {
    "rxnorm": Reader(
        "a folder with `RXNCONSO.RRF`: [RxNorm](#rxnorm)'s own Rich Release Format",
        "rrf.release:read_rrf",
        ("RXNCONSO.RRF*",),
        ("sources", *TERM_TYPES, "suppressed", "trade_names", "ingredient_names"),
        is_sorted=True,
        is_folder=True,
    ),
    "rrf": Reader(
        "a folder with `MRCONSO.RRF`: UMLS's Rich Release Format, "
        "fields that end with a bar, lines sorted by id",
        "rrf.release:read_rrf",
        ("MRCONSO.RRF*", "*.RRF"),
        (
            *("languages", "sources", "source_rank", "types", *TERM_TYPES),
            *("suppressed", "trade_names", "ingredient_names", "cui_pattern"),
        ),
        is_sorted=True,
        is_folder=True,
    ),
    "omop": Reader(
        "a folder with `CONCEPT.csv`: [OMOP](#omop), the export of Athena",
        "readers.omop:read_omop",
        ("CONCEPT.csv",),
        ("sources", "types", "languages", "mapped_names"),
        gate="names of other concepts",
        is_folder=True,
    ),
    "snomed": Reader(
        "a folder with `Snapshot/Terminology/`: [SNOMED CT](#snomed-ct) in Release "
        "Format 2",
        "readers.snomed:read_snomed",
        ("sct2_Concept_*Snapshot*.txt",),
        ("languages",),
        gate="inactive or unknown concepts",
        is_folder=True,
    ),
    "loinc": Reader(
        "a folder with `LoincTable/`: [LOINC](#loinc)",
        "readers.loinc:read_loinc",
        ("Loinc.csv",),
        ("languages", "obsolete"),
        gate="names of concepts that are left out",
        is_folder=True,
    ),
    "meddra": Reader(
        "a folder with `pt.asc`: MedDRA",
        "tables.table:read_meddra",
        ("pt.asc",),
        ("type", "encoding"),
        is_folder=True,
    ),
    "icd11": Reader(
        "[ICD-11](#claml-and-icd-11): the simple tabulation of the WHO, or the "
        "linearization",
        "readers.icd11:read_icd11",
        (
            *("SimpleTabulation*.txt", "SimpleTabulation*.xlsx"),
            *("LinearizationMiniOutput*.txt", "LinearizationMiniOutput*.xlsx"),
        ),
        ("type",),
    ),
    "obo": Reader(
        "stanzas `[Term]` with `id:`, `name:`, `synonym:`",
        "ontologies.obo:read_obo",
        ("*.obo",),
        ONTOLOGY,
    ),
    "rdf": Reader(
        "[SKOS and OWL](#ontologies-skos-and-owl)",
        "ontologies.rdf:read_rdf",
        (
            *("*.owl", "*.rdf", "*.ttl", "*.nt", "*.jsonld", "*.xml"),
            *("*.ofn", "*.omn", "*.owx"),  # other syntaxes, of which the error says so
        ),
        ("languages", "synonym_property", *ONTOLOGY),
        mark=re.compile(rb"<(?:rdf:)?RDF\b"),
    ),
    "fhir": Reader(
        "[FHIR](#fhir) in JSON: `CodeSystem`, `ValueSet`, `ConceptMap`, `Bundle`",
        "readers.fhir:read_fhir",
        ("*.json", "*.xml"),
        ("languages", "obsolete", "type"),
        mark=re.compile(rb"\"resourceType\"\s*:|<\w+\s[^<>]*\"http://hl7.org/fhir\""),
        mappings="readers.fhir:read_fhir_mappings",
    ),
    "scispacy": Reader(
        "a knowledge base of scispaCy, a line an entity or one list: "
        '`{"concept_id": "C0015967", "canonical_name": "Fever"}`',
        "readers.jsonl:read_scispacy",
        ("*.jsonl", "*.json"),
        mark=re.compile(
            rb'\A(?:\xef\xbb\xbf)?\s*\[?\s*\{[^{}]{0,1000}"concept_id"\s*:'
        ),
    ),
    "obographs": Reader(
        'OBO Graphs: `{"graphs": [{"nodes": […], "edges": […]}]}`',
        "ontologies.obographs:read_obographs",
        ("*.json",),
        ONTOLOGY,
    ),
    "icd10cm": Reader(
        "the tabular list of ICD-10-CM: `<diag><name>A00</name><desc>Cholera</desc>…`",
        "readers.icd10cm:read_icd10cm",
        ("*icd10cm?tabular*.xml", "*.xml"),
        ("type",),
        mark=re.compile(rb"<ICD10CM\.tabular"),
    ),
    "icd10cm_list": Reader(
        "the codes of ICD-10-CM or ICD-10-PCS: `00001 A00 0 Cholera … Cholera`, or "
        "`A000 Cholera due to …`",
        "readers.icd10cm:read_code_list",
        (
            *("icd10cm?order*.txt", "icd10cm?codes*.txt"),
            *("icd10pcs?order*.txt", "icd10pcs?codes*.txt"),
        ),
        ("type",),
    ),
    "jsonl": Reader(
        "[your own vocabulary](#your-own-vocabulary): "
        '`{"cui": "X:1", "name": "Fever", "aliases": ["pyrexia"]}`',
        "readers.jsonl:read_jsonl",
        ("*.jsonl",),
    ),
    "claml": Reader(
        "[ClaML](#claml-and-icd-11), with the element `<ClaML>`: ICD-10 of the WHO, "
        "ICD-10-GM, OPS, ICF and others",
        "readers.claml:read_claml",
        ("*.xml",),
        ("type",),
        mark=re.compile(rb"<ClaML"),
    ),
    "mesh": Reader(
        "MeSH in the XML of the NLM: `<DescriptorRecord>` or `<SupplementalRecord>`",
        "readers.mesh:read_mesh",
        (
            *("desc[0-9]*.xml", "desc[0-9]*.gz", "supp[0-9]*.xml", "supp[0-9]*.gz"),
            "*.xml",
        ),
        ("scopes",),
        mark=re.compile(rb"<(?:Descriptor|Supplemental)RecordSet"),
    ),
    "sssom": Reader(
        "[mappings](#several-vocabularies)",
        "readers.sssom:read_sssom",
        ("*[._-]sssom.tsv", "*[._-]sssom.csv", "sssom.tsv", "sssom.csv"),
        ("least_confidence",),
        mappings="readers.sssom:list_mappings",
    ),
    "table": Reader(
        "[known tables](#known-tables), and any other of "
        "[your own](#your-own-vocabulary)",
        "tables.table:read_table",
        (
            *("*hgnc_complete_set*.txt", "*thesaurus*.txt", "*.bsv", "*.asc"),
            *("*.csv", "*.tsv", *(f"*{ending}" for ending in EXCEL)),
        ),
        TABLE_OPTIONS,
    ),
}
# A file of a release of SNOMED CT that does not stand for the release
RF2 = re.compile(r"(?:sct2|der2)_(?!Concept_\w*Snapshot)", re.IGNORECASE)
RETIRED = {"retired ids": Reader("retired ids", "", ("*.tsv", "*.csv", "*.txt"))}


def list_readers() -> dict[str, Reader]:
    """Return the readers by format, with those of other packages, which come first."""
    return {**load_plugins(PLUGINS, Reader, (*READERS,)), **READERS}


def list_takers(option: str) -> list[str]:
    """Return the formats of this package that take an option."""
    return [name for name, reader in READERS.items() if option in reader.takes]


class Found(NamedTuple):
    """The file that is read of a path, its format, and others that might be meant."""

    path: Path
    format: str
    others: list[Path]


def guess_format(path: Path) -> str:
    """Return the format of a file, a folder or a `.zip`, by names and first bytes."""
    unpacked = Unpacked()
    with unpacked.name_errors():
        return find_file(path, list_readers(), unpacked).format


def find_file(path: Path, readers: Map[str, Reader], unpacked: Unpacked) -> Found:
    """Find the file that is read of a path.

    Of a folder or `.zip` it is the one whose format is the first of `readers`, then the
    one whose name has the first pattern of this, then the one nearest to the top.

    Args:
        readers: One reads a file whatever its name.
        unpacked: Gets the folder of a `.zip`.
    """
    ranks: dict[Path, tuple[int, int]] = {}
    rf2: list[Path] = []

    def rank(file: Path) -> tuple[int, int] | None:
        if "snomed" in readers and RF2.match(file.name):
            rf2.append(file)
            return None
        for number, reader in enumerate(readers.values()):
            if (place := reader.rank(file)) is not None:
                return ranks.setdefault(file, (number, place))
        return None

    is_known = len(readers) == 1
    files = find_best(path, rank, unpacked, is_known=is_known)
    chosen = rank(files[0]) if files else None
    if chosen is None and rf2:
        raise SapbertError(
            "E108",
            f"Expected the snapshot of a release of SNOMED CT, but got {path} with "
            f"{rf2[0].name}. Pass the folder of the release, or its `Snapshot` "
            "folder; Full and Delta also have states of other days.",
        )
    name = [*readers][chosen[0] if chosen else 0]
    if not files and is_known:
        raise missing_in_folder(file=" or ".join(readers[name].patterns), folder=path)
    if chosen is None and not is_known:
        if files and not files[0].exists():
            raise missing_file(path=path)
        raise SapbertError(
            "E110",
            f"Expected a file name of a known format, but got {path}. Pass `--format` "
            f"with one of: {', '.join(readers)}.",
        )
    is_folder = readers[name].is_folder
    if len({file.parent if is_folder else file for file in files}) > 1:
        raise SapbertError(
            "E110",
            f"Expected one file to read in {path}, but got several: "
            f"{list_some(files)}. Pass one of them.",
        )
    first, *_ = files
    others = [
        file
        for file, (number, _) in ranks.items()
        if chosen and number == chosen[0] and file != first
        # those of its folder belong to a release
        if not is_folder or file.parent != first.parent
    ]
    return Found(first, name, others)


def read_vocabulary(
    path: str | Path,
    format: str | None = None,
    *,
    on_error: str = "fail",
    report: Report | None = None,
    **options: Any,
) -> Iterator[Concept]:
    """Read a vocabulary of any format.

    https://spacy-sapbert.github.io/spacy-sapbert/vocabularies.html has the formats.

    Args:
        path: A file, or a folder or a `.zip` with a release, or a file in a `.zip`.
        format: A key of `READERS`; None = by the name of the file.
        on_error: "fail", or "skip" to count invalid rows and continue.
        report: Filled with counts while the vocabulary is read.
        options: Fields of `ReadOptions`, e.g. `languages`.

    Yields:
        Each concept.

    Raises:
        SapbertError: If the format is unknown or has no such option; later, with file
            and line, at the first invalid row; at the end, if there was no concept.

    Examples:
        >>> concepts = read_vocabulary("assets/sample", languages=["en"])
        >>> any("Heart attack" in concept.aliases for concept in concepts)
        True
    """
    reports = None if report is None else [report]
    return read_vocabularies(
        [Path(path)], format, on_error=on_error, reports=reports, **options
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
    where_known: Collection[str] = (),
    **options: Any,
) -> Iterator[Concept]:
    """Read vocabularies as one, sorted by id.

    Args:
        paths: See `read_vocabulary`; the one whose names and definitions are preferred
            first.
        format: Of all of them; None = by the names of the files.
        on_error: "fail", or "skip" to count invalid rows and continue.
        xrefs: Vocabularies whose names are added to the concepts that they are mapped
            to; see `add_mapped_names`.
        add_unmapped: The concepts of `xrefs` that are mapped to no concept, or to
            several, are concepts too.
        retired: Files of retired ids; see `add_retired_ids`.
        reports: One for each of `paths`, `xrefs` and `retired`, filled while reading.
        where_known: Options that are left out if no format of `paths` takes them; of
            others, this is an error.
        options: Fields of `ReadOptions`; each reader gets those that it takes.

    Returns:
        Each concept once.

    Raises:
        SapbertError: If a format is unknown, or none takes an option; later, with file
            and line, at the first invalid row, or if no concept is left.
    """
    if on_error not in ("fail", "skip"):
        raise unknown_on_error(value=on_error)
    files = [*paths, *xrefs, *retired]
    readers = list_readers()
    asked = readers if format is None else {format: find_reader(format)}
    wanted = [asked] * len(paths) + [readers] * len(xrefs) + [RETIRED] * len(retired)
    unpacked = Unpacked()
    with unpacked.name_errors():
        found = [*map(find_file, files, wanted, [unpacked] * len(files))]
    others = found[len(paths) : len(files) - len(retired)]  # of `xrefs`
    formats = [each.format for each in found[: len(paths)]]
    known = {option for name in formats for option in find_reader(name).takes}
    of_others = {o for each in others for o in find_reader(each.format).takes}
    known |= of_others.intersection(XREF_OPTIONS)
    names = ", ".join(dict.fromkeys(formats))
    for option in [option for option in options if option not in known]:
        if option not in where_known:
            name = f"--{option.replace('_', '-')}"
            raise SapbertError(
                "E113",
                f"Expected options of the format {names}, but got `{name}`. Remove "
                "it; `spacy sapbert concepts --help` lists the options of each "
                "format.",
            )
        del options[option]
    reports = [Report() for _ in files] if reports is None else reports
    for path, each, report in zip(files, found, reports, strict=True):
        report.path, report.format, report.on_error = str(path), each.format, on_error
        if each.others:
            not_read = list_some(other.name for other in each.others)
            report.notes.append(f"{each.path.name} is read, not {not_read}.")
    inputs = [*zip((each.path for each in found), reports, strict=True)]
    releases = [Release(*each) for each in inputs[: len(paths)]]
    # What an extension says of the concepts of a release is read together with it.
    alone = []
    for path, report in inputs[len(paths) : len(files) - len(retired)]:
        if find_reader(report.format).gate and report.format in formats:
            releases.append(Release(path, report, keeps=add_unmapped))
        else:
            alone.append(Release(path, report))
    read = open_releases(releases, options)
    concepts = read[0] if len(read) == 1 else unite_vocabularies(read)
    if retired or alone:
        chosen = {key: options[key] for key in XREF_OPTIONS if key in options}
        chosen["cui_pattern"] = ".+"  # ids of any vocabulary
        with unpacked.name_errors():
            mapped = [open_other(other, chosen) for other in alone]
        of_retired = inputs[len(files) - len(retired) :]
        concepts = add_from_files(
            concepts, mapped, of_retired, add_unmapped=add_unmapped
        )
    return read_unpacked(concepts, unpacked)


def read_unpacked(concepts: Iterator[Concept], unpacked: Unpacked) -> Iterator[Concept]:
    """Yield concepts, and remove the folders that they were read from."""
    try:
        with unpacked.name_errors():
            yield from concepts
    finally:
        unpacked.close()


def find_reader(format: str) -> Reader:
    """Return the reader of a format."""
    readers = list_readers()
    if format not in readers:
        formats = ", ".join(readers)
        raise SapbertError(
            "E110", f"Expected one of the formats {formats}, but got {format!r}."
        )
    return readers[format]


class Release(NamedTuple):
    """A file or folder that is read.

    Attributes:
        keeps: Its concepts are concepts; else only those of other releases are, of
            which it has further names and codes.
    """

    path: Path
    report: Report
    keeps: bool = True

    @property
    def reader(self) -> Reader:
        return find_reader(self.report.format)


def open_releases(
    releases: Sequence[Release], options: Map[str, Any]
) -> list[Iterator[Concept]]:
    """Return the counted concepts of each input.

    Releases of a format in which one speaks of the concepts of another, such as those
    of SNOMED CT, are one input.
    """
    groups: dict[object, list[Release]] = {}
    for number, release in enumerate(releases):
        key = release.report.format if release.reader.gate else number
        groups.setdefault(key, []).append(release)
    return [
        count_concepts(open_vocabulary(group, options), group[0].report)
        for group in groups.values()
    ]


def open_vocabulary(
    group: Sequence[Release], options: Map[str, Any]
) -> Iterator[Concept]:
    """Return the concepts of releases of one format.

    Those of several are counted in the report of the first.
    """
    first, reader = group[0].report, group[0].reader
    chosen = choose_options(reader, options)
    read = load_object(reader.read, __package__)
    found: Iterator[Any] = iter(())
    for path, report, keeps in group:
        facts = read(path, report, chosen)
        if not keeps:
            facts = (fact for fact in facts if fact.kind != KEEP)
        found = chain(found, facts)
        if report is not first:
            report.notes.append(f"Its concepts are counted with those of {first.path}.")
    if not reader.is_sorted:
        found = build_concepts(found, first, reader.gate)
    return add_type(found, chosen.type) if chosen.type else found


def open_other(release: Release, options: Map[str, Any]) -> Other:
    """Return a vocabulary of `--xrefs`, which may be a file of mappings."""
    path, report = release.path, release.report
    concepts = open_vocabulary([release], options)
    if release.reader.mappings:
        read = load_object(release.reader.mappings, __package__)
        chosen = choose_options(release.reader, options)
        mappings = read(path, Report(on_error=report.on_error), chosen)
        if first := next(mappings, None):
            return Other(path, concepts, report, chain([first], mappings))
    return Other(path, count_concepts(concepts, report), report)


def choose_options(reader: Reader, options: Map[str, Any]) -> ReadOptions:
    """Return the options that a reader takes."""
    taken = {key: value for key, value in options.items() if key in reader.takes}
    return ReadOptions(**taken)


def add_type(concepts: Iterator[Concept], type: str) -> Iterator[Concept]:
    """Add a semantic type to all concepts."""
    for concept in concepts:
        if type not in concept.types:
            concept.types.append(type)
        yield concept
