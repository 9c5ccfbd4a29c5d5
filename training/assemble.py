"""kb/ → a whole pipeline that detects names and links them."""

from pathlib import Path

import spacy
import typer
from spacy.language import Language
from wasabi import msg

from training.errors import SapbertError
from spacy_sapbert.kb.knowledge_base import load_kb
from spacy_sapbert.system.writing import write_folder_atomically

LICENCE = "see the licences of the vocabularies"


def assemble_pipeline(kb: Path, *, lang: str, name: str, version: str) -> Language:
    """Make a pipeline of a mention detector and a linker over one knowledge base.

    kb (Path): The knowledge base.
    lang (str): Language of the tokenizer, e.g. "en".
    name (str): Of the pipeline, without the language.
    version (str): Of the pipeline.
    RETURNS (Language): The pipeline.
    RAISES (SapbertError): If the knowledge base is damaged.
    """
    meta = load_kb(kb).meta
    nlp = spacy.blank(lang)
    nlp.meta["name"] = name
    nlp.meta["version"] = version
    nlp.meta["license"] = LICENCE
    nlp.meta["description"] = (
        f"Links names of {meta['counts']['concepts']:,} concepts "
        f"({'; '.join(meta['sources']) or 'sources not named'})"
    )
    nlp.add_pipe("sapbert_mentions")
    nlp.add_pipe("sapbert_linker", config={"kb": str(kb)})
    return nlp


def main(
    kb: Path = typer.Argument(..., help="Folder of the knowledge base."),
    output: Path = typer.Argument(..., help="Folder of the pipeline to write."),
    name: str = typer.Option("sapbert", help="Of the pipeline, without the language."),
    version: str = typer.Option("0.1.0", help="Of the pipeline."),
    lang: str = typer.Option("en", help="Language of the tokenizer."),
    quiet: bool = typer.Option(False, "--quiet", help="Print nothing but errors."),
) -> None:
    """kb/ -> pipeline folder for spacy.load

    Example: python -m training.assemble models/umls/kb models/umls/pipeline
    """
    try:
        nlp = assemble_pipeline(kb, lang=lang, name=name, version=version)
        with write_folder_atomically(output) as part:
            nlp.to_disk(part)
    except SapbertError as error:
        msg.fail(str(error), exits=1)
    if not quiet:
        msg.good(f"Wrote {output}", f"spacy.load({str(output)!r})")


if __name__ == "__main__":
    typer.run(main)
