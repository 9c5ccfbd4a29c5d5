"""Knowledge base → a pipeline that detects names and links them."""

from pathlib import Path
from typing import Annotated

import spacy
import typer

from spacy_sapbert.kb.opening import load_kb
from spacy_sapbert.system.terminal import msg
from spacy_sapbert.system.writing import check_outputs, write_folder_atomically

LICENCE = "see the licences of the vocabularies"


def assemble_pipeline(
    kb: Annotated[Path, typer.Argument(help="Folder of the knowledge base.")],
    output: Annotated[Path, typer.Argument(help="Folder of the pipeline to write.")],
    name: Annotated[str, typer.Option(help="Name, without the language.")] = "sapbert",
    version: Annotated[str, typer.Option(help="Version of the pipeline.")] = "0.1.0",
    lang: Annotated[str, typer.Option(help="Language of the tokenizer.")] = "en",
    force: Annotated[bool, typer.Option("--force", help="Replace the output.")] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", help="Print nothing but errors.")
    ] = False,
) -> None:
    """Write a pipeline of abbreviation detector, mention detector and linker.

    Example: python -m training assemble models/umls/kb models/umls/pipeline
    """
    check_outputs(output, force=force)
    manifest = load_kb(kb).manifest
    nlp = spacy.blank(lang)
    nlp.meta["name"] = name
    nlp.meta["version"] = version
    nlp.meta["license"] = LICENCE
    nlp.meta["description"] = (
        f"Links names of {manifest.counts.concepts:,} concepts "
        f"({'; '.join(manifest.sources) or 'sources not named'})"
    )
    nlp.add_pipe("sapbert_abbreviations")
    nlp.add_pipe("sapbert_mentions")
    # An ambiguous mention is shown as ambiguous, not linked by the order of ids.
    config = {"kb": str(kb), "ambiguous": "nil"}
    nlp.add_pipe("sapbert_linker", config=config)
    with write_folder_atomically(output) as part:
        nlp.to_disk(part)
    if not quiet:
        msg.good(f"Wrote {output}", f"spacy.load({str(output)!r})")
