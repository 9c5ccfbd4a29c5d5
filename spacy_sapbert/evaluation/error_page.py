"""What is wrong and why, as one page for the browser, without anything from outside."""

import base64
import hashlib
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from spacy_sapbert.evaluation.accuracy import TIES

BAR_WIDTH, BAR_HEIGHT = 160, 12  # pixels
NOTICE = (
    "This page shows texts of mentions from the corpus and names of the knowledge "
    "base. Keep it, and pass it on, only as you may keep and pass on these."
)
STYLE = """
:root { color-scheme: light dark; --line: #c9c9c9; --soft: #f4f4f4; --quiet: #595959;
  --mark: #0b57d0; --right: #e3f2e1; --warn: #fff4ce; }
@media (prefers-color-scheme: dark) { :root { --line: #4a4a4a; --soft: #242424;
  --quiet: #b0b0b0; --mark: #8ab4f8; --right: #1f3a22; --warn: #453a12; } }
body { font: 16px/1.5 -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif;
  max-width: 70rem; margin: 0 auto; padding: 1.5rem; }
h3, h4 { margin: 0; } summary h3 { display: inline; font-size: 1.1rem; }
table { border-collapse: collapse; margin: 0.5rem 0 1rem; max-width: 100%; }
caption { text-align: left; padding: 0.3rem 0; color: var(--quiet); }
caption b { color: CanvasText; }
th, td { border: 1px solid var(--line); padding: 0.2rem 0.6rem; text-align: left;
  vertical-align: top; overflow-wrap: anywhere; font-weight: normal; }
thead th { background: var(--soft); font-weight: 600; overflow-wrap: normal; }
.number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
.right > * { background: var(--right); font-weight: 600; }
.notice { background: var(--warn); border-left: 4px solid; padding: 0.5rem 1rem; }
.quiet { color: var(--quiet); margin: 0.2rem 0; }
.group { border-top: 1px solid var(--line); padding: 0.8rem 0; }
details { margin: 0.3rem 0; } details > .group { margin-left: 1rem; }
summary { cursor: pointer; } ul { margin: 0.2rem 0; padding-left: 1.5rem; }
rect { fill: var(--mark); } input { font: inherit; padding: 0.2rem 0.5rem; }
[hidden] { display: none; }
"""
# The page is whole without it: everything is there, and nothing is hidden.
SCRIPT = """
const box = document.getElementById("filter");
const input = document.getElementById("wanted");
const told = document.getElementById("told");
const items = [...document.querySelectorAll("[data-item]")];
const texts = items.map(item => item.textContent.toLowerCase());
box.hidden = false;
input.addEventListener("input", () => {
  const wanted = input.value.trim().toLowerCase();
  items.forEach((item, i) => { item.hidden = !texts[i].includes(wanted); });
  for (const part of document.querySelectorAll("[data-part]")) {
    const left = part.querySelectorAll("[data-item]:not([hidden])").length;
    part.hidden = left === 0;
    part.open = wanted !== "" && left > 0;
  }
  const left = items.filter(item => !item.hidden).length;
  told.textContent = wanted ? `${left} of ${items.length} groups and rows` : "";
});
"""


def show(value: Any) -> str:
    """Write a text from the data so that it can neither be markup nor turn the page.

    value (Any): The text.
    RETURNS (str): Markup.
    """
    return f"<bdi>{escape(str(value).replace(chr(0), chr(0xFFFD)))}</bdi>"


def count(number: int, word: str) -> str:
    """Write a number and what is counted."""
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"


def source_hash(text: str) -> str:
    """Name an inline script or style in the page's Content-Security-Policy."""
    digest = base64.b64encode(hashlib.sha256(text.encode("utf8")).digest())
    return f"'sha256-{digest.decode()}'"


