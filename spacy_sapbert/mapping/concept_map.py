"""What is decided on a column → the table `source_to_concept_map` of OMOP, as CSV.

SOURCE: https://ohdsi.github.io/CommonDataModel/cdm54.html#source_to_concept_map
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import SapbertError
from ..io.tables.files import CSV, write_text
from ..io.tables.formulas import AsRead
from ..io.writing import write_atomically
from ..linking.sources import SOURCES
from ..vocabularies.concepts import Concept
from .decisions import CHOSEN
from .lookup import Found

if TYPE_CHECKING:
    from ..kb.knowledge_base import KnowledgeBase

ENDINGS = ("source_to_concept_map.csv", "source_to_concept_map.csv.gz")
# Columns, and characters of each at most
COLUMNS = {
    "source_code": 50,
    "source_concept_id": 0,
    "source_vocabulary_id": 20,
    "source_code_description": 255,
    "target_concept_id": 0,
    "target_vocabulary_id": 20,
    "valid_start_date": 0,
    "valid_end_date": 0,
    "invalid_reason": 0,
}
OWN = "OMOP:"  # before the ids of its concepts
NO_CONCEPT = "0"  # a code of the user is no concept of OMOP
ALWAYS = ("1970-01-01", "2099-12-31")
NAMES = {n: s.omop or s.name for s in SOURCES for n in (s.name, s.prefix) if n}
HAS_OMOP = {source.name for source in SOURCES if source.omop}

Row = tuple[int, str, str, Found]  # number of a row, id, term, and what was decided


def is_concept_map(path: Path) -> bool:
    return path.name.lower().endswith(ENDINGS)


def check_omop(kb: "KnowledgeBase", id: str | None, vocabulary: str) -> None:
    """Raise an error if the table cannot be written of a column of ids."""
    first = next(iter(kb), "")
    if not first.startswith(OWN):
        raise SapbertError(
            "E471",
            "Expected a knowledge base of OMOP, with ids such as OMOP:437663, for "
            f"{ENDINGS[0]}, but got {first or 'nothing'}. Build it from files of "
            "Athena, or write another table.",
        )
    most = COLUMNS["source_vocabulary_id"]
    if id is None or not 0 < len(vocabulary) <= most:
        raise SapbertError(
            "E423",
            "Expected the column of the codes, and their vocabulary of at most "
            f"{most} characters, for {ENDINGS[0]}, but got {id or 'none'} and "
            f"{vocabulary or 'none'}. Pass `--id` and `--subject-prefix`; terms can be "
            "codes too.",
        )


def check_code(path: Path, row: int, code: str) -> None:
    """Raise an error, which does not show it, if a row has a code that does not fit."""
    if not 0 < len(code.strip()) <= COLUMNS["source_code"]:
        raise SapbertError(
            "E117",
            f"{path}: Expected codes of 1 to {COLUMNS['source_code']} characters for "
            f"`source_code`, but row {row} has another. Correct it, or pass another "
            "column as `--id`.",
        )


def write_concept_map(
    kb: "KnowledgeBase", output: Path, rows: Iterable[Row], vocabulary: str
) -> None:
    """Write the concepts that are sure or chosen, each of a code once.

    A decision of a person stands for all rows of its code and term.
    """
    distinct = {
        (id, term, found.cui): (number, found.status == CHOSEN)
        for number, id, term, found in rows
        if found.cui is not None and (found.final or found.status == CHOSEN)
    }
    chosen = {key[:2] for key, (_, by_person) in distinct.items() if by_person}

    def list_rows() -> Iterator[list[str]]:
        for (code, term, cui), (number, by_person) in distinct.items():
            if (code, term) in chosen and not by_person:
                continue
            concept = kb.concept(cui)
            if concept is None or not concept.cui.startswith(OWN):
                raise SapbertError(
                    "E471",
                    f"Expected a concept of OMOP in row {number}, but got {cui}. "
                    "Choose one whose id begins with OMOP:.",
                )
            yield [
                *(AsRead(code), NO_CONCEPT, vocabulary),
                AsRead(term[: COLUMNS["source_code_description"]]),
                *(concept.cui.removeprefix(OWN), find_vocabulary(concept)),
                *(*ALWAYS, ""),
            ]

    with write_atomically(output) as file:
        write_text(file, [[*COLUMNS]], CSV)
        write_text(file, list_rows(), CSV)


def find_vocabulary(concept: Concept) -> str:
    """Return the vocabulary of a concept, as OMOP calls it: that of its own name.

    A name that a concept has which is mapped to it too is rather of a vocabulary with a
    name of its own in OMOP, such as SNOMED.
    """
    own = [name for name, places in concept.sources.items() if 0 in places]
    if not own:
        raise SapbertError(
            "E471",
            f"Expected the vocabulary of {concept.cui}, but the knowledge base does "
            "not have it. Build it with the names in English.",
        )
    first = min(own, key=lambda name: (name not in HAS_OMOP, name))
    return NAMES.get(first, first)
