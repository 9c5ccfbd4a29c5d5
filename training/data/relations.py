"""MRREL.RRF + concepts.jsonl → relations.tsv: names of two related concepts a line.

A line is like one of pairs.tsv, with both ids in place of one: the two names are a
class of their own, as if they were of one concept.
"""

import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import typer
from wasabi import msg

from training.errors import Errors, SapbertError
from spacy_sapbert.system.writing import write_atomically
from spacy_sapbert.vocabularies.concepts import Concept, read_concepts
from spacy_sapbert.vocabularies.report import Report
from spacy_sapbert.vocabularies.rrf_files import find_table
from spacy_sapbert.vocabularies.rrf_reading import read_rows
from spacy_sapbert.vocabularies.temporary_db import open_scratch
from training.data.names_by_concept import NamedConcepts
from training.data.pairs import Pair
from training.data.tokenized_pairs import hash_text

Relation = tuple[str, str, str]  # RELA, the concept that it leads from, and to


def read_relations(path: Path, *, on_error: str = "fail") -> Iterator[Relation]:
    """Read the relations that have a name, and are not suppressed.

    path (Path): MRREL.RRF, or the folder of a release.
    on_error (str): "fail", or "skip" to pass over bad rows.
    YIELDS (Relation): RELA, CUI2 and CUI1, as a row says what CUI2 is to CUI1. Both
        directions, and what several sources say, come again.
    RAISES (SapbertError): If there is no such file; with file and line, at the first
        bad row.
    """
    parts = [path] if path.is_file() else find_table(path, "MRREL")
    if not parts:
        raise SapbertError(Errors.E759.format(path=path))
    for rows in read_rows(parts, "MRREL", on_error=on_error, report=Report()):
        named = ~rows.equal("RELA", "")
        rows = rows[named & rows.equal("SUPPRESS", "N", "")]
        yield from zip(
            rows.texts("RELA"), rows.texts("CUI2"), rows.texts("CUI1"), strict=True
        )


def pair_relations(
    concepts: Iterator[Concept],
    relations: Iterator[Relation],
    *,
    kept: set[str] | None = None,
    seed: int = 0,
) -> Iterator[Pair]:
    """Draw a name of each of two related concepts.

    concepts (Iterator[Concept]): Those that may be paired.
    relations (Iterator[Relation]): Between any concepts.
    kept (set[str] | None): The RELA that count; None = all.
    seed (int): Which names.
    YIELDS (Pair): Both ids with a plus sign between them, and the names, which differ.
        Sorted; two concepts come once, however many relations they have.
    """
    with open_scratch() as scratch:
        named = NamedConcepts(scratch)
        for _ in named.add(concepts):
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
            found = [named.look_up("label", hash_text(cui)) for cui in cuis]
            # Seeded by a text, not by a hash of it: the same for any PYTHONHASHSEED.
            chance = random.Random(f"{seed} {' '.join(cuis)}")
            names = [chance.choice(each[1]) for each in found if each is not None]
            if len(names) == 2 and names[0].lower() != names[1].lower():
                yield "+".join(cuis), names[0], names[1]


def write_relations(
    concepts_path: Path,
    relations_path: Path,
    path: Path,
    *,
    kept: Sequence[str] | None = None,
    on_error: str = "fail",
    seed: int = 0,
) -> int:
    """Write the pairs of related concepts.

    concepts_path (Path): concepts.jsonl.
    relations_path (Path): MRREL.RRF, or the folder of a release.
    path (Path): relations.tsv, or relations.tsv.gz.
    kept (Sequence[str] | None): The RELA that count; None = all.
    on_error (str): "fail", or "skip" to pass over bad rows.
    seed (int): Which names.
    RETURNS (int): How many pairs there were.
    RAISES (SapbertError): If a file is not usable, or no two concepts are related.
    """
    pairs = pair_relations(
        read_concepts(concepts_path),
        read_relations(relations_path, on_error=on_error),
        kept=None if kept is None else set(kept),
        seed=seed,
    )
    count = 0
    with write_atomically(path) as file:
        for pair in pairs:
            file.write("\t".join(pair).encode("utf8") + b"\n")
            count += 1
        if not count:
            raise SapbertError(Errors.E760.format(path=relations_path))
    return count


def main(
    concepts_path: Path = typer.Argument(
        ..., metavar="CONCEPTS", help="concepts.jsonl"
    ),
    relations_path: Path = typer.Argument(
        ..., metavar="MRREL", help="MRREL.RRF, or the folder of a release."
    ),
    output: Path = typer.Argument(
        ..., metavar="RELATIONS", help="relations.tsv to write"
    ),
    kept: str | None = typer.Option(
        None, "--relations", help="RELA kept, e.g. has_part,causative_agent_of. [all]"
    ),
    on_error: str = typer.Option("fail", help="fail at the first bad row, or skip."),
    seed: int = typer.Option(0, help="Which names."),
    quiet: bool = typer.Option(False, help="Print nothing but errors."),
) -> None:
    """concepts.jsonl + MRREL.RRF -> relations.tsv

    Example: python -m training.data.relations corpus/concepts.jsonl assets/umls
    corpus/relations.tsv
    """
    try:
        count = write_relations(
            concepts_path,
            relations_path,
            output,
            kept=kept.split(",") if kept else None,
            on_error=on_error,
            seed=seed,
        )
    except SapbertError as error:
        msg.fail(str(error), exits=1)
    if not quiet:
        msg.good(f"Wrote {count:,} pairs of related concepts to {output}")


if __name__ == "__main__":
    typer.run(main)
