"""What the options of the linker bring: the tables of docs/numbers-linker.md."""

import warnings
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
import spacy
import typer
from spacy.language import Language
from spacy.tokens import Doc
from tqdm import tqdm
from wasabi import msg

from benchmarks.gold_docs import GOLD, read_golds
from benchmarks.harness import describe_machine, make_app, markdown_table, run_cli
from benchmarks.kb_options import measure_broader, measure_filters
from spacy_sapbert.errors import Errors, SapbertError
from spacy_sapbert.evaluation.accuracy import combine_parts, score_ranking
from spacy_sapbert.evaluation.compare import mcnemar_test
from spacy_sapbert.evaluation.evaluate import describe_kb, describe_versions
from spacy_sapbert.evaluation.gold_mentions import (
    Resolve,
    check_names,
    make_resolver,
    read_aliases,
)
from spacy_sapbert.evaluation.rankers import kb_lookup
from spacy_sapbert.formats.registry import READERS, read_docs
from spacy_sapbert.system.reading import file_digest
from spacy_sapbert.system.writing import write_json

KS = (1, 5)
# the labels of NCBI disease and BC5CDR
LABEL_TYPES = {
    **dict.fromkeys(
        ("Disease", "SpecificDisease", "DiseaseClass", "CompositeMention", "Modifier"),
        ("DISO",),
    ),
    "Chemical": ("CHEM",),
}
PLAIN, LABEL, LABEL_FILTER = "plain", "label", "label as filter"
ABBREVIATIONS = "abbreviations"
FUSIONS: dict[str, dict[str, Any]] = {
    "fusion weighted, 0.1": {"fusion": "weighted", "ngram_weight": 0.1},
    "fusion weighted, 0.2": {"fusion": "weighted", "ngram_weight": 0.2},
    "fusion rrf": {"fusion": "rrf"},
}

app = make_app()
app.command("filters")(measure_filters)
app.command("broader")(measure_broader)


@app.callback()
def options() -> None:
    """Measure the options of the linker.

    Example: python -m benchmarks.options filters models/kb mentions.tsv
    """


class Row(NamedTuple):
    """One line of the table.

    settings (dict[str, Any]): Of the linker.
    abbreviations (bool): Whether abbreviations are expanded.
    base (str | None): The line that it is compared with.
    """

    settings: dict[str, Any]
    abbreviations: bool = False
    base: str | None = PLAIN


class Outcome(NamedTuple):
    """The result of one line of the table for the mentions of a file.

    right (np.ndarray): Whether all parts are among the first k. Shape: (n, KS).
    decided (list[str | None]): What put each first candidate before a tied one; None
        without a tie.
    possible (np.ndarray): Whether one of the tied candidates is right. Shape: (n,).
    """

    right: np.ndarray
    decided: list[str | None]
    possible: np.ndarray


class GoldFile(NamedTuple):
    """Documents, and the right concepts of each mention of each; empty = not scored."""

    docs: list[Doc]
    golds: list[list[Any]]
    counts: dict[str, int]


def list_options(
    orders: Sequence[Sequence[str]], *, ngrams: bool = True
) -> dict[str, Row]:
    """Return the lines of the table with one option each.

    orders (Sequence[Sequence[str]]): Orders of vocabularies, for `source_rank`.
    ngrams (bool): Whether the knowledge base has 3-grams, for fusion.
    """
    none: dict[str, Any] = {"tie_evidence": ()}
    types = {"label_types": LABEL_TYPES}
    by_label = {"tie_evidence": ("label",), "label_types_use": "evidence", **types}
    rows = {
        PLAIN: Row(none, base=None),
        "preferred": Row({"tie_evidence": ("preferred",)}),
        LABEL: Row(by_label),
        LABEL_FILTER: Row({**none, "label_types_use": "filter", **types}),
    }
    for order in orders:
        settings = {"tie_evidence": ("source",), "source_rank": order}
        rows[f"source: {' > '.join(order)}"] = Row(settings)
    rows["coherence"] = Row({"tie_evidence": ("coherence",)})
    rows[ABBREVIATIONS] = Row(none, abbreviations=True)
    for name, settings in FUSIONS.items() if ngrams else ():
        rows[name] = Row({**none, **settings})
    return rows


