"""The README as a package index shows it; all other metadata is in pyproject.toml."""

import re
import tomllib
from pathlib import Path

from setuptools import setup

ROOT = Path(__file__).parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))["project"]
VERSION = re.findall(
    r'__version__ = "(.+)"', (ROOT / "spacy_sapbert/io/version.py").read_text("utf8")
)[0]


def add_address(link: re.Match[str]) -> str:
    """Return the link of a file, or of a heading, in the repository at this version."""
    target = link[1] if link[1][0] != "#" else "README.md" + link[1]
    kind = "raw" if target.endswith((".png", ".svg")) else "blob"
    return f"]({PROJECT['urls']['Source']}/{kind}/v{VERSION}/{target})"


setup(
    long_description=re.sub(
        r"\]\((?!https?:)([^)\s]+)\)",
        add_address,
        (ROOT / "README.md").read_text("utf8"),
    ),
    long_description_content_type="text/markdown",
)
