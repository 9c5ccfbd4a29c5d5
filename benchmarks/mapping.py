"""`python -m benchmarks.mapping`: accuracy of mapping a column of held-out terms."""

import csv
import random
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import typer

from benchmarks.harness import machine_line, markdown_table, run_cli
from spacy_sapbert.evaluation.compare import mcnemar_test
from spacy_sapbert.kb.knowledge_base import KnowledgeBase, load_kb
from spacy_sapbert.linking.surface_forms import name_form, singular_forms
from spacy_sapbert.mapping.found import STATUSES
from spacy_sapbert.system.writing import check_outputs
from spacy_sapbert.vocabularies.concepts import (
    Concept,
    change_names,
    read_concepts,
    write_concepts,
)

K = 5  # candidates of a term
ROWS = 50  # names that the search by 3-grams reads for K concepts
NAME, FORM, WORDS, UNKNOWN = KINDS = (
    "a name",
    "other order, plural",
    "other words",
    "not in the vocabulary",
)
STATUS_HEADER = ("status", "terms", "share", "accuracy@1 (95 %)", UNKNOWN)
SYSTEM_HEADER = (
    *("looked up by", NAME, FORM, WORDS),
    *("all: acc@1 (95 %)", f"acc@{K}", "change"),
)
SPOILERS: tuple[Callable[[str, random.Random], str], ...] = (
    lambda term, r: (
        f"{term} ({r.choice('AEIJKM')}{r.randint(10, 99)}.{r.randint(0, 9)})"
    ),
    lambda term, r: f"{r.choice('AEIJKM')}{r.randint(10, 99)}.{r.randint(0, 9)} {term}",
    lambda term, r: f"{r.randint(1, 20)}. {term}",
    lambda term, r: f"{term}{r.choice((' NOS', ', NOS', ', unspecified'))}",
    lambda term, r: f"{r.choice(('h/o ', 'H/O ', 'history of ', 's/p ', '? '))}{term}",
    lambda term, r: f"{r.choice(('left ', 'Rt. ', 'bilateral '))}{term}",
    lambda term, _: f"{term} *",
    lambda term, _: term.upper(),
)


class Term(NamedTuple):
    """A term of the column; `cui` is "" if the vocabulary lacks its concept."""

    text: str
    cui: str
    kind: str


class Answer(NamedTuple):
    """What a system answers to a term: concepts, the best first, and its status."""

    cuis: Sequence[str]
    status: str = ""


def word_set(name: str) -> frozenset[str]:
    """Return the words of a name in any order, plurals as singulars."""
    words = (word for word in name_form(name).split() if word.isalnum())
    return frozenset(min([word, *singular_forms(word)], key=len) for word in words)


def choose_terms(
    concepts: list[Concept], counts: Sequence[int], chance: random.Random
) -> tuple[list[Term], list[Concept]]:
    """Choose the terms of a column, one of a concept.

    concepts (list[Concept]): The vocabulary.
    counts (Sequence[int]): Number of held-out names, of names that stay, and of
        concepts that are held out.
    RETURNS (tuple[list[Term], list[Concept]]): The terms in random order, and the
        vocabulary without what was held out.
    """
    owners: dict[str, int] = defaultdict(int)
    for concept in concepts:
        for form in {name_form(alias) for alias in concept.aliases}:
            owners[form] += 1
    order = [*concepts]
    chance.shuffle(order)
    held, kept, unknown = counts
    terms: list[Term] = []
    changed: dict[str, Concept | None] = {}
    for concept in order:
        forms = [name_form(alias) for alias in concept.aliases]
        alone = [
            place
            for place, form in enumerate(forms)
            if place and owners[form] == forms.count(form) == 1
        ]
        if unknown and all(owners[form] == 1 for form in forms):
            unknown -= 1
            terms.append(Term(concept.name, "", UNKNOWN))
            changed[concept.cui] = None
        elif kept and alone:
            kept -= 1
            place = chance.choice(alone)
            terms.append(Term(concept.aliases[place], concept.cui, NAME))
        elif held and alone:
            held -= 1
            place = chance.choice(alone)
            text = concept.aliases[place]
            rest = ["" if text == alias else alias for alias in concept.aliases]
            change_names(concept, rest)
            known = {word_set(alias) for alias in concept.aliases}
            kind = FORM if word_set(text) in known else WORDS
            terms.append(Term(text, concept.cui, kind))
        elif not (held or kept or unknown):
            break
    chance.shuffle(terms)
    return terms, [each for each in concepts if changed.get(each.cui, each)]


