"""What a knowledge base must not link: opposites, other numerals, ordinary words."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

import typer

from benchmarks.harness import machine_line, print_table, run_cli
from spacy_sapbert.evaluation.gold_mentions import read_mentions
from spacy_sapbert.io.terminal import msg
from spacy_sapbert.kb.knowledge_base import KnowledgeBase, load_kb
from spacy_sapbert.linking.link import Linked
from spacy_sapbert.linking.opposites import BEGINNINGS, WORDS
from spacy_sapbert.linking.text import MOST_NUMERAL, roman

OF_A_PAIR = 12  # names in which one of two opposites is replaced by the other
MOST_WORDS = 4  # of such a name
NUMERALS = 300  # names of each kind whose numeral is rewritten
MOST_TOKENS = 5_000  # words of the encoder that no name has
SURE = 0.9
ROMAN = {roman(n).upper(): n for n in range(1, MOST_NUMERAL + 1)}
NUMERAL = re.compile(r"\b(?:[IVX]+|[1-9]\d?)\b")
WARD = (
    "car park;hospital;blue car;nurse;doctor;bed;ward;patient;window;lunch;visitor;"
    "telephone;discharge letter;shoes;morning;car;dog;garden;football;computer;"
    "holiday;daughter;coffee;church;insurance;wheelchair;signature;toilet;newspaper;"
    "weather"
)


class Rewritten(NamedTuple):
    """A name that was rewritten, and the concepts of the name as it was."""

    text: str
    cuis: frozenset[str]


def iter_names(kb: KnowledgeBase) -> Iterator[Rewritten]:
    """Yield a name of each row with its concepts, in an order as good as random."""
    rows = kb.store.rows_by_key(kb.rows)
    for start in range(0, len(rows), MOST_TOKENS):
        entries = kb.entries(rows[start : start + MOST_TOKENS])
        for row in rows[start : start + MOST_TOKENS]:
            if names := entries.get(row):
                cuis = frozenset(entry.cui for entry in names)
                yield Rewritten(names[0].alias, cuis)


def make_opposites(names: Sequence[Rewritten]) -> Iterator[Rewritten]:
    """Yield names in which one word is replaced by its opposite."""
    pairs: list[tuple[str, re.Pattern[str], str]] = []
    for groups, ending in ((WORDS, r"\b"), (BEGINNINGS[:13], r"(?=\w{3})")):
        for parts in map(str.split, groups):
            for word, other in zip(parts, parts[1:], strict=False):
                pairs += [
                    (word, re.compile(rf"\b{word}{ending}"), other),
                    (other, re.compile(rf"\b{other}{ending}"), word),
                ]
    made = Counter[tuple[str, str]]()
    for name in names:
        text = name.text.lower()
        if len(text.split()) > MOST_WORDS:
            continue
        for old, pattern, new in pairs:
            if old in text and made[old, new] < OF_A_PAIR and pattern.search(text):
                made[old, new] += 1
                yield Rewritten(pattern.sub(new, text, count=1), name.cuis)


def rewrite_numerals(
    names: Sequence[Rewritten], low: int, high: int, *, to_roman: bool
) -> Iterator[Rewritten]:
    """Yield names with one numeral, from `low` to `high`, in the other digits."""
    for name in names:
        found = NUMERAL.findall(name.text)
        if len(found) != 1 or found[0].isdigit() != to_roman:
            continue
        number = int(found[0]) if to_roman else ROMAN.get(found[0], 0)
        if low <= number <= high and number in ROMAN.values():
            other = roman(number).upper() if to_roman else str(number)
            yield Rewritten(NUMERAL.sub(other, name.text), name.cuis)


def is_sure(linked: Linked) -> bool:
    """Return whether a mention is linked with a high probability."""
    probability = linked.candidates[0]["probability"] if linked.candidates else None
    return linked.cui is not None and (probability or 0) > SURE


def main(
    kb: Path = typer.Argument(..., help="Knowledge base with a learned order."),
    foreign: list[Path] = typer.Option(
        [], help="mentions.tsv of another field, without a concept; may be repeated."
    ),
    seed: int = typer.Option(7, help="Of the words that are chosen."),
) -> None:
    """kb/ -> how often it links what it must not link, by default

    Example: python -m benchmarks.refusals kb --foreign bc5cdr_chemical.dev.tsv.gz
    """
    opened = load_kb(kb)
    names = [*iter_names(opened)]
    rows: list[list[str]] = []
    opposites = [*make_opposites(names)]
    free = opened.link([name.text for name in opposites], threshold=-1, k=1)
    lacking = [
        name
        for name, linked in zip(opposites, free, strict=True)
        if not linked.candidates or linked.candidates[0]["score"] < 1
    ]
    links = opened.link([name.text for name in lacking])
    pairs = [*zip(links, lacking, strict=True)]
    wrong = [linked for linked, name in pairs if linked.cui in name.cuis]
    rows.append(["opposites that it lacks, linked to the opposite",
                 f"{len(wrong):,} of {len(lacking):,}"])  # fmt: skip
    rows.append([f"… with more than {SURE}", f"{sum(map(is_sure, wrong)):,}"])
    for low, high in ((2, 6), (7, 20)):
        for to_roman in (False, True):
            some = [*rewrite_numerals(names, low, high, to_roman=to_roman)][:NUMERALS]
            links = opened.link([name.text for name in some])
            right = sum(
                linked.cui in name.cuis
                for linked, name in zip(links, some, strict=True)
            )
            kind = "as Roman numerals" if to_roman else "as digits"
            rows.append([f"{low} to {high} {kind}, linked right",
                         f"{right:,} of {len(some):,}"])  # fmt: skip
    known = {w for name in names for w in re.findall(r"[a-z]+", name.text.lower())}
    tokens = [t for t in opened.encoder.list_tokens() if t.isalpha() and len(t) > 2]
    new = [token for token in tokens if token not in known]
    words = Random(seed).sample(new, min(MOST_TOKENS, len(new)))
    kinds = {"words of the encoder that no name has": words}
    kinds["words of a ward"] = WARD.split(";")
    kinds |= {p.name: [gold.mention for gold in read_mentions(p)] for p in foreign}
    for kind, texts in kinds.items():
        links = opened.link(texts)
        numbers = {f"{kind}, linked": sum(linked.cui is not None for linked in links)}
        numbers[f"… with more than {SURE}"] = sum(map(is_sure, links))
        rows += [[k, f"{n:,} of {len(links):,}"] for k, n in numbers.items()]
    msg.text(f"{machine_line()}; {opened.rows:,} names, seed {seed}.")
    print_table(["Mentions", "Number"], rows)


if __name__ == "__main__":
    run_cli(main)
