"""`spacy sapbert assemble`: write a pipeline that detects names and links them."""

from pathlib import Path
from typing import Any

import typer

from ..io.terminal import msg
from .app import app
from .options import Force, KbName, Pipeline, Quiet


@app.command("assemble")
def assemble(
    kb: KbName,
    output: Path = typer.Argument(..., help="Folder of the pipeline to write."),
    pipeline: Pipeline = None,
    name: str = typer.Option(
        "sapbert", "--name", "-n", help="Name, without the language."
    ),
    version: str = typer.Option("0.1.0", help="Version of the pipeline."),
    lang: str = typer.Option("en", help="Language of the tokenizer."),
    kb_package: str | None = typer.Option(
        None,
        help="Refer to the knowledge base by the name that `kb package` gives it, "
        "and do not copy it.",
    ),
    stop_names: Path | None = typer.Option(
        None,
        help="Names that are not detected, from `stop-names`. [common words of the "
        "language]",
    ),
    short_forms: bool = typer.Option(
        False,
        "--short-forms",
        help="Detect a short form that the document defines if its long form is a "
        "name, and only then.",
    ),
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """kb/ -> pipeline for spacy.load

    It detects abbreviations and the names of the knowledge base, or with `--pipeline`
    what a trained pipeline detects, and links them.

    Example: spacy sapbert assemble models/kb models/pipeline --name umls

    Example: spacy sapbert assemble models/kb packages/pipeline --name umls --kb-package
    umls_2024aa

    Example: spacy sapbert assemble models/kb models/pipeline --pipeline
    models/ner/model-best
    """
    from ..pipeline.assembly import assemble_pipeline
    from ..pipeline.stop_names import read_stop_names

    if pipeline is not None and (short_forms or stop_names is not None):
        raise typer.BadParameter(
            "`--pipeline` detects mentions in its own way: remove it, or remove "
            "`--stop-names` and `--short-forms`."
        )
    mentions: dict[str, Any] = {"short_forms": short_forms}
    if stop_names is not None:
        mentions["stop_names"] = read_stop_names(stop_names)
    assemble_pipeline(
        kb,
        output,
        detector=pipeline,
        name=name,
        version=version,
        lang=lang,
        kb_package=kb_package,
        mentions=mentions,
        force=force,
    )
    if not quiet:
        msg.good(f"Wrote {output}", f"spacy.load({str(output)!r})")
