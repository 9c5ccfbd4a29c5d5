"""concepts.jsonl → concepts.jsonl with the names that BioSyn's pre-processing makes."""

import re
import string
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import typer
from tqdm import tqdm
from wasabi import msg

from training.errors import Errors, SapbertError
from spacy_sapbert.vocabularies.concepts import (
    Concept,
    change_names,
    read_concepts,
    write_concepts,
)

BETWEEN_WORDS = re.compile(rf"[\s{re.escape(string.punctuation)}]+")
COUNTED = (
    "concepts",
    "names",
    "of punctuation only, dropped",
    "equal to another of the concept, dropped",
    "names written",
    "concepts written",
)


def remove_punctuation(text: str) -> str:
    """Put a blank for each run of blanks and ASCII punctuation.

    text (str): Any text.
    RETURNS (str): Without blanks at the ends; empty if nothing is left.
    """
    return " ".join(filter(None, BETWEEN_WORDS.split(text)))


def preprocess_name(name: str) -> str:
    """Do what is done to names of a dictionary and, at the end, to mentions.

    name (str): A name or a mention.
    RETURNS (str): In lower case, without punctuation.
    """
    return remove_punctuation(name.lower())


def preprocess_concepts(
    concepts: Iterable[Concept], counts: Counter[str]
) -> Iterator[Concept]:
    """Pre-process the names of a dictionary.

    concepts (Iterable[Concept]): The concepts.
    counts (Counter[str]): Is added to.
    YIELDS (Concept): With the distinct names in their order; not if there is none.
    RAISES (SapbertError): At the end, if there was no name at all.
    """
    counts.update(dict.fromkeys(COUNTED, 0))
    for concept in concepts:
        names = list(map(preprocess_name, concept.aliases))
        empty = names.count("")
        changed = replace(concept)
        change_names(changed, names)
        distinct = len(changed.aliases)
        counts["concepts"] += 1
        counts["names"] += len(names)
        counts["of punctuation only, dropped"] += empty
        equal = len(names) - empty - distinct
        counts["equal to another of the concept, dropped"] += equal
        counts["names written"] += distinct
        if distinct:
            counts["concepts written"] += 1
            yield changed
    if not counts["concepts written"]:
        raise SapbertError(Errors.E731.format(concepts=counts["concepts"]))


def main(
    concepts: Path = typer.Argument(..., help="concepts.jsonl"),
    output: Path = typer.Argument(..., help="concepts.jsonl to write."),
    quiet: bool = typer.Option(False, "--quiet", help="Print nothing but errors."),
) -> None:
    """concepts.jsonl -> concepts.jsonl with pre-processed names

    Example: python -m training.corpora.biosyn_names assets/medic.jsonl
    corpus/ncbi/concepts.jsonl
    """
    counts: Counter[str] = Counter()
    try:
        bar = tqdm(
            read_concepts(concepts),
            unit=" concepts",
            disable=quiet or not sys.stderr.isatty(),
        )
        write_concepts(output, preprocess_concepts(bar, counts))
    except SapbertError as error:
        msg.fail(str(error), exits=1)
    if not quiet:
        msg.table([(key, f"{count:,}") for key, count in counts.items()])
        msg.good(f"Wrote {output}")


if __name__ == "__main__":
    typer.run(main)
