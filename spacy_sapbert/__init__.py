"""Link entities of spaCy pipelines to UMLS or any vocabulary with SapBERT encoders.

The public names are imported when they are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .io.version import __version__

# public name: module that defines it
PUBLIC = {
    "Candidate": "linking.candidates",
    "Concept": "vocabularies.concepts",
    "EncoderConfig": "encoder.encoder",
    "Filter": "linking.filters",
    "KnowledgeBase": "kb.knowledge_base",
    "LinkBatches": "distributed.link_batches",
    "LinkJob": "pipeline.link_files",
    "LinkOptions": "linking.options",
    "Linked": "linking.link",
    "SapbertError": "errors",
    "Report": "vocabularies.report",
    "Updater": "verification.updates",
    "Verifier": "verification.verdicts",
    "add_concepts": "kb.edits.change",
    "assemble_pipeline": "pipeline.assembly",
    "build_kb": "kb.building.build",
    "link_files": "pipeline.link_files",
    "load_kb": "kb.knowledge_base",
    "package_kb": "kb.packages",
    "read_concepts": "vocabularies.concepts",
    "read_corpus": "formats.corpus",
    "read_docs": "formats.gold_docs",
    "read_vocabulary": "vocabularies.reader_table",
    "remove_concepts": "kb.edits.change",
    "teach": "pipeline.teaching",
    "write_concepts": "vocabularies.concepts",
    "write_linked": "formats.format_table",
}
__all__ = [*PUBLIC, "__version__"]  # noqa: PLE0604

if TYPE_CHECKING:
    from .distributed.link_batches import LinkBatches as LinkBatches
    from .encoder.encoder import EncoderConfig as EncoderConfig
    from .errors import SapbertError as SapbertError
    from .formats.corpus import read_corpus as read_corpus
    from .formats.format_table import write_linked as write_linked
    from .formats.gold_docs import read_docs as read_docs
    from .kb.building.build import build_kb as build_kb
    from .kb.edits.change import add_concepts as add_concepts
    from .kb.edits.change import remove_concepts as remove_concepts
    from .kb.knowledge_base import KnowledgeBase as KnowledgeBase
    from .kb.knowledge_base import load_kb as load_kb
    from .kb.packages import package_kb as package_kb
    from .linking.candidates import Candidate as Candidate
    from .linking.filters import Filter as Filter
    from .linking.link import Linked as Linked
    from .linking.options import LinkOptions as LinkOptions
    from .pipeline.assembly import assemble_pipeline as assemble_pipeline
    from .pipeline.link_files import LinkJob as LinkJob
    from .pipeline.link_files import link_files as link_files
    from .pipeline.teaching import teach as teach
    from .verification.updates import Updater as Updater
    from .verification.verdicts import Verifier as Verifier
    from .vocabularies.concepts import Concept as Concept
    from .vocabularies.concepts import read_concepts as read_concepts
    from .vocabularies.concepts import write_concepts as write_concepts
    from .vocabularies.reader_table import read_vocabulary as read_vocabulary
    from .vocabularies.report import Report as Report


def __getattr__(name: str) -> Any:
    if name not in PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{PUBLIC[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *PUBLIC})