def choose_steps(rows: dict[str, Row], gains: dict[str, float]) -> dict[str, Row]:
    """Combine the options that help, except fusion, one after the other.

    Evidence that helps orders ties, the most helpful first. Of the two uses of labels
    and of several orders of vocabularies the better one is used.

    gains (dict[str, float]): Gain in Acc@1 of each option.
    RETURNS (dict[str, Row]): Each line adds to the settings of the line before.
    """
    helping = sorted((n for n in gains if gains[n] > 0), key=lambda n: -gains[n])
    as_filter = LABEL_FILTER in helping and gains[LABEL_FILTER] > gains.get(LABEL, 0)
    settings: dict[str, Any] = {"tie_evidence": ()}
    for name in helping:
        evidence = rows[name].settings["tie_evidence"]
        if set(evidence) - {*settings["tie_evidence"]} and not (
            name == LABEL and as_filter
        ):
            both = (*settings["tie_evidence"], *evidence)
            settings = {**settings, **rows[name].settings, "tie_evidence": both}
    steps: dict[str, Row] = {}
    if settings["tie_evidence"]:
        steps[f"ties: {', '.join(settings['tie_evidence'])}"] = Row(settings)
    if as_filter:
        used = rows[LABEL_FILTER].settings
        more = {name: used[name] for name in ("label_types", "label_types_use")}
        base, before = last_row(rows, steps)
        settings = {**before.settings, **more}
        steps[f"+ {LABEL_FILTER}"] = Row(settings, base=base)
    if ABBREVIATIONS in helping:
        base, before = last_row(rows, steps)
        steps[f"+ {ABBREVIATIONS}"] = Row(before.settings, True, base)
    return steps


def last_row(rows: dict[str, Row], steps: dict[str, Row]) -> tuple[str, Row]:
    """Return the last step with its name, or the plain linker."""
    return ([(PLAIN, rows[PLAIN]), *steps.items()])[-1]


def list_fusions(rows: dict[str, Row], steps: dict[str, Row]) -> dict[str, Row]:
    """Return a line for each fusion on top of the steps."""
    base, before = last_row(rows, steps)
    return {
        f"+ {name}": Row({**before.settings, **fusion}, before.abbreviations, base)
        for name, fusion in FUSIONS.items()
        if name in rows
    }


def choose_fusion(fusions: dict[str, Row], gains: dict[str, float]) -> dict[str, Row]:
    """Return the best fusion, marked in its name if it does not help."""
    if not fusions:
        return {}
    best = max(fusions, key=lambda name: gains[name])
    return {best if gains[best] > 0 else f"{best} (not chosen)": fusions[best]}


def make_pipeline(kb: str) -> Language:
    """Return a pipeline that links the gold mentions."""
    nlp = spacy.blank("en")
    nlp.add_pipe("sapbert_abbreviations")
    nlp.add_pipe("sapbert_linker", config={"kb": kb, "spans_key": GOLD})
    return nlp


def read_gold_file(
    path: Path, nlp: Language, resolve: Resolve, prefix: str, format: str, limit: int
) -> GoldFile:
    """Read documents, and select the mentions whose ids are all in the vocabulary.

    RAISES (SapbertError): If no mention is left.
    """
    with warnings.catch_warnings():  # the span group has the mentions doc.ents lacks
        warnings.simplefilter("ignore", UserWarning)
        docs = [d for _, d in read_docs(path, nlp, format=format, spans_key=GOLD)]
    docs = docs[: limit or None]
    golds: list[list[Any]] = []
    counts = {"documents": len(docs), "mentions": 0, "without_id": 0, "judged": 0}
    for doc in docs:
        parts = [resolve(gold) for gold in read_golds(doc, prefix)]
        golds.append([combine_parts(p, "parts") if all(p) else [] for p in parts])
        counts["mentions"] += len(parts)
        counts["without_id"] += sum(not part for part in parts)
        counts["judged"] += sum(bool(part) for part in golds[-1])
    if not counts["judged"]:
        raise SapbertError(Errors.E730.format(mentions=counts["mentions"]))
    return GoldFile(docs, golds, counts)


def score_mention(
    candidates: Sequence[dict[str, Any]], parts: Sequence[Any], aliases: dict[str, str]
) -> tuple[list[bool], str | None, bool]:
    """Score the candidates of a mention in the order of the linker.

    parts (Sequence[frozenset[str]]): The right concepts of each part.
    RETURNS (tuple[list[bool], str | None, bool]): As the fields of `Outcome`.
    """
    cuis = [aliases.get(found["cui"], found["cui"]) for found in candidates]
    ranking = [(-float(rank), cui) for rank, cui in enumerate(dict.fromkeys(cuis))]
    right = [bool(score_ranking(ranking, parts, k)[0]) for k in KS]
    if not candidates:
        return right, None, False
    best = candidates[0]["score"]
    tied = [
        (best, cui)
        for cui, found in zip(cuis, candidates, strict=True)
        if found["score"] == best
    ]
    possible = bool(score_ranking(list(dict.fromkeys(tied)), parts, 1)[0])
    return right, candidates[0]["tie"], possible


