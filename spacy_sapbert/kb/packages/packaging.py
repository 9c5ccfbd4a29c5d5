"""Folder of a knowledge base → an installable wheel."""

import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryDirectory

from ...errors import SapbertError
from ...io.temporary_db import no_temporary_space
from ...io.version import __version__
from ...io.writing import check_outputs, write_atomically
from ..folder.installed import ENTRY_POINTS
from ..knowledge_base import KnowledgeBase, load_kb
from .copies import save_copy
from .distribution import check_distribution, current_vocabularies

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
    """Raise an error if a knowledge base cannot be packaged under a name."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise SapbertError(
            "E316",
            "Expected a name of small letters, digits and underscores for the "
            f"package, but got {name!r}. Correct `--name`.",
        )


def check_version(version: str) -> None:
    """Raise an error if a package cannot have this version."""
    if not re.fullmatch(r"\d+(\.\d+)*", version):
        raise SapbertError(
            "E317",
            f"Expected a version like 0.1.0, but got {version!r}. Correct `--version`.",
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
        name: Name for `kb = "…"` in a config: letters, digits and underscores.
        version: Version of the package, e.g. "0.1.0".
        may_distribute: Sources of names with a licence that limits who may have them,
            which the user has the right to distribute.
        force: Replace an existing wheel.

    Returns:
        The path of the wheel.

    Raises:
        SapbertError: If the knowledge base is damaged, the name or version is not
            valid, the licence of a source forbids it, or the build fails.
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