def spoil(terms: Sequence[Term], chance: random.Random) -> list[Term]:
    """Return the terms as people write them: with one or two of `SPOILERS`."""
    spoilt = []
    for term in terms:
        text = term.text
        for place in sorted(chance.sample(range(len(SPOILERS)), chance.choice((1, 2)))):
            text = SPOILERS[place](text, chance)
        spoilt.append(term._replace(text=text))
    return spoilt


def run(*words: object) -> None:
    """Run a command of the package; end if it fails."""
    command = [sys.executable, "-m", "spacy_sapbert", *map(str, words)]
    if code := subprocess.run(command, stdout=sys.stderr).returncode:
        raise typer.Exit(code)  # the command has printed its error


def map_column(
    terms: Sequence[Term], kb: Path, folder: Path, name: str
) -> list[Answer]:
    """Map terms with `spacy sapbert map`, and read its table."""
    column, output = folder / f"{name}.csv", folder / f"{name}.mapped.csv"
    with column.open("w", encoding="utf8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("term", "right", "kind"))
        writer.writerows(terms)
    words = ("map", column, "--column", "term", "--kb", kb, "-k", K)
    run(*words, "--output", output, "--force")
    ids = ["match_id", *(f"match_{rank}_id" for rank in range(2, K + 1))]
    with output.open(encoding="utf-8-sig", newline="") as file:
        return [
            Answer([row[each] for each in ids if row[each]], row["match_status"])
            for row in csv.DictReader(file)
        ]


def match_names(terms: Sequence[Term], concepts: Sequence[Concept]) -> list[Answer]:
    """Look up terms that are names up to case and blanks."""
    owners: dict[str, dict[str, None]] = defaultdict(dict)
    for concept in concepts:
        for alias in concept.aliases:
            owners[name_form(alias)][concept.cui] = None
    return [Answer([*owners.get(name_form(term.text), ())][:K]) for term in terms]


def search_ngrams(terms: Sequence[Term], kb: KnowledgeBase) -> list[Answer]:
    """Look up terms by character 3-grams alone."""
    rows, _ = kb.ngrams.search([term.text for term in terms], ROWS)
    entries = kb.store.entries({int(row) for row in rows.flat if row >= 0})
    answers = []
    for found in rows:
        cuis = [entry.cui for row in found for entry in entries.get(int(row), ())]
        answers.append(Answer([*dict.fromkeys(cuis)][:K]))
    return answers


def link_plainly(terms: Sequence[Term], kb: KnowledgeBase) -> list[Answer]:
    """Look up terms by the linker, as they are written."""
    links = kb.link([term.text for term in terms], k=K)
    return [Answer([one["cui"] for one in link.candidates]) for link in links]


def share(right: int, total: int) -> str:
    """Return a share with its 95 % interval of Wilson."""
    from scipy.stats import binomtest

    if not total:
        return "–"
    low, high = binomtest(right, total).proportion_ci(method="wilson")
    return f"{right / total:.3f} ({low:.3f}–{high:.3f})"


def status_rows(terms: Sequence[Term], answers: Sequence[Answer]) -> list[list[str]]:
    """Return a row for each status: terms, accuracy, and terms without a concept."""
    rows = []
    for status in STATUSES:
        own = [t for t, a in zip(terms, answers, strict=True) if a.status == status]
        known = [term for term in own if term.cui]
        right = sum(
            answer.cuis[:1] == [term.cui]
            for term, answer in zip(terms, answers, strict=True)
            if answer.status == status and term.cui
        )
        shares = [f"{len(own):,}", f"{len(own) / len(terms):.1%}"]
        others = f"{len(own) - len(known):,}"
        rows.append([f"`{status}`", *shares, share(right, len(known)), others])
    return rows


def system_rows(
    terms: Sequence[Term], systems: dict[str, Sequence[Answer]]
) -> list[list[str]]:
    """Return a row for each system: accuracy by kind of term, against the first."""
    rows = []
    firsts: list[bool] = []
    for name, answers in systems.items():
        pairs = [p for p in zip(terms, answers, strict=True) if p[0].cui]
        hits = [answer.cuis[:1] == [term.cui] for term, answer in pairs]
        near = sum(term.cui in answer.cuis for term, answer in pairs)
        row = [name]
        for kind in (NAME, FORM, WORDS):
            own = [h for h, (t, _) in zip(hits, pairs, strict=True) if t.kind == kind]
            row.append(f"{sum(own) / len(own):.3f}" if own else "–")
        row += [share(sum(hits), len(hits)), f"{near / len(hits):.3f}"]
        firsts = firsts or hits
        if firsts is hits:
            row.append("–")
        else:
            won = sum(a > b for a, b in zip(hits, firsts, strict=True))
            lost = sum(a < b for a, b in zip(hits, firsts, strict=True))
            p = mcnemar_test(won, lost)
            p_value = "p < 0.001" if p < 0.001 else f"p = {p:.3f}"
            row.append(f"+{won} −{lost}, {p_value}")
        rows.append(row)
    return rows


def print_column(
    name: str,
    terms: Sequence[Term],
    systems: dict[str, Sequence[Answer]],
) -> None:
    """Print both tables of a column in Markdown."""
    counts = (f"{sum(t.kind == kind for t in terms):,} {kind}" for kind in KINDS)
    typer.echo(f"\n{name}: {', '.join(counts)}\n")
    mapped = next(iter(systems.values()))
    rows = status_rows(terms, mapped)
    typer.echo("\n".join(markdown_table(STATUS_HEADER, rows)))
    rows = system_rows(terms, systems)
    typer.echo("\n" + "\n".join(markdown_table(SYSTEM_HEADER, rows)))


def main(
    concepts: Path = typer.Argument(..., help="concepts.jsonl"),
    encoder: str = typer.Argument(..., help="Folder or hub id of the encoder."),
    folder: Path = typer.Argument(..., help="Folder to write, with all tables."),
    held_out: int = typer.Option(2000, min=1, help="Names that are held out."),
    names: int = typer.Option(1000, min=0, help="Names that stay."),
    unknown: int = typer.Option(500, min=0, help="Concepts that are held out."),
    seed: int = typer.Option(0, help="Of the choice."),
    reuse: Path | None = typer.Option(None, help="As that of `kb build`."),
    precision: str = typer.Option("float32", help="As that of `kb build`."),
    force: bool = typer.Option(False, "--force", help="Replace the folder's files."),
) -> None:
    """concepts.jsonl + encoder -> accuracy of `spacy sapbert map` on held-out names

    Example: python -m benchmarks.mapping corpus/mesh/concepts.jsonl models/minilm
    results/mapping
    """
    check_outputs(folder, force=force)
    folder.mkdir(parents=True, exist_ok=True)
    chance = random.Random(seed)
    counts = (held_out, names, unknown)
    terms, kept = choose_terms([*read_concepts(concepts)], counts, chance)
    write_concepts(folder / "concepts.jsonl", kept)
    kb_path = folder / "kb"
    words = ["build", folder / "concepts.jsonl", kb_path, "--encoder", encoder]
    words += ["--ngrams", "--precision", precision, "--force"]
    run("kb", *words, *(["--reuse", reuse] if reuse else []))
    kb = load_kb(kb_path)
    for name, column in (("clean", terms), ("spoilt", spoil(terms, chance))):
        print_column(
            name,
            column,
            {
                "`map`": map_column(column, kb_path, folder, name),
                "the linker, terms as they are": link_plainly(column, kb),
                "character 3-grams": search_ngrams(column, kb),
                "equal names": match_names(column, kept),
            },
        )
    typer.echo(f"\n{machine_line()}")


if __name__ == "__main__":
    run_cli(main)