def render_table(
    caption: str,
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    numbers: Sequence[str] = (),
    marked: Sequence[int] = (),
    item: bool = False,
) -> str:
    """Write a table.

    caption (str): Markup.
    header (Sequence[str]): Titles, plain text.
    rows (Iterable[Sequence[str]]): Markup of the cells; the first is the row's title.
    numbers (Sequence[str]): Titles of the columns that hold numbers.
    marked (Sequence[int]): Rows that stand out.
    item (bool): Whether the filter shows and hides its rows.
    RETURNS (str): Markup.
    """
    classes = [' class="number"' if title in numbers else "" for title in header]
    titles = "".join(
        f'<th scope="col"{kind}>{escape(title)}</th>'
        for title, kind in zip(header, classes, strict=True)
    )
    lines = [
        f"<table>\n<caption>{caption}</caption>",
        f"<thead><tr>{titles}</tr></thead>\n<tbody>",
    ]
    for number, cells in enumerate(rows):
        first, *others = zip(cells, classes, strict=True)
        row = f'<th scope="row"{first[1]}>{first[0]}</th>'
        row += "".join(f"<td{kind}>{cell}</td>" for cell, kind in others)
        kind = ' class="right"' if number in marked else ""
        lines.append(f"<tr{kind}{' data-item' if item else ''}>{row}</tr>")
    return "\n".join([*lines, "</tbody>\n</table>\n"])


def render_bar(share: float) -> str:
    """Draw a share; the number stands beside it, so that nobody has to see the bar."""
    width = round(share * BAR_WIDTH, 1)
    return (
        f'<svg width="{BAR_WIDTH}" height="{BAR_HEIGHT}" aria-hidden="true">'
        f'<rect width="{width}" height="{BAR_HEIGHT}"></rect></svg>'
    )


def render_files(data: dict[str, Any]) -> str:
    """Write the table of what was judged."""
    rows = [
        [
            show(file["file"]),
            f"{file['judged']:,} of {file['mentions']:,}",
            f"{file['coverage']:.1%}",
            *(f"{file['acc@1'][tie]:.4f}" for tie in TIES),
            f"{file['wrong']:,}",
        ]
        for file in data["files"]
    ]
    titles = ["Mentions judged", "Coverage", *(f"Acc@1 {tie}" for tie in TIES), "Wrong"]
    caption = "Accuracy by concepts. Wrong is what does not count for Acc@1 strict."
    return render_table(caption, ["File", *titles], rows, numbers=titles)


def render_causes(data: dict[str, Any]) -> str:
    """Write the table of causes, in their order of precedence."""
    rows = [
        [
            show(cause["cause"]),
            f"{cause['count']:,}",
            f"{cause['share']:.1%}",
            render_bar(cause["share"]),
            escape(cause["about"]),
        ]
        for cause in data["causes"]
    ]
    caption = f"{count(data['wrong'], 'wrong answer')}, each with the first that holds"
    header = ["Cause", "Mentions", "Share", "Bar", "What it means"]
    return render_table(caption, header, rows, numbers=["Mentions", "Share"])


def render_gold(gold: Iterable[Iterable[dict[str, Any]]]) -> str:
    """Write down what a mention means: parts and, for each, what suffices."""
    return " <em>and</em> ".join(
        " <em>or</em> ".join(
            f"{show(concept['name'])} ({show(concept['cui'])})"
            if "name" in concept
            else f"{show(concept['cui'])} (not in the knowledge base)"
            for concept in part
        )
        for part in gold
    )


def render_names(gold: Iterable[Iterable[dict[str, Any]]]) -> str:
    """Write down the names of gold concepts, to be opened."""
    lines: list[str] = []
    for concept in (c for part in gold for c in part if "name" in c):
        names = [f"<li>{show(name)}</li>" for name in concept["names"]]
        if concept["more_names"]:
            names.append(f"<li>and {concept['more_names']:,} more</li>")
        total = count(len(concept["names"]) + concept["more_names"], "name")
        types = ", ".join(map(show, concept["types"]))
        lines.append(
            f"<details><summary>{total} of {show(concept['cui'])}"
            f"{'; types: ' + types if types else ''}</summary>\n"
            f"<ul>{''.join(names)}</ul></details>\n"
        )
    return "".join(lines)


def render_mention(mention: dict[str, Any]) -> str:
    """Write down one mention and what was answered."""
    candidates = mention["candidates"]
    places = [one["place"] for one in candidates if one["right"]]
    where = f"first right answer at place {places[0]}" if places else "no right answer"
    more = " …" if len(mention["lines"]) < mention["count"] else ""
    lines = ", ".join(map(show, mention["lines"]))
    times = count(mention["count"], "time")
    caption = f"<b>{show(mention['mention'])}</b>, {times}: {where} ({lines}{more})"
    if not candidates:
        return f"<p>{caption}</p>\n"
    rows = [
        [
            f"{one['place']}{' ✓ right' if one['right'] else ''}",
            show(one["cui"]),
            show(one["name"]),
            show(one["alias"]),
            f"{one['score']:.4f}",
            ", ".join(map(show, one["types"])),
        ]
        for one in candidates
    ]
    header = ["Place", "Id", "Name", "Matched name", "Score", "Types"]
    marked = [number for number, one in enumerate(candidates) if one["right"]]
    return render_table(caption, header, rows, numbers=["Score"], marked=marked)


