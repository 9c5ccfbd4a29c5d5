"""MRREL.RRF + concepts.jsonl → relations.tsv: names of two related concepts on a line.

A line has the format of pairs.tsv, with both ids as the concept: the loss treats the
two names as names of one concept.
"""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from spacy_sapbert.errors import SapbertError, missing_file
from spacy_sapbert.io.temporary_db import open_temporary_db
from spacy_sapbert.io.writing import check_outputs
from spacy_sapbert.vocabularies.concepts import Concept, read_concepts
from spacy_sapbert.vocabularies.report import Report
from spacy_sapbert.vocabularies.rrf.tables import COLUMNS, find_table, read_rows
from training.data.options import Concepts, Force, Quiet, print_counts
from training.data.pairs import NameTable, Pair, hash_text, write_lines

SUPPRESS = COLUMNS["MRREL"].index("SUPPRESS")

Relation = tuple[str, str, str]  # RELA, CUI2, CUI1


def read_relations(path: Path, *, on_error: str = "fail") -> Iterator[Relation]:
    """Yield the relations of MRREL.RRF that have a name and are not suppressed.

    Yields:
        RELA, CUI2 and CUI1: a row says what CUI2 is to CUI1. A relation comes again in
        the other direction, and for each source.
    """
    parts = [path] if path.is_file() else find_table(path, "MRREL")
    if not parts:
        raise missing_file(path=path / "MRREL.RRF")
    for row in read_rows(parts, "MRREL", Report(on_error=on_error)):
        one, _, _, _, other, _, _, rela, *_ = row
        if rela and row[SUPPRESS] in ("N", ""):
            yield rela, other, one


def pair_relations(
    concepts: Iterator[Concept],
    relations: Iterator[Relation],
    *,
    kept: set[str] | None,
    seed: int,
) -> Iterator[Pair]:
    """Draw a name of each of two related concepts.

    Two concepts come once, even if they have several relations.

    Args:
        kept: The RELA to use; None = all.

    Yields:
        Both ids joined by a plus sign, and two different names, sorted by id.
    """
    with open_temporary_db() as scratch:
        table = NameTable(scratch)
        for _ in table.add(concepts):
            pass
        scratch.execute("CREATE TABLE related (one, other)")
        scratch.executemany(
            "INSERT INTO related VALUES (?, ?)",
            (
                sorted((one, other))
                for rela, one, other in relations
                if one != other and (kept is None or rela in kept)
            ),
        )
        rows = scratch.execute("SELECT DISTINCT * FROM related ORDER BY one, other")
        for cuis in rows:
            found = [table.find("label", hash_text(cui)) for cui in cuis]
            # Seeded by a text, not by its hash, which depends on PYTHONHASHSEED.
            rng = random.Random(f"{seed} {' '.join(cuis)}")
            names = [rng.choice(each[1]) for each in found if each is not None]
            if len(names) == 2 and names[0].lower() != names[1].lower():
                yield "+".join(cuis), names[0], names[1]


def write_relations(
    concepts: Concepts,
    mrrel: Annotated[
        Path, typer.Argument(help="MRREL.RRF, or the folder of a release.")
    ],
    output: Annotated[Path, typer.Argument(help="relations.tsv to write.")],
    relations: Annotated[
        str | None,
        typer.Option(help="RELA kept, e.g. has_part,causative_agent_of. [all]"),
    ] = None,
    on_error: Annotated[str, typer.Option(help="Bad rows: fail, or skip.")] = "fail",
    seed: Annotated[int, typer.Option(help="Seed of the names.")] = 0,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Write a pair of names for each two related concepts.

    Example: python -m training relations corpus/concepts.jsonl assets/umls
    corpus/relations.tsv
    """
    check_outputs(output, force=force)
    pairs = pair_relations(
        read_concepts(concepts),
        read_relations(mrrel, on_error=on_error),
        kept=set(relations.split(",")) if relations else None,
        seed=seed,
    )
    count = write_lines(
        pairs,
        output,
        lambda: SapbertError(
            "E106",
            f"Expected relations in {mrrel} between the concepts, but got "
            "none. Read the concepts of the same release, or name other "
            "`--relations`.",
        ),
    )
    print_counts({"pairs of related concepts": count}, output, quiet=quiet)
