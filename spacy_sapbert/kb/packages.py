"""Folder of a knowledge base → an installable wheel, if the licences permit it."""

import re
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

from ..errors import SapbertError
from ..io.version import __version__
from ..io.writing import CURRENT, check_outputs, write_atomically
from ..linking.sources import UMLS_LICENCE, Licence, find_licence
from ..vocabularies.releases import SourceRelease
from .folder.layout import FILE
from .folder.publication import ONLY, format_copy
from .folder.records import CARD, ENCODER, Manifest, Vocabulary
from .folder.versions import ENTRY_POINTS
from .indexes.hnsw import MOST_EXACT_ROWS
from .knowledge_base import KnowledgeBase, load_kb

# as MRSAB has it; 0 = no additional restriction
CATEGORY = re.compile(r"UMLS restriction category [1-9]")

INIT = '''"""A knowledge base for spacy-sapbert in the path `folder`, and its digest."""

from pathlib import Path

folder = Path(__file__).parent / "kb"
digest = {digest!r}
'''

METADATA = """Metadata-Version: 2.1
Name: {project}
Version: {version}
Summary: {concepts} concepts for spacy-sapbert, digest {digest}
Requires-Dist: {requirement}
Description-Content-Type: text/markdown

{description}"""

WHEEL = """Wheel-Version: 1.0
Generator: spacy-sapbert
Root-Is-Purelib: true
Tag: py3-none-any
"""


def check_package_name(name: str) -> None:
    expected = "a name of small letters, digits and underscores"
    check_setting("--name", expected, r"[a-z][a-z0-9_]*", name)


def check_version(version: str) -> None:
    check_setting("--version", "a version like 0.1.0", r"\d+(\.\d+)*", version)


def check_setting(option: str, expected: str, pattern: str, value: str) -> None:
    if not re.fullmatch(pattern, value):
        raise SapbertError(
            "E331", f"Expected {expected}, but got {value!r}. Correct `{option}`."
        )


def project_name(name: str) -> str:
    return f"sapbert-kb-{name.replace('_', '-')}"


def package_kb(
    kb: str | Path,
    output: str | Path,
    *,
    name: str,
    version: str,
    may_distribute: Sequence[str] = (),
    force: bool = False,
) -> Path:
    """Build an installable wheel of a knowledge base.

    Args:
        kb: The folder of the knowledge base, which is verified first.
        output: The folder for the wheel.
        name: Name for `kb = "…"` in a config.
        may_distribute: Sources of names with a licence that limits who may have them,
            which the user has the right to distribute.
        force: Replace an existing wheel.

    Returns:
        The path of the wheel.
    """
    check_package_name(name)
    check_version(version)
    wheel = Path(output) / f"sapbert_kb_{name}-{version}-py3-none-any.whl"
    check_outputs(wheel, force=force)
    opened = load_kb(kb)
    check_distribution(current_vocabularies(opened), may_distribute)
    write_wheel(opened, wheel, name, version)
    return wheel


def format_requirement(manifest: Manifest) -> str:
    """Return what pip needs to install for a knowledge base: the least that links."""
    backend, rows = manifest.index.backend, manifest.counts.rows
    needed = {
        "faiss": backend == "faiss",
        "hnsw": backend == "hnsw" and rows > MOST_EXACT_ROWS,
        "torch": "onnx" not in manifest.engines,
    }
    extras = ",".join(extra for extra, is_needed in needed.items() if is_needed)
    return f"spacy-sapbert{f'[{extras}]' if extras else ''}>={__version__}"


