"""Write the generated parts of the pages again: `python docs/generate.py`.

What the code declares is not copied by hand: a part stands between
`<!-- name: start -->` and `<!-- name: end -->`.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from typer.main import get_command

from spacy_sapbert.cli.app import MainGroup
from spacy_sapbert.cli.main import app
from spacy_sapbert.evaluation.diagnose import CAUSES
from spacy_sapbert.formats.format_table import FORMATS
from spacy_sapbert.kb.folder.layout import OVERLAY, PARTS
from spacy_sapbert.linking.filters import FILTER_FIELDS
from spacy_sapbert.pipeline.linker_config import DEFAULT_CONFIG
from spacy_sapbert.vocabularies.reader_table import READERS

DOCS = Path(__file__).parent


def make_table(*rows: tuple[str, ...]) -> str:
    """Return a table; the first row has the headings."""
    head, *rest = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([head, "|---" * len(rows[0]) + "|", *rest])


def list_commands() -> str:
    """Return a table of the commands in the order of work, with their pages."""
    rows = [("command", "makes", "more")]
    group: Any = get_command(app)
    for name, pages in MainGroup.pages.items():
        first, *_ = (group.get_command(None, name).help or "").splitlines()
        links = [f"[{page.replace('_', ' ')}]({page}.md)" for page in pages.split()]
        rows.append((f"`{name}`", first.replace("->", "→"), ", ".join(links)))
    return make_table(*rows)


def list_fields() -> str:
    """Return a table of the fields of a filter."""
    fields = [
        (f"`{name}`", str(field.description)) for name, field in FILTER_FIELDS.items()
    ]
    return make_table(("field", "allows"), *fields)


def list_outputs() -> str:
    """Return a table of the formats that are written."""
    rows = [("format", "ending", "for", "candidates", "read back", "without text")]
    for name, format in FORMATS.items():
        if format.write:
            ending = ", ".join(f"`{suffix}`" for suffix in format.suffixes)
            ending = ending or ("a folder" if format.folder else "none")
            said = (format.purpose, format.candidates, format.returned)
            rows.append((f"`{name}`", ending, *said, format.without_text))
    return make_table(*rows)


def list_inputs() -> str:
    """Return a table of the formats that are read."""
    rows = [("format", "endings", "mentions", "from a pipe", "needs")]
    for name, format in FORMATS.items():
        if format.endings:
            endings = ", ".join(f"`{ending}`" for ending in format.endings)
            library = f"`pip install {format.library[1]}`" if format.library else ""
            annotated, streamed = (
                "yes" if yes else "no" for yes in (format.annotated, format.streamed)
            )
            rows.append((f"`{name}`", endings, annotated, streamed, library))
    return make_table(*rows)


def list_ids() -> str:
    """Return a table of where the formats of annotated documents have ids."""
    rows = [
        (f"`{name}`", format.ids.replace("|", "\\|") or "**nowhere**")
        for name, format in FORMATS.items()
        if format.read
    ]
    return make_table(("`--format`", "has the id of a mention in"), *rows)


def list_causes() -> str:
    """Return a table of the causes of wrong links."""
    rows = [(f"`{name}`", cause.text) for name, cause in CAUSES.items()]
    return make_table(("cause", "means, and what to do"), *rows)


def list_vocabularies() -> str:
    """Return a table of the formats of vocabularies."""
    rows = [("`--format`", "file names", "content")]
    for name, reader in READERS.items():
        names = [f"`{pattern}`" for pattern in reader.patterns if "/" not in pattern]
        rows.append((f"`{name}`", ", ".join(names), reader.content))
    return make_table(*rows)


def list_parts() -> str:
    """Return a table of the parts of a knowledge base that is not edited."""
    built = [part for part in PARTS if not part.name.startswith(f"{OVERLAY}/")]
    rows = [(f"`{part.name}`", part.holds) for part in built]
    return make_table(("file", "holds"), *rows)


def generate_pages() -> dict[Path, Mapping[str, str]]:
    """Return the generated parts of each page, by name."""
    return {
        DOCS / "linker.md": {
            "default config": f"```ini\n{DEFAULT_CONFIG.lstrip()}```",
            "filter": list_fields(),
        },
        DOCS / "commands.md": {"commands": list_commands()},
        DOCS / "corpora.md": {"ids": list_ids()},
        DOCS / "evaluation.md": {"causes": list_causes()},
        DOCS / "formats.md": {"outputs": list_outputs(), "inputs": list_inputs()},
        DOCS / "knowledge_base.md": {"parts": list_parts()},
        DOCS / "vocabularies.md": {"formats": list_vocabularies()},
    }


def write_parts(page: str, parts: Mapping[str, str]) -> str:
    """Return a page with its generated parts written again."""
    for name, part in parts.items():
        start, end = f"<!-- {name}: start -->", f"<!-- {name}: end -->"
        pattern = rf"(?<={re.escape(start)}\n).*?(?=\n{re.escape(end)})"
        written = part.replace("\\", r"\\")
        page, count = re.subn(pattern, written, page, flags=re.DOTALL)
        assert count == 1, name
    return page


if __name__ == "__main__":
    for path, parts in generate_pages().items():
        path.write_text(write_parts(path.read_text("utf8"), parts), "utf8")
