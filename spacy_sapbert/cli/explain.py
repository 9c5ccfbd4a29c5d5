"""`spacy sapbert explain`: why a mention has its concept, and what would mend it."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer

from ..errors import Errors, SapbertError
from ..evaluation.explain import explain_mention
from ..evaluation.regression_cases import Case, place_mention
from ..evaluation.trace_context import read_context
from ..linking.options import change_options
from ..pipeline.annotations import NIL
from ..pipeline.running import complete_pipeline, load_pipeline
from .app import app
from .explain_output import show_explanation
from .filter_options import ALLOW, DENY, LANGUAGES, SOURCES, TYPES, gather_filter

OTHERWISE = 3  # exit code


def parse_settings(given: Sequence[str]) -> dict[str, Any]:
    """Read the settings of a linker from the command line.

    given (Sequence[str]): Like `fusion=rrf`; a value is JSON, or else a text.
    RETURNS (dict[str, Any]): Values by name.
    RAISES (SapbertError): If one has no name or no value.
    """
    settings: dict[str, Any] = {}
    for setting in given:
        name, equals, value = setting.partition("=")
        if not name or not equals or not value:
            raise SapbertError(Errors.E541)
        try:
            settings[name] = json.loads(value)
        except ValueError:
            settings[name] = value
    return settings


def make_case(mention: str | None, context: str | None, label: str | None) -> Case:
    """Make a case of what was asked.

    mention (str | None): The mention.
    context (str | None): Its text, maybe with marks around the mention.
    label (str | None): Of the entity.
    RETURNS (Case): The mention in its text.
    RAISES (SapbertError): If there is neither, or the mention is not in the text.
    """

    def fail(expected: str, got: str) -> SapbertError:
        return SapbertError(Errors.E540.format(expected=expected, got=got))

    mention, text, start = place_mention(mention, context, fail)
    return Case(Path("--context"), 1, text, start, mention, (), label, None)


def judge_link(explanation: dict[str, Any]) -> int:
    """Choose the exit code.

    explanation (dict[str, Any]): From `explain_mention`.
    RETURNS (int): 0 if the mention has a concept, and the expected one if one was
        expected; else 3.
    """
    expected = explanation["expected"]
    if expected is not None:
        return 0 if expected["state"] == "found" else OTHERWISE
    return 0 if explanation["cui"] else OTHERWISE


@app.command("explain")
def explain(
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
    kb: str | None = typer.Option(
        None, help="Folder or name of a knowledge base. [the installed]"
    ),
    pipeline: str | None = typer.Option(
        None, help="Folder or package, with a linker. [blank English and `--kb`]"
    ),
    k: int | None = typer.Option(
        None, "-k", "--k", min=1, max=1000, help="Candidates. [as the linker: 10]"
    ),
    threshold: float | None = typer.Option(
        None,
        min=-1,
        max=1,
        help="Cosine under which it is NIL. [as the linker, the kb]",
    ),
    types: str | None = TYPES,
    sources: str | None = SOURCES,
    languages: str | None = LANGUAGES,
    allow: Path | None = ALLOW,
    deny: Path | None = DENY,
    setting: list[str] = typer.Option(
        [],
        help="Another setting of the linker, to try it: fusion=rrf. May be repeated.",
    ),
    exact: bool = typer.Option(
        True, help="Compare with all names too, to see what the index misses."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """mention + kb/ -> why it has this concept, and what would mend it

    Example: spacy sapbert explain "heart atack" --expected C0027051 --kb models/kb

    Example: spacy sapbert explain --context "No [[MI]] on the echo." --pipeline
    models/pipeline --expected C0026266

    Example: spacy sapbert explain cold --kb models/kb --label DISEASE --setting
    'label_types={"DISEASE": ["T047"]}' --json

    Exit code: 0 = the mention has a concept, and the expected one if one is expected;
    3 = it has none, or another; 1 = an error, which is told in a line; 2 = the options
    cannot be understood.
    """
    case = make_case(mention, context, label)
    settings = parse_settings(setting)
    filter = gather_filter(types, sources, languages, allow, deny)
    nlp = load_pipeline(pipeline)
    linker = complete_pipeline(
        nlp, kb=kb, k=k, threshold=threshold, filter=filter, detection=False
    )
    explanation = explain_mention(
        linker.kb,
        read_context(nlp, linker, case),
        options=change_options(linker.options, settings),
        expected=expected,
        exact=exact,
    )
    if as_json:
        typer.echo(json.dumps(explanation, indent=2, ensure_ascii=False))
    else:
        typer.echo(show_explanation(explanation))
    if code := judge_link(explanation):
        raise typer.Exit(code)