def score_row(
    nlp: Language, file: GoldFile, row: Row, aliases: dict[str, str], title: str
) -> Outcome:
    """Link copies of the documents with the settings of a line, and score them."""
    disabled = [] if row.abbreviations else ["sapbert_abbreviations"]
    settings = {"sapbert_linker": row.settings}
    scores: list[tuple[list[bool], str | None, bool]] = []
    with nlp.select_pipes(disable=disabled):
        linked = nlp.pipe((doc.copy() for doc in file.docs), component_cfg=settings)
        bar = tqdm(linked, title, len(file.docs), disable=None, unit=" docs")
        for doc, gold in zip(bar, file.golds, strict=True):
            found = doc.spans[GOLD].attrs.get("candidates", [])
            scores += [
                score_mention(candidates, parts, aliases)
                for candidates, parts in zip(found, gold, strict=True)
                if parts
            ]
    right, decided, possible = zip(*scores, strict=True)
    return Outcome(np.array(right), list(decided), np.array(possible))


def describe_row(outcome: Outcome, base: Outcome | None) -> dict[str, Any]:
    """Return the accuracies of a line, and the difference of Acc@1 from its base."""
    means = outcome.right.mean(axis=0)
    found: dict[str, Any] = {
        f"acc@{k}": round(float(mean), 6) for k, mean in zip(KS, means, strict=True)
    }
    if base is not None:
        change = outcome.right[:, 0].astype(int) - base.right[:, 0]
        better, worse = int((change > 0).sum()), int((change < 0).sum())
        found["difference"] = round(float(change.mean()), 6)
        found |= {"better": better, "worse": worse, "p": mcnemar_test(worse, better)}
    return found


def mean_gains(
    files: Sequence[dict[str, Outcome]], rows: dict[str, Row]
) -> dict[str, float]:
    """Return the mean gain in Acc@1 of each line over its base; `files` by line."""
    return {
        name: fmean(
            float(file[name].right[:, 0].mean() - file[row.base].right[:, 0].mean())
            for file in files
        )
        for name, row in rows.items()
        if row.base is not None
    }


def describe_ties(outcomes: dict[str, Outcome]) -> dict[str, Any]:
    """Count ties at the first place, and what decides them.

    outcomes (dict[str, Outcome]): By line; one is `PLAIN`.
    RETURNS (dict[str, Any]): Number of `ties`, and of those with a right concept
        (`possible`). For each of the `lines` how many ties evidence decides, how many
        of these are right, how many the order of ids would get right, and how many of
        all ties are right.
    """
    plain = outcomes[PLAIN]
    tied = np.array([name is not None for name in plain.decided], dtype=bool)
    lines: dict[str, Any] = {}
    for name, outcome in outcomes.items():
        decides = tied & np.array([d not in (None, "id") for d in outcome.decided])
        lines[name] = {
            "decides": int(decides.sum()),
            "right_where_it_decides": int(outcome.right[decides, 0].sum()),
            "right_there_by_id": int(plain.right[decides, 0].sum()),
            "right": int(outcome.right[tied, 0].sum()),
        }
    possible = int(plain.possible[tied].sum())
    return {"ties": int(tied.sum()), "possible": possible, "lines": lines}


def measure_options(
    nlp: Language,
    train: dict[str, GoldFile],
    files: dict[str, GoldFile],
    aliases: dict[str, str],
    orders: Sequence[Sequence[str]],
) -> dict[str, Any]:
    """Measure every option alone, and combine those that help on `train`."""
    linker: Any = nlp.get_pipe("sapbert_linker")
    every = {**train, **files}
    outcomes: dict[str, dict[str, Outcome]] = {name: {} for name in every}

    def measure(names: Sequence[str], lines: dict[str, Row]) -> dict[str, float]:
        for name in names:
            for line, row in lines.items():
                title = f"{name}: {line}"
                found = score_row(nlp, every[name], row, aliases, title)
                outcomes[name][line] = found
        return mean_gains([outcomes[name] for name in names], lines)

    rows = list_options(orders, ngrams=bool(linker.kb.manifest.ngrams))
    steps: dict[str, Row] = {}
    tried = dict(rows)
    if train:
        steps = choose_steps(rows, measure([*train], rows))
        fusions = list_fusions(rows, steps)
        tried.update(steps, **fusions)
        measure([*train], steps)
        steps.update(choose_fusion(fusions, measure([*train], fusions)))
    rows.update(steps)
    measure([*files], rows)
    return {
        "rows": {name: row._asdict() for name, row in rows.items()},
        "steps": list(steps),
        "files": {
            name: {
                "chosen_on": name in train,
                **every[name].counts,
                "rows": {
                    line: describe_row(found[line], found.get(row.base or ""))
                    for line, row in (tried if name in train else rows).items()
                },
                "ties": describe_ties(found),
            }
            for name, found in outcomes.items()
        },
    }


