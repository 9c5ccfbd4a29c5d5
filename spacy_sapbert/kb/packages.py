"""Folder of a knowledge base → an installable wheel, if the licences permit it."""

import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryDirectory

from ..errors import SapbertError
from ..io.temporary_db import no_temporary_space
from ..io.version import __version__
from ..io.writing import check_outputs, write_atomically
from ..linking.sources import UMLS_LICENCE, Licence, find_licence
from ..vocabularies.releases import SourceRelease
from .folder.publication import save_copy
from .folder.records import Vocabulary
from .folder.versions import ENTRY_POINTS
from .knowledge_base import KnowledgeBase, load_kb
from .store import Store

# as MRSAB has it; 0 = no additional restriction
CATEGORY = re.compile(r"UMLS restriction category [1-9]")

INIT = '''"""A knowledge base for spacy-sapbert in the path `folder`, and its digest."""

from pathlib import Path

folder = Path(__file__).parent / "kb"
digest = {digest!r}
'''

SETUP = """from setuptools import setup

setup(
    name={project!r},
    version={version!r},
    description={description!r},
    packages=[{module!r}],
    package_data={{{module!r}: ["kb/**/*"]}},
    install_requires=["spacy-sapbert>={minimum}"],
    entry_points={{{group!r}: ["{name} = {module}:folder"]}},
)
"""


def check_package_name(name: str) -> None:
    expected = "a name of small letters, digits and underscores"
    check_setting("--name", expected, r"[a-z][a-z0-9_]*", name)


def check_version(version: str) -> None:
    check_setting("--version", "a version like 0.1.0", r"\d+(\.\d+)*", version)


def check_setting(option: str, expected: str, pattern: str, value: str) -> None:
    """Raise an error unless the name or the version of a package has its form."""
    if not re.fullmatch(pattern, value):
        raise SapbertError(
            "E316", f"Expected {expected}, but got {value!r}. Correct `{option}`."
        )


def project_name(name: str) -> str:
    """Return the name for pip of the package of a knowledge base."""
    return f"sapbert-kb-{name.replace('_', '-')}"


def package_kb(
    kb: Path,
    output: Path,
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
    module = f"sapbert_kb_{name}"
    check_outputs(output / f"{module}-{version}-py3-none-any.whl", force=force)
    opened = load_kb(kb)
    check_distribution(current_vocabularies(opened), may_distribute)
    try:
        with TemporaryDirectory(
            prefix="sapbert-package-", ignore_cleanup_errors=True
        ) as temporary:
            built = build_wheel(opened, Path(temporary), name, version)
            wheel = output / built.name
            with open(built, "rb") as content, write_atomically(wheel) as file:
                copyfileobj(content, file)
    except OSError as error:  # of the output it would be another one
        folder, reason = tempfile.tempdir or "TMPDIR", error.strerror or error
        raise no_temporary_space(folder=folder, reason=reason) from error
    return wheel


def build_wheel(kb: KnowledgeBase, root: Path, name: str, version: str) -> Path:
    """Build a wheel in a temporary folder, and return its path."""
    module, manifest = f"sapbert_kb_{name}", kb.manifest
    save_copy(kb, root / module / "kb")
    init = INIT.format(digest=manifest.digest)
    (root / module / "__init__.py").write_text(init, "utf8")
    setup = SETUP.format(
        project=project_name(name),
        version=version,
        description=f"{manifest.counts.concepts} concepts for spacy-sapbert, "
        f"digest {manifest.digest}",
        module=module,
        minimum=__version__,
        group=ENTRY_POINTS,
        name=name,
    )
    (root / "setup.py").write_text(setup, "utf8")
    # Without isolation the build downloads nothing.
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "."]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True)
    wheels = sorted((root / "dist").glob("*.whl"))
    if done.returncode or not wheels:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["no output"]
        raise SapbertError(
            "E318",
            f"Expected `python -m build` to make a wheel, but it failed: {lines[-1]}. "
            "Install what it needs with `pip install build 'setuptools>=70.1'`.",
        )
    return wheels[0]


def list_vocabularies(
    store: Store, releases: Mapping[str, SourceRelease]
) -> list[Vocabulary]:
    """Return the sources of the names, the largest first, with what is known of them.

    "UMLS" of `releases` is listed even if it is the source of no name.
    """
    counts = store.count_sources()
    if "UMLS" in releases:
        counts["UMLS"] = 0
    vocabularies = []
    for source, names in counts.items():
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
    return list_vocabularies(kb.store, releases)


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
    """Return the sources of names whose licence is unknown."""
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