def render_left_out(item: dict[str, Any]) -> str:
    """Say how much is counted but not shown."""
    if not item["left_out"]:
        return ""
    groups = item.get("concepts_left_out")
    of = f" of {count(groups, 'more gold concept')}" if groups else ""
    return f'<p class="quiet">{count(item["left_out"], "more mention")}{of}.</p>\n'


def render_cause(cause: dict[str, Any]) -> str:
    """Write down all mistakes of one cause."""
    share = f"{count(cause['count'], 'mention')}, {cause['share']:.1%}"
    title = f"<h3>{show(cause['cause'])}: {share}</h3>"
    lines = [
        f"<details data-part><summary>{title}</summary>",
        f'<p class="quiet">{escape(cause["about"])}</p>',
    ]
    for group in cause["concepts"]:
        title = f"{render_gold(group['gold'])}: {count(group['count'], 'time')}"
        mentions = "".join(map(render_mention, group["mentions"]))
        lines.append(
            f'<section class="group" data-item>\n<h4>{title}</h4>\n'
            f"{render_names(group['gold'])}{mentions}{render_left_out(group)}</section>"
        )
    return "\n".join([*lines, f"{render_left_out(cause)}</details>\n"])


def render_concepts(concepts: dict[str, Any]) -> str:
    """Write the table of the concepts that are missed most often."""
    rows: list[list[str]] = []
    for concept in concepts["concepts"]:
        mentions = [
            f"<li>{show(one['mention'])}, {count(one['count'], 'time')}: "
            + (show(one["answer"]["name"]) if one["answer"] else "no answer")
            + f" ({escape(one['cause'])})</li>"
            for one in concept["mentions"]
        ]
        causes = [f"{name} {n:,}" for name, n in concept["causes"].items()]
        rows.append(
            [
                render_gold(concept["gold"]),
                f"{concept['count']:,} of {concept['judged']:,}",
                escape(", ".join(causes)),
                f"<ul>{''.join(mentions)}</ul>{render_left_out(concept)}",
            ]
        )
    caption = "Gold concepts by how often they were missed, with the first answers"
    header = ["Gold concept", "Missed", "Causes", "Mentions and first answers"]
    table = render_table(caption, header, rows, numbers=["Missed"], item=True)
    return table + render_left_out(concepts)


def render_page(data: dict[str, Any]) -> str:
    """Write the page.

    data (dict[str, Any]): What the JSON file says.
    RETURNS (str): HTML.
    """
    policy = (
        f"default-src 'none'; style-src {source_hash(STYLE)}; "
        f"script-src {source_hash(SCRIPT)}"
    )
    kb, versions = data["kb"], data["versions"]
    encoder, counts = kb["encoder"], kb["counts"]
    made = ", ".join(f"{name} {version}" for name, version in versions.items())
    causes = [render_cause(cause) for cause in data["causes"] if cause["count"]]
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">
<title>Why it is wrong</title>
<style>{STYLE}</style>
</head>
<body>
<main>
<h1>Why it is wrong</h1>
<p class="notice"><strong>Text of the corpus.</strong> {NOTICE}</p>
<p>Knowledge base {show(kb["folder"])}: {counts["concepts"]:,} concepts,
encoder {show(encoder["base"])}, {show(encoder["pooling"])}.</p>
{render_files(data)}
<h2>Causes</h2>
{render_causes(data)}
<p id="filter" hidden><label>Show only what has
<input id="wanted" type="search" autocomplete="off"></label>
<span id="told" role="status"></span></p>
<h2>By cause</h2>
{"".join(causes)}
<h2>By concept</h2>
{render_concepts(data)}
</main>
<footer><p class="quiet">{escape(made)}</p></footer>
<script>{SCRIPT}</script>
</body>
</html>
"""
