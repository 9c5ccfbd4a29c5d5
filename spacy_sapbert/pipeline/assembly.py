"""Knowledge base → a pipeline that detects mentions and links them."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import SapbertError
from ..io.writing import (
    FolderKind,
    check_folder_output,
    write_folder_atomically,
    write_json,
)
from ..kb.knowledge_base import load_kb
from ..kb.packages import check_package_name, format_requirement, project_name
from .running import ABBREVIATIONS, LINKER, MENTIONS, load_pipeline

if TYPE_CHECKING:
    from spacy.language import Language

ADDED = (ABBREVIATIONS, LINKER)  # to every pipeline
LICENCE = "see the licences of the vocabularies"
WRITTEN = "assembled.json"  # says that `assemble` wrote a folder, and from what
PARTS = (
    *("config.cfg", "meta.json", "tokenizer", "vocab", "tok2vec", "transformer"),
    "regression",  # kept by `spacy sapbert regress --keep`
)


def pipeline_folder(nlp: "Language") -> FolderKind:
    """Return which folders `assemble` may replace."""
    parts = {*PARTS, WRITTEN, "ner", MENTIONS, *ADDED, *nlp.pipe_names}
    return FolderKind(
        "a pipeline that `assemble` wrote",
        WRITTEN,
        lambda name: name.partition("/")[0] in parts,
    )


def assemble_pipeline(
    kb: str | Path,
    output: str | Path,
    *,
    detector: str | Path | None = None,
    name: str = "sapbert",
    version: str = "0.1.0",
    lang: str = "en",
    kb_package: str | None = None,
    mentions: dict[str, Any] | None = None,
    force: bool = False,
) -> None:
    """Write a pipeline of mention detector, abbreviation detector and linker.

    Args:
        kb: Folder or name of the knowledge base. A folder is copied into the pipeline,
            an installed one is referred to by its name.
        output: Folder of the pipeline to write.
        detector: Folder or package of a pipeline that sets entities, e.g. of a trained
            NER; None = detect the names of the knowledge base.
        name: Of the pipeline, without the language.
        version: Of the pipeline.
        lang: Language of the tokenizer; with a detector, its own counts.
        kb_package: Name under which `package_kb` packages the knowledge base: the
            pipeline refers to this package, and requires it.
        mentions: Settings of `sapbert_mentions`, without a detector.
        force: Replace an existing folder.

    Examples:
        >>> assemble_pipeline("models/sample/kb", Path("models/pipeline"))
        >>> spacy.load("models/pipeline").pipe_names
        ['sapbert_abbreviations', 'sapbert_mentions', 'sapbert_linker']
    """
    if detector is None:
        nlp = load_pipeline(None, lang=lang)
    else:
        nlp = load_pipeline(str(detector))
    output = Path(output)
    kind = pipeline_folder(nlp)
    check_folder_output(output, kind, force=force)
    for component in ADDED:
        if component in nlp.component_names:
            raise SapbertError(
                "E573",
                f"Expected a pipeline that sets entities, but {detector} has "
                f"{component!r} already. Name the pipeline that it was made of, or "
                "use this one as it is.",
            )
    opened = load_kb(kb)
    manifest = opened.manifest
    sources = "; ".join(manifest.sources) or "sources not named"
    nlp.meta.update(
        name=name,
        version=version,
        license=LICENCE,
        description=f"Links names of {manifest.counts.concepts:,} concepts ({sources})",
    )
    nlp.add_pipe(ABBREVIATIONS)
    if detector is None:
        nlp.add_pipe(MENTIONS, config=mentions or {})
    # An ambiguous mention is shown as ambiguous, not linked by the order of ids.
    config = {"ambiguous": "nil"}
    left_out: list[str] = []
    if not Path(kb).is_dir():
        config["kb"] = str(kb)
    linker = nlp.add_pipe(LINKER, config=config)
    if kb_package is not None:
        check_package_name(kb_package)
        package = {"kb": kb_package, "kb_digest": manifest.digest}
        nlp.get_pipe_config(LINKER).update(package)  # need not be installed
        nlp.meta["requirements"] = [project_name(kb_package)]
        left_out = [LINKER]  # it has nothing but the knowledge base
    elif Path(kb).is_dir():
        linker.kb = opened  # type: ignore[attr-defined]
        others = nlp.meta.get("requirements", [])
        nlp.meta["requirements"] = [*others, format_requirement(manifest)]
    with write_folder_atomically(output, kind) as part:
        nlp.to_disk(part, exclude=left_out)
        made_of = None if detector is None else Path(detector).name
        write_json(part / WRITTEN, {"detector": made_of})
