"""concepts.jsonl → concepts.jsonl with names preprocessed as by BioSyn."""

import re
import string
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import typer

from spacy_sapbert.vocabularies.concepts import (
    Concept,
    change_names,
    read_concepts,
    write_concepts,
)
from training.errors import Errors, SapbertError
from training.reporting import print_counts, show_progress

BETWEEN_WORDS = re.compile(rf"[\s{re.escape(string.punctuation)}]+")
COUNTED = (
    "concepts",
    "names",
    "of punctuation only, dropped",
    "equal to another of the concept, dropped",
    "names written",
    "concepts written",
)


def preprocess_name(name: str) -> str:
    """Return a name or mention in lower case, with blanks for ASCII punctuation."""
    return " ".join(filter(None, BETWEEN_WORDS.split(name.lower())))


def preprocess_concepts(
    concepts: Iterable[Concept], counts: Counter[str]
) -> Iterator[Concept]:
    """Preprocess the names of a dictionary.

    YIELDS (Concept): Each concept that has names left, with distinct names in order.
    RAISES (SapbertError): At the end, if no concept has a name left.
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


def biosyn_names_command(
    concepts: Path = typer.Argument(..., help="concepts.jsonl"),
    output: Path = typer.Argument(..., help="concepts.jsonl to write."),
    quiet: bool = typer.Option(False, "--quiet", help="Print nothing but errors."),
) -> None:
    """Example: python -m training biosyn-names assets/medic.jsonl
    corpus/ncbi/concepts.jsonl
    """
    counts: Counter[str] = Counter()
    bar = show_progress(read_concepts(concepts), "concepts", quiet=quiet)
    write_concepts(output, preprocess_concepts(bar, counts))
    print_counts(counts, output, quiet=quiet)
