"""Names that a vocabulary lacks: which mentions other vocabularies and forms name."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path

import typer

from benchmarks.harness import print_table, run_cli
from spacy_sapbert.evaluation.gold_mentions import (
    make_resolver,
    read_aliases,
    read_mentions,
)
from spacy_sapbert.linking.name_variants import Names, choose_variant, list_variants
from spacy_sapbert.linking.surface_forms import is_abbreviation, name_form
from spacy_sapbert.vocabularies.concepts import read_concepts

Vocabulary = tuple[dict[str, set[str]], dict[str, str]]  # form → ids; id → current id


def read_names(path: Path) -> Vocabulary:
    """Read the names and ids of concepts.jsonl."""
    names: dict[str, set[str]] = defaultdict(set)
    cuis: dict[str, str] = {}
    for concept in read_concepts(path):
        cuis.update(dict.fromkeys([*concept.retired, concept.cui], concept.cui))
        for alias in concept.aliases:
            names[name_form(alias)].add(concept.cui)
    return names, cuis


def count_named(
    mentions: Path, vocabulary: Vocabulary, more: Vocabulary, aliases: Mapping[str, str]
) -> Counter[str]:
    """Count the mentions of one concept without an exact name, and what names them."""
    (names, cuis), (extended, _) = vocabulary, more
    forms = sorted(form for form in extended if not is_abbreviation(form))
    numbers = {cui: number for number, cui in enumerate(sorted({*cuis.values()}))}
    rows = {
        form: Names({row}, {numbers[cui] for cui in extended[form]})
        for row, form in enumerate(forms)
    }
    resolve = make_resolver(cuis.get, dict(aliases))
    counts: Counter[str] = Counter()
    for gold in read_mentions(mentions, bars_join_parts=True):
        parts = resolve(gold)
        if len(parts) != 1 or not parts[0]:
            continue
        counts["mentions"] += 1
        form = name_form(gold.mention)
        if form in names:
            continue
        counts["without"] += 1
        by, found = "names", extended.get(form, set())
        if not found:
            row = choose_variant(list_variants(form), rows)
            by, found = "forms", extended[forms[row]] if row is not None else set()
        if found:
            current = {aliases.get(cui, cui) for cui in found}
            counts[f"{by} right" if current & parts[0] else f"{by} wrong"] += 1
    return counts


def main(
    concepts: Path = typer.Argument(..., help="concepts.jsonl."),
    mentions: list[Path] = typer.Argument(..., help="Gold mentions."),
    extended: Path | None = typer.Option(
        None, help="The same with --xrefs. [the same]"
    ),
    aliases: Path | None = typer.Option(None, help="As that of evaluate."),
) -> None:
    """concepts.jsonl + mentions.tsv -> table of mentions that get an exact name

    Example: python -m benchmarks.names medic.jsonl dev.tsv --extended medic-x.jsonl
    """
    vocabulary = read_names(concepts)
    more = vocabulary if extended is None else read_names(extended)
    same = read_aliases(aliases) if aliases else {}
    table = []
    for path in mentions:
        n = count_named(path, vocabulary, more, same)
        pairs = [
            f"{n[f'{by} right']} : {n[f'{by} wrong']}" for by in ("names", "forms")
        ]
        table.append((path.name, f"{n['mentions']:,}", f"{n['without']:,}", *pairs))
    header = ("File", "Mentions", "Without a name", "By added names", "By other forms")
    print_table(header, table)


if __name__ == "__main__":
    run_cli(main)
