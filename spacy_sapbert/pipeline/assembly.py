"""Knowledge base → a pipeline that detects names and links them."""

from pathlib import Path

from ..io.writing import (
    FolderKind,
    check_folder_output,
    write_folder_atomically,
)
from ..kb.knowledge_base import load_kb
from ..kb.packages.packaging import check_package_name, project_name

LICENCE = "see the licences of the vocabularies"
PIPELINE_PARTS = (
    "config.cfg",
    "meta.json",
    "tokenizer",
    "vocab",
    "sapbert_abbreviations",
    "sapbert_mentions",
    "sapbert_linker",
)
PIPELINE_FOLDER = FolderKind(
    "a pipeline that `assemble` wrote",
    "sapbert_mentions/settings.json",  # a pipeline of spaCy alone has none
    lambda name: name.partition("/")[0] in PIPELINE_PARTS,
)


def assemble_pipeline(
    kb: str | Path,
    output: Path,
    *,
    name: str = "sapbert",
    version: str = "0.1.0",
    lang: str = "en",
    kb_package: str | None = None,
    force: bool = False,
) -> None:
    """Write a pipeline of abbreviation detector, mention detector and linker.

    Args:
        kb: Folder or name of the knowledge base. A folder is copied into the pipeline,
            an installed one is referred to by its name.
        output: Folder of the pipeline to write.
        name, version: Of the pipeline; the name without the language.
        kb_package: Name under which `package_kb` packages the knowledge base: the
            pipeline refers to this package, and requires it.
        force: Replace an existing folder.

    Raises:
        SapbertError: If the knowledge base is damaged, the output exists, or the name
            of the package is not valid.
    """
    import spacy

    check_folder_output(output, PIPELINE_FOLDER, force=force)
    opened = load_kb(kb)
    manifest = opened.manifest
    nlp = spacy.blank(lang)
    sources = "; ".join(manifest.sources) or "sources not named"
    nlp.meta.update(
        name=name,
        version=version,
        license=LICENCE,
        description=f"Links names of {manifest.counts.concepts:,} concepts ({sources})",
    )
    nlp.add_pipe("sapbert_abbreviations")
    nlp.add_pipe("sapbert_mentions")
    # An ambiguous mention is shown as ambiguous, not linked by the order of ids.
    config: dict[str, str] = {"ambiguous": "nil"}
    left_out: list[str] = []
    if kb_package is not None:
        check_package_name(kb_package)
        config |= {"kb": kb_package, "kb_digest": manifest.digest}
        nlp.meta["requirements"] = [project_name(kb_package)]
        left_out = ["sapbert_linker"]  # it has nothing but the knowledge base
    elif not Path(kb).is_dir():
        config["kb"] = str(kb)
    linker = nlp.add_pipe("sapbert_linker", config=config)
    if not left_out and Path(kb).is_dir():
        linker.kb = opened  # type: ignore[attr-defined]
    with write_folder_atomically(output, PIPELINE_FOLDER) as part:
        nlp.to_disk(part, exclude=left_out)
