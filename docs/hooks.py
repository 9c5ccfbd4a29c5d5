"""Hooks of the site: pages and files outside of docs/ that its pages link to."""

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
OUTSIDE = (
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "PROJECT.md",
    "project.yml",
    "experiments/**/README.md",
    "experiments/context/context.cfg",
    "experiments/**/sapbert_*.py",
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


def plain_bars(row: re.Match[str]) -> str:
    """Return a row of a table; GitHub wants `\\|` in code, Python-Markdown a bar."""
    return re.sub(r"`[^`]*`", lambda code: code[0].replace(r"\|", "|"), row[0])


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Change links, as docs/ is the root of the site, and bars in code of tables."""
    markdown = re.sub(r"(?m)^\|.*", plain_bars, markdown)
    if page.file.generated_by:
        return re.sub(r"\]\(((?:\.\./)*)docs/", r"](\1", markdown)
    return markdown.replace("](../", "](")


def on_post_page(output: str, **_: Any) -> str:
    """Ask GitHub nothing: by this mark of the repository's link, the theme would."""
    return output.replace('data-md-component="source"', "")
