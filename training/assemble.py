"""Knowledge base → a pipeline that detects names and links them."""

from pathlib import Path

import spacy
import typer
from spacy.language import Language
from wasabi import msg

from spacy_sapbert.kb.knowledge_base import load_kb
from spacy_sapbert.system.writing import write_folder_atomically

LICENCE = "see the licences of the vocabularies"


def assemble_pipeline(kb: Path, *, lang: str, name: str, version: str) -> Language:
    """Make a pipeline of abbreviation detector, mention detector and linker.

    name (str): Name of the pipeline, without the language.
    RAISES (SapbertError): If the knowledge base is damaged.
    """
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
    return nlp


def assemble_command(
    kb: Path = typer.Argument(..., help="Folder of the knowledge base."),
    output: Path = typer.Argument(..., help="Folder of the pipeline to write."),
    name: str = typer.Option("sapbert", help="Name, without the language."),
    version: str = typer.Option("0.1.0", help="Version of the pipeline."),
    lang: str = typer.Option("en", help="Language of the tokenizer."),
    quiet: bool = typer.Option(False, "--quiet", help="Print nothing but errors."),
) -> None:
    """Example: python -m training assemble models/umls/kb models/umls/pipeline"""
    nlp = assemble_pipeline(kb, lang=lang, name=name, version=version)
    with write_folder_atomically(output) as part:
        nlp.to_disk(part)
    if not quiet:
        msg.good(f"Wrote {output}", f"spacy.load({str(output)!r})")
