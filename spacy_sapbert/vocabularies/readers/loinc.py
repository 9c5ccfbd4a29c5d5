"""LOINC: its table of terms, and the accessory files beside it.

Source: LOINC Users' Guide and the files of release 2.7x.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from ...linking.languages import language_code
from ..concepts import clean_name
from ..facts import CODE, DEFINITION, KEEP, NAME, PARENT, REPLACED_BY, TYPE, Fact
from ..options import ReadOptions
from ..report import Report
from ..tables.release import Release

SOURCE = "LNC"  # what UMLS calls it
cui_of = "LOINC:{}".format  # the id of a concept here
TABLE = "Loinc.csv"
PART = "LP"  # the codes of parts begin with it
OBSOLETE = "DEPRECATED"
HIERARCHIES = ("ComponentHierarchyBySystem.csv", "MultiAxialHierarchy.csv")
VARIANTS = "*LinguisticVariant.csv"  # esES12LinguisticVariant.csv


def read_loinc(path: Path, report: Report, options: ReadOptions) -> Iterator[Fact]:
    """Read terms and parts of LOINC, with consumer names and the hierarchy.

    Related names are search words, not synonyms, and are not read. The id is `LOINC:`
    and the code. Without `languages` the names of all linguistic variants are kept.

    Args:
        path: `Loinc.csv` of a release.
    """
    release = Release(path, TABLE, report, inner=("LoincTable",))
    languages, obsolete = options.languages, options.obsolete
    english = not languages or "ENG" in languages
    columns = ("LOINC_NUM", "LONG_COMMON_NAME", "STATUS")
    names = ("DisplayName", "CONSUMER_NAME", "SHORTNAME")
    optional = ("CLASS", "DefinitionDescription", *names)
    for code, name, status, kind, definition, *others in release.read(
        TABLE, columns, optional=optional
    ):
        if status == OBSOLETE and not obsolete:
            report.dropped["deprecated terms"] += 1
            continue
        yield from find_kept(code, kind, definition)
        yield from find_names(code, (name, *others) if english else (), "ENG")
    parts = ("PartNumber", "PartTypeName", "PartName", "PartDisplayName", "Status")
    for code, kind, name, display, status in release.read(
        "Part.csv", parts, "no parts"
    ):
        if status == OBSOLETE and not obsolete:
            report.dropped["deprecated parts"] += 1
            continue
        yield from find_kept(code, kind, "")
        yield from find_names(code, (name, display) if english else (), "ENG")
    if english:
        consumer = ("LoincNumber", "ConsumerName")
        for code, name in release.read(
            "ConsumerName.csv", consumer, "no consumer names"
        ):
            yield from find_names(code, (name,), "ENG", 1)
    tables = [table for table in HIERARCHIES if release.find(table)] or [*HIERARCHIES]
    columns = ("CODE", "IMMEDIATE_PARENT", "CODE_TEXT")
    for code, parent, name in release.read(tables[0], columns, "no parents"):
        if code.startswith(PART) and english:
            yield from find_kept(code, "", "")
            yield from find_names(code, (name,), "ENG", 3)
        if parent:
            yield Fact(cui_of(code), PARENT, cui_of(parent))
    for code, other in release.read("MapTo.csv", ("LOINC", "MAP_TO"), "no retired ids"):
        if other:
            yield Fact(cui_of(code), REPLACED_BY, cui_of(other), source="MapTo.csv")
    yield from find_variants(release, languages)


def find_kept(code: str, kind: str, definition: str) -> Iterator[Fact]:
    """Yield the facts of a concept that is kept, without names."""
    yield Fact(cui_of(code), KEEP)
    yield Fact(cui_of(code), CODE, code, source=SOURCE)
    if kind:
        yield Fact(cui_of(code), TYPE, kind)
    if definition:
        yield Fact(cui_of(code), DEFINITION, clean_name(definition))


def find_names(
    code: str, names: Sequence[str], language: str, rank: int = 0
) -> Iterator[Fact]:
    """Yield names that are not empty."""
    for name in filter(None, names):
        yield Fact(cui_of(code), NAME, name, rank, SOURCE, language)


def find_variants(release: Release, languages: Sequence[str] | None) -> Iterator[Fact]:
    """Yield the names of the linguistic variants, whose files begin with a language."""
    columns = ("LOINC_NUM",)
    optional = ("LONG_COMMON_NAME", "LinguisticVariantDisplayName")
    for file in release.find(VARIANTS):
        language = language_code(file.name[:2])
        if languages and language not in languages:
            continue
        for code, *names in release.read(file.name, columns, optional=optional):
            yield from find_names(code, names, language, 2)
