"""`spacy sapbert explain`: why a mention has its concept, or not the expected one."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ..errors import SapbertError
from ..formats.gold import NIL
from ..io.progress import format_count
from ..io.terminal import format_json, printable
from .app import app
from .options import (
    SETTING,
    Allow,
    AsJson,
    Deny,
    K,
    KbOrPipeline,
    Languages,
    LeastCosine,
    Pipeline,
    Sources,
    Threshold,
    Types,
    choose_pipeline,
    gather_filter,
    gather_options,
)

if TYPE_CHECKING:
    from ..evaluation.expected_concept import Expected
    from ..evaluation.explain import DecidedMeaning, Explanation

OTHERWISE = 3  # exit code


def format_lines(lines: dict[str, Any]) -> str:
    """Format words and texts, without control characters; empty texts are left out."""
    texts = {word: " ".join(str(text).split()) for word, text in lines.items() if text}
    return "\n".join(f"{word:<11}  {printable(text)}" for word, text in texts.items())


def format_names(title: str, header: Sequence[str], rows: Sequence[Sequence]) -> str:
    """Format a table of names; nothing without rows."""
    from ..formats.table import draw_table

    drawn = draw_table(rows, header).strip("\n")
    return f"{title}\n{drawn}" if rows else ""


def format_expected(expected: "Expected") -> str:
    """Format where the expected concept stands."""
    from ..evaluation.diagnose import CAUSES

    cause = CAUSES[expected.cause].meaning if expected.cause else ""
    if expected.given == NIL:
        return format_lines({"expected": f"{NIL}: {cause or 'It has no concept.'}"})
    retired = expected.cui not in (None, expected.given)
    types = f" ({', '.join(expected.types)})" if expected.types else ""
    return format_lines(
        {
            "expected": f"{expected.given}: {cause or 'It is the linked concept.'}",
            "cause": expected.cause,
            "now": f"{expected.cui}; {expected.given} was retired" if retired else "",
            "name": f"{expected.name}{types}" if expected.name else "",
            "nearest": expected.alias and f"{expected.alias}, {expected.score:.4f}",
            "rank": expected.rank,
            "filtered by": ", ".join(expected.filtered_by),
            "hierarchy": expected.relation
            and f"the first candidate is its {expected.relation}",
        }
    )


def format_decided(decided: "DecidedMeaning | None") -> str:
    """Format what people decided for a mention; "" = they did not."""
    if decided is None:
        return ""
    what = f"{decided.cui} {decided.name}".strip()
    count = f"{decided.documents:,} of {format_count(decided.total, 'document')}"
    return f"by people: {what}, in {count} that they annotated"


def format_explanation(explanation: "Explanation") -> str:
    """Format lines and tables."""
    first = explanation.candidates[0] if explanation.candidates else None
    note = f" ({explanation.note})" if explanation.note else ""
    concept = f"{first['cui']} {first['name']}" if first else ""
    replaced = explanation.text != explanation.mention
    least = explanation.least_cosine
    long_form = f"{explanation.text}, linked instead" if replaced else ""
    if explanation.defined and not replaced:
        long_form = f"{explanation.defined}, not used"
    lines: dict[str, Any] = {
        "mention": explanation.mention,
        "label": explanation.label,
        "long form": long_form,
        "truncated": explanation.truncated and "the encoder does not read all of it",
        "document": ", ".join(explanation.document),
        "concept": (concept if explanation.cui else NIL) + note,
        "decided": format_decided(explanation.decided),
        "probability": first
        and f"{first['probability']:.4f}, that the first candidate is right",
        "differs": "; ".join(explanation.differences),
        "threshold": f"{explanation.threshold:g}",
        "least score": least is not None and f"{least:g}",
    }
    columns = ("score", "CUI", "name", "alias")
    candidates = [
        (c["rank"], f"{c['score']:.4f}", c["cui"], c["name"], c["alias"])
        + (", ".join(c["types"]), c["tie"] or "")
        for c in explanation.candidates
    ]
    filtered = [
        (f"{n.score:.4f}", n.cui, n.name, n.alias, ", ".join(n.filtered_by))
        for n in explanation.filtered
    ]
    title = "candidates, the most likely first; score: cosine of mention and alias"
    parts = [
        format_lines(lines),
        format_names(title, ("rank", *columns, "types", "tie"), candidates),
        format_names("removed by the filter", (*columns, "by"), filtered),
        format_expected(explanation.expected) if explanation.expected else "",
        format_lines(
            {f"{n}.": text for n, text in enumerate(explanation.suggestions, 1)}
        ),
    ]
    return "\n\n".join(part for part in parts if part)


@app.command("explain")
def explain(
    kb: KbOrPipeline,
    mention: str | None = typer.Argument(
        None, help="The mention. [what `--context` marks]"
    ),
    context: str | None = typer.Option(
        None, help="Its text, with [[marks]] around the mention."
    ),
    label: str | None = typer.Option(
        None, help="Of the entity. [as the pipeline detects it]"
    ),
    expected: str | None = typer.Option(
        None, help=f"Id of the concept that it should have, or {NIL}."
    ),
    pipeline: Pipeline = None,
    k: K = None,
    threshold: Threshold = None,
    least_cosine: LeastCosine = None,
    types: Types = None,
    sources: Sources = None,
    languages: Languages = None,
    allow: Allow = None,
    deny: Deny = None,
    setting: list[str] = SETTING,
    as_json: AsJson = False,
) -> None:
    """kb/ + mention -> why it has this concept, and advice

    Example: spacy sapbert explain models/kb "heart atack" --expected C0027051

    Example: spacy sapbert explain models/pipeline --context "No [[MI]] on the echo."
    --expected C0026266

    Example: spacy sapbert explain models/kb cold --label DISEASE --setting
    'label_types={"DISEASE": ["T047"]}' --json

    Exit code: 0 = the mention has a concept, and the expected one if one is expected;
    3 = it has none, or another; 1 = an error; 2 = the options cannot be parsed.
    """
    from ..evaluation.explain import explain_mention
    from ..evaluation.regression import read_context
    from ..evaluation.regression_cases import Case, place_mention
    from ..pipeline.linker import fit_language
    from ..pipeline.running import complete_pipeline, load_pipeline

    def fail(what: str, got: str) -> SapbertError:
        return SapbertError(
            "E331",
            f'Expected {what}, but got {got}. Write it like `--context "No [[MI]] on '
            'the echo."`.',
        )

    mention, text, start = place_mention(mention, context, fail)
    case = Case(Path("--context"), 1, text, start, mention, (), label, None)
    filter = gather_filter(types, sources, languages, allow, deny)
    options = gather_options(
        setting, k=k, threshold=threshold, least_cosine=least_cosine, filter=filter
    )
    # Without a pipeline the language is not known, so names of all languages count.
    detector, name = choose_pipeline(kb, pipeline)
    nlp = load_pipeline(detector, lang=None if detector else "xx")
    linker = complete_pipeline(nlp, kb=name, options=options, detection=False)
    explanation = explain_mention(
        linker.kb,
        read_context(nlp, linker, case),
        options=fit_language(linker.options, nlp.vocab.lang),
        expected=expected,
    )
    if as_json:
        typer.echo(format_json(asdict(explanation)))
    else:
        typer.echo(format_explanation(explanation))
    right = (
        not explanation.expected.cause
        if explanation.expected
        else bool(explanation.cui)
    )
    if not right:
        raise typer.Exit(OTHERWISE)
