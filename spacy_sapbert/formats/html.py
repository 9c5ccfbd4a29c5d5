"""One self-contained HTML page, rendered by displaCy."""

import re
from collections.abc import Iterable, Mapping
from html import escape
from types import MappingProxyType
from typing import IO
from urllib.parse import quote
from zlib import crc32

from spacy import displacy

from ..errors import Errors, SapbertError
from .entities import LinkedDoc, LinkedEntity
from .gold import NIL

# Which page shows a concept: pattern of the id → address, {} = the groups in turn,
# or the whole id.
LINKS: dict[str, str] = {
    r"(C\d{7})": "https://uts.nlm.nih.gov/uts/umls/concept/{}",
    r"(?:MESH:)?([CD]\d{6}(?:\d{3})?)": "https://meshb.nlm.nih.gov/record/ui?ui={}",
    r"OMIM:(\d+)": "https://omim.org/entry/{}",
    r"(DOID|HP|MONDO)[:_](\d+)": "http://purl.obolibrary.org/obo/{}_{}",
}
PALETTE = ("#7aecec", "#bfeeb7", "#feca74", "#ff9561", "#aa9cfc", "#c887fb", "#9cc9cc")
UNLINKED = "#ddd"

# displaCy's own page names no character set, and needs all documents at once.
PAGE_START = """<!DOCTYPE html>
<html>
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Linked entities</title>
<style>
body { font: 16px -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif;
  max-width: 60rem; margin: 0 auto; padding: 2rem; }
figure { margin: 0 0 3rem; }
figcaption { color: #666; }
mark { -webkit-box-decoration-break: clone; box-decoration-break: clone;
  -webkit-print-color-adjust: exact; print-color-adjust: exact;
  overflow-wrap: anywhere; }
mark a { color: inherit; }
.concept { font-weight: normal; margin-left: 0.5em; }
</style>
</head>
<body>
"""
PAGE_END = "</body>\n</html>\n"


def concept_url(cui: str, links: Mapping[str, str] = LINKS) -> str | None:
    """Return the address of a concept's page; None if no pattern matches.

    links (Mapping[str, str]): See `LINKS`; the first pattern that matches counts.
    """
    for pattern, template in links.items():
        if match := re.fullmatch(pattern, cui):
            parts = match.groups() or (cui,)
            return template.format(*(quote(part, safe="") for part in parts))
    return None


def concept_markup(entity: LinkedEntity, links: Mapping[str, str]) -> str:
    """Return the markup of an entity's concept: id with link, name, score and note."""
    note = f" ({entity['note']})" if entity["note"] else ""
    if entity["cui"] is None:
        return f' <span class="concept">{escape(NIL + note)}</span>'
    link = escape(entity["cui"])
    if url := concept_url(entity["cui"], links):
        link = f'<a href="{escape(url)}" rel="noreferrer">{link}</a>'
    name = f" {entity['name']}" if entity["name"] else ""
    score = "" if entity["score"] is None else f" {entity['score']:.3f}"
    return f' <span class="concept">{link}{escape(name + score + note)}</span>'


def stack_entities(entities: Iterable[LinkedEntity]) -> list[list[LinkedEntity]]:
    """Group entities that overlap, since displaCy renders one at a place.

    RETURNS (list[list[LinkedEntity]]): By offset: the entity to render (the longest,
        then the first), followed by those that overlap it.
    """
    stacks: list[list[LinkedEntity]] = []
    for entity in sorted(entities, key=lambda e: (e["start"] - e["end"], e["start"])):
        for stack in stacks:
            drawn = stack[0]
            if entity["start"] < drawn["end"] and drawn["start"] < entity["end"]:
                stack.append(entity)
                break
        else:
            stacks.append([entity])
    return sorted(stacks, key=lambda stack: int(stack[0]["start"]))


def render_doc(
    text: str, entities: list[LinkedEntity], links: Mapping[str, str]
) -> str:
    """Return the markup of one document."""
    drawn, colors = [], {}
    for entity, *covered in stack_entities(entities):
        markup = concept_markup(entity, links)
        for other in covered:
            words = f"{other['text']} {other['label']}"
            markup += f"; {escape(words)}{concept_markup(other, links)}"
        # displaCy escapes the text only. The colour hangs on the label that it gets.
        color = UNLINKED
        if entity["cui"] is not None:
            color = PALETTE[crc32(entity["label"].encode()) % len(PALETTE)]
        colors[color] = color
        drawn.append(
            {
                "start": entity["start"],
                "end": entity["end"],
                "label": color,
                "params": {"label": escape(entity["label"]), "kb_link": markup},
            }
        )
    return displacy.render(
        {"text": text.replace("\0", "\ufffd"), "ents": drawn},
        style="ent",
        manual=True,
        jupyter=False,
        options={"colors": colors},
    )


def write_docs(
    docs: Iterable[LinkedDoc],
    file: IO[bytes],
    *,
    include_text: bool = True,
    links: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Write a page of linked documents; see `registry.Writer`.

    links (Mapping[str, str]): More entries as in `LINKS`, which are tried first.
    """
    if not include_text:
        raise SapbertError(Errors.E503.format(format="html"))
    links = {**links, **{key: LINKS[key] for key in LINKS if key not in links}}
    file.write(PAGE_START.encode())
    for doc in docs:
        caption = escape(str(doc.id))
        body = render_doc(doc.text, doc.entities, links)
        figure = f"<figure>\n<figcaption>{caption}</figcaption>\n{body}\n</figure>\n"
        file.write(figure.encode())
    file.write(PAGE_END.encode())
