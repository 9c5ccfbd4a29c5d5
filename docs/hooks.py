"""Hooks of the site: pages and files outside of docs/ that its pages link to."""

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
OUTSIDE = (
    "CONTRIBUTING.md",
    "PROJECT.md",
    "project.yml",
    "experiments/**/README.md",
    "experiments/**/results/*.json",
    "training/configs/*.cfg",
)


def on_files(files: Files, config: Any) -> Files:
    """Add the files outside, at the same places as in the checkout."""
    for pattern in OUTSIDE:
        for path in sorted(ROOT.glob(pattern)):
            place = path.relative_to(ROOT).as_posix()
            files.append(File.generated(config, place, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Change links: the folder docs/ is the root of the site."""
    if page.file.generated_by:
        return re.sub(r"\]\(((?:\.\./)*)docs/", r"](\1", markdown)
    return markdown.replace("](../", "](")