def write_wheel(kb: KnowledgeBase, wheel: Path, name: str, version: str) -> None:
    """The model card of the encoder, with its accuracy, is the description.

    SOURCE: https://packaging.python.org/specifications/binary-distribution-format/
    """
    module, digest = f"sapbert_kb_{name}", kb.manifest.digest
    folder, info = f"{module}/kb/{ONLY}", f"{module}-{version}.dist-info"
    card = f"{ENCODER}/{CARD}"
    has_card = card in kb.manifest.files
    metadata = METADATA.format(
        project=project_name(name),
        version=version,
        concepts=kb.manifest.counts.concepts,
        digest=digest,
        requirement=format_requirement(kb.manifest),
        description=kb.version.path(card).read_text("utf8") if has_card else "",
    )
    entry_point = f"[{ENTRY_POINTS}]\n{name} = {module}:folder\n"
    contents = {
        f"{module}/__init__.py": INIT.format(digest=digest).encode(),
        f"{module}/kb/{CURRENT}": f"{ONLY}\n".encode(),
        f"{folder}/{FILE}": format_copy(kb.manifest),
        f"{info}/METADATA": metadata.encode(),
        f"{info}/WHEEL": WHEEL.encode(),
        f"{info}/entry_points.txt": entry_point.encode(),
    }
    records = [f"{info}/RECORD,,"]
    with write_atomically(wheel) as file, ZipFile(file, "w", ZIP_DEFLATED) as archive:
        for path, file_record in kb.manifest.files.items():
            archive.write(kb.version.path(path), f"{folder}/{path}")
            sha = bytes.fromhex(file_record.sha256)
            records.append(format_record(f"{folder}/{path}", sha, file_record.size))
        for path, content in contents.items():
            archive.writestr(path, content)
            records.append(format_record(path, sha256(content).digest(), len(content)))
        archive.writestr(f"{info}/RECORD", "\n".join(records) + "\n")


def format_record(path: str, digest: bytes, size: int) -> str:
    return f"{path},sha256={urlsafe_b64encode(digest).decode().rstrip('=')},{size}"


def list_vocabularies(
    counts: Mapping[str, int], releases: Mapping[str, SourceRelease]
) -> list[Vocabulary]:
    """Return the sources of so many names, and "UMLS" if it is in `releases`."""
    vocabularies = []
    umls = {"UMLS": 0} if "UMLS" in releases else {}
    for source, names in {**counts, **umls}.items():
        known = releases.get(source, SourceRelease())
        licence = known.licence or getattr(find_licence(source), "name", "")
        vocabularies.append(
            Vocabulary(
                source=source, names=names, release=known.release, licence=licence
            )
        )
    return vocabularies


def current_vocabularies(kb: KnowledgeBase) -> list[Vocabulary]:
    """Return the sources of all names that a knowledge base has, also of edits."""
    releases = {
        known.source: SourceRelease(release=known.release, licence=known.licence)
        for known in kb.manifest.vocabularies or ()
    }
    return list_vocabularies(kb.store.count_sources(), releases)


def describe_vocabulary(vocabulary: Vocabulary) -> str:
    """Return a vocabulary in words: "MSH 2026 (1,234 names; licence)"."""
    release = f" {vocabulary.release}" if vocabulary.release else ""
    names = [f"{vocabulary.names:,} names"] if vocabulary.names else []
    words = "; ".join([*names, vocabulary.licence or "licence unknown"])
    return f"{vocabulary.source}{release} ({words})"


def find_limit(vocabulary: Vocabulary) -> Licence | None:
    """Return the licence that limits who may have a vocabulary; None = unknown."""
    known = find_licence(vocabulary.source)
    if known is not None and known.limit:
        return known
    if CATEGORY.match(vocabulary.licence):
        limit = "the UMLS restricts this source"
        return Licence(vocabulary.licence, UMLS_LICENCE.address, limit)
    return None


def list_unknown(kb: KnowledgeBase) -> list[str]:
    return [known.source for known in current_vocabularies(kb) if not known.licence]


def check_distribution(
    vocabularies: Sequence[Vocabulary], permitted: Sequence[str]
) -> None:
    """Raise an error if a licence limits who may have a source, unless permitted."""
    limits = {known.source: find_limit(known) for known in vocabularies}
    refused = {s: terms for s, terms in limits.items() if terms and s not in permitted}
    if refused:
        reasons = "; ".join(
            f"{source} ({terms.name}: {terms.limit}, {terms.address})"
            for source, terms in refused.items()
        )
        names = ",".join(dict.fromkeys([*permitted, *refused]))
        raise SapbertError(
            "E424",
            "Expected a knowledge base that may be distributed, but it has names of "
            f"{reasons}. Read the terms; if they permit a wheel for all who can get "
            f"it, pass `--may-distribute {names}`.",
        )