def format_change(row: dict[str, Any]) -> str:
    """Format the difference from another line, in points."""
    if "difference" not in row:
        return "–"
    if not row["better"] and not row["worse"]:
        return "0"
    p = "p < 0.001" if row["p"] < 0.001 else f"p = {row['p']:.3f}"
    mentions = f"+{row['better']:,} −{row['worse']:,}"
    return f"{100 * row['difference']:+.2f} ({mentions}), {p}"


def format_results(data: dict[str, Any]) -> list[str]:
    """Format the tables of accuracy and ties in Markdown."""
    files = {n: file for n, file in data["files"].items() if not file["chosen_on"]}
    titles = [title for name in files for title in (name, "change", "Acc@5")]
    rows = []
    for line in data["rows"]:
        cells = [f"**{line}**" if line in data["steps"] else line]
        for file in files.values():
            row = file["rows"][line]
            cells += [f"{row['acc@1']:.4f}", format_change(row), f"{row['acc@5']:.4f}"]
        rows.append(cells)
    lines = []
    for name, file in data["files"].items():
        with_id = file["mentions"] - file["without_id"]
        use = "to choose on" if file["chosen_on"] else "measured"
        lines.append(
            f"- {name} ({use}): {file['documents']:,} documents, {file['judged']:,} of "
            f"{file['mentions']:,} mentions scored, {file['without_id']:,} without an "
            f"id, coverage {file['judged'] / with_id:.3f}."
        )
    lines += ["", *markdown_table(["Options", *titles], rows)]
    header = ("Options", "decides", "right there", "by id there", "right of all")
    shown = {
        name
        for name, row in data["rows"].items()
        if not row["abbreviations"] and not row["settings"].get("fusion")
    }
    for name, file in files.items():
        ties, judged = file["ties"]["ties"], file["judged"]
        counts = [
            (line, *(f"{count:,}" for count in found.values()))
            for line, found in file["ties"]["lines"].items()
            if line in shown
        ]
        lines += [
            "",
            f"**{name}**: {ties:,} of {judged:,} mentions ({100 * ties / judged:.1f} "
            "%) have a tie at the first place. One of the tied concepts is right for "
            f"{file['ties']['possible']:,}.",
            "",
            *markdown_table(header, counts),
        ]
    return lines


@app.command("all")
def measure_all(
    documents: list[Path] = typer.Argument(..., help="Annotated documents."),
    kb: Path = typer.Option(..., help="Folder of the knowledge base."),
    train: list[Path] = typer.Option(
        [], help="Documents to choose options on; may be repeated."
    ),
    format: str = typer.Option("pubtator", help=f"One of {', '.join(READERS)}."),
    prefix: str = typer.Option(
        "", help="Added to ids without a colon, e.g. MESH:", show_default=False
    ),
    aliases: Path | None = typer.Option(
        None, help="Lines: an id, a tab, the id that it is an alias of."
    ),
    source_rank: list[str] = typer.Option(
        [], help="Vocabularies, the best first: MSH,CTD; may be repeated."
    ),
    limit: int = typer.Option(0, min=0, help="First documents of each file; 0 = all."),
    output: Path | None = typer.Option(None, help="linker_options.json to write."),
) -> None:
    """annotated documents + kb/ -> table of every option, linker_options.json

    Each option is measured alone. Those that help on the files of `--train` are then
    combined, at last the fusion that helps most with them.

    Example: python -m benchmarks.options all corpus/dev.pubtator.gz --kb models/kb
    --train corpus/train.pubtator.gz --prefix MESH: --aliases aliases.tsv
    """
    check_names([*train, *documents])
    known = read_aliases(aliases) if aliases else {}
    nlp = make_pipeline(str(kb))
    linker: Any = nlp.get_pipe("sapbert_linker")
    resolve = make_resolver(kb_lookup(linker.kb), known)
    golds, chosen_on = (
        {p.name: read_gold_file(p, nlp, resolve, prefix, format, limit) for p in paths}
        for paths in (documents, train)
    )
    orders = [rank.split(",") for rank in source_rank]
    data = {
        "machine": {**describe_machine(), "versions": describe_versions()},
        "settings": {"prefix": prefix, "format": format, "limit": limit, "ks": KS},
        "kb": describe_kb(linker.kb),
        "inputs": {path.name: file_digest(path) for path in [*train, *documents]},
        **measure_options(nlp, chosen_on, golds, known, orders),
    }
    machine, info = data["machine"], data["kb"]
    versions = ", ".join(f"{name} {v}" for name, v in machine["versions"].items())
    typer.echo(f"{machine['cpu']}, {machine['cores']} cores; {versions}.")
    typer.echo(
        f"{info['folder']}: {info['counts']['concepts']:,} concepts, encoder "
        f"{info['encoder']['base']}.\n"
    )
    typer.echo("\n".join(format_results(data)))
    if output:
        write_json(output, data)
        msg.good(f"Wrote {output}")


if __name__ == "__main__":
    run_cli(app)
