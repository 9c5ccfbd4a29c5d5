"""Write the parts of docs/linker.md that the declaration of the options decides."""

import re
from pathlib import Path

from spacy_sapbert.linking.filters import FILTER_FIELDS
from spacy_sapbert.linking.options import OPTIONS
from spacy_sapbert.pipeline.default_config import DEFAULT_CONFIG

PAGE = Path(__file__).parents[1] / "docs" / "linker.md"


def list_options() -> str:
    """Return a table of all options."""
    lines = ["| option | values | meaning |", "|---|---|---|"]
    for name, declared in OPTIONS.items():
        meaning, section = declared.option.doc, declared.option.section
        if section:
            anchor = section.lower().replace(" ", "-")
            meaning += f"; see [{section}](#{anchor})"
        values = declared.describe_values() or "see the section"
        lines.append(f"| `{name}` | {values} | {meaning} |")
    return "\n".join(lines)


def list_fields() -> str:
    """Return a table of the fields of a filter."""
    lines = ["| field | allows |", "|---|---|"]
    lines += [
        f"| `{name}` | {field.option.doc} |" for name, field in FILTER_FIELDS.items()
    ]
    return "\n".join(lines)


def write_page(page: str) -> str:
    """Return a page with its generated parts written again."""
    parts = {
        "default config": f"```ini\n{DEFAULT_CONFIG.lstrip()}```",
        "options": list_options(),
        "filter": list_fields(),
    }
    for name, part in parts.items():
        start, end = f"<!-- {name}: start -->", f"<!-- {name}: end -->"
        pattern = rf"(?<={re.escape(start)}\n).*?(?=\n{re.escape(end)})"
        written = part.replace("\\", r"\\")
        page, count = re.subn(pattern, written, page, flags=re.DOTALL)
        assert count == 1, name
    return page


if __name__ == "__main__":
    PAGE.write_text(write_page(PAGE.read_text("utf8")), "utf8")
