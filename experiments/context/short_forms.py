"""Annotated documents → the same with short forms whose long form is hidden.

Mentions such as "myocardial infarction" become "MI", if other concepts in the documents
have this short form too. All mentions of the concept in a document get the same short
form, so that nothing but the context says what is meant.
"""

import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import spacy
import typer
from spacy.tokens import Doc, DocBin

from experiments.annotated.split_documents import (
    PARTS,
    choose_parts,
    read_annotated_docs,
    run,
)
from spacy_sapbert.cli.app import make_app
from spacy_sapbert.io.terminal import msg
from spacy_sapbert.io.writing import check_outputs, write_atomically
from spacy_sapbert.kb.knowledge_base import KnowledgeBase, load_kb
from spacy_sapbert.vocabularies.concepts import Concept, write_concepts

app = make_app(add_completion=False)
SHORT, OTHER = "SHORT_FORM", "DISEASE"  # labels of mentions
LEAST_DOCUMENTS = 2  # with a concept and its short form
UNREAD = frozenset(
    ["a", "an", "and", "by", "due", "for", "in", "of", "or", "the", "to", "with"]
)
WORD = re.compile(r"[A-Za-z]+")


class Mention(NamedTuple):
    start: int
    end: int
    cui: str


class Document(NamedTuple):
    text: str
    mentions: list[Mention]


Meanings = dict[str, set[str]]  # the concepts of each short form


def make_short_form(name: str) -> str | None:
    """Return the first letters of two to five words; None = another number of words."""
    words = [word for word in WORD.findall(name) if word.lower() not in UNREAD]
    return "".join(w[0].upper() for w in words) if 2 <= len(words) <= 5 else None


def read_documents(docs: Iterable[Doc], kb: KnowledgeBase) -> list[Document]:
    """Return texts, once each, with the mentions of concepts of the knowledge base."""
    documents: dict[str, Document] = {}
    for doc in docs:
        ids = {ent.kb_id_ for ent in doc.ents}
        current = {i: concept.cui for i in ids if (concept := kb.concept(i))}
        documents[doc.text] = Document(
            doc.text,
            [
                Mention(ent.start_char, ent.end_char, current[ent.kb_id_])
                for ent in doc.ents
                if ent.kb_id_ in current
            ],
        )
    return [*documents.values()]


def list_short_forms(document: Document, names: Mapping[str, str]) -> Counter[tuple]:
    """Count short form and concept of mentions that are a name of their concept."""
    text = document.text
    return Counter(
        (short, mention.cui)
        for mention in document.mentions
        if names.get(text[mention.start : mention.end]) == mention.cui
        and (short := make_short_form(text[mention.start : mention.end]))
    )


def find_meanings(documents: Iterable[Document], names: Mapping[str, str]) -> Meanings:
    """Return the short forms of several concepts, each in some documents."""
    counts = Counter(
        pair for document in documents for pair in {*list_short_forms(document, names)}
    )
    meanings: Meanings = defaultdict(set)
    for (short, cui), number in counts.items():
        if number >= LEAST_DOCUMENTS:
            meanings[short].add(cui)
    return {short: cuis for short, cuis in meanings.items() if len(cuis) > 1}


def hide_names(
    document: Document, meanings: Meanings, names: Mapping[str, str]
) -> tuple[Document, dict[str, str]]:
    """Write short forms for the mentions of concepts, and return those by concept."""
    short_forms: dict[str, str] = {}
    for (short, cui), _ in list_short_forms(document, names).most_common():
        if cui in meanings.get(short, ()) and short not in short_forms.values():
            short_forms.setdefault(cui, short)
    text, end, mentions = "", 0, []
    for mention in sorted(document.mentions):
        text += document.text[end : mention.start]
        written = document.text[mention.start : mention.end]
        written = short_forms.get(mention.cui, written)
        mentions.append(Mention(len(text), len(text) + len(written), mention.cui))
        text, end = text + written, mention.end
    return Document(text + document.text[end:], mentions), short_forms


@app.command()
def main(
    kb: Path = typer.Argument(..., help="Knowledge base of the ids."),
    output: Path = typer.Argument(..., help="Folder of the parts."),
    documents: list[Path] = typer.Argument(..., help="Files of annotated documents."),
    drop_prefix: str = typer.Option("OMIM:", help="Remove from ids."),
    dev: float = typer.Option(0.15, help="Share of the documents to choose by."),
    held_out: float = typer.Option(0.25, help="Share to evaluate on."),
    seed: int = typer.Option(0, help="Of the parts."),
    force: bool = typer.Option(False, "--force", help="Replace existing outputs."),
) -> None:
    """documents + kb/ -> train, dev, held_out .spacy, short_forms.jsonl"""
    paths = {part: output / f"{part}.spacy" for part in PARTS}
    concepts = output / "short_forms.jsonl"
    check_outputs(*paths.values(), concepts, force=force)
    opened = load_kb(kb)
    docs = [
        doc
        for path in documents
        for doc in read_annotated_docs(path, lang="en", drop_prefix=drop_prefix)
    ]
    read = read_documents(docs, opened)
    texts = sorted({d.text[m.start : m.end] for d in read for m in d.mentions})
    links = zip(texts, opened.link(texts), strict=True)
    names = {
        text: link.cui
        for text, link in links
        if link.cui and link.candidates[0]["score"] == 1
    }
    meanings = find_meanings(read, names)
    part_of = choose_parts(
        (d.text for d in read), dev=dev, held_out=held_out, seed=seed
    )
    nlp = spacy.blank("en")
    bins = {part: DocBin(store_user_data=True) for part in PARTS}
    added: Meanings = defaultdict(set)
    counts = {part: Counter[str]() for part in PARTS}
    random.Random(seed).shuffle(read)
    for document in read:
        hidden, short_forms = hide_names(document, meanings, names)
        for cui, short in short_forms.items():
            added[cui].add(short)
        doc = nlp.make_doc(hidden.text)
        spans = [
            doc.char_span(
                mention.start,
                mention.end,
                label=SHORT if mention.cui in short_forms else OTHER,
                kb_id=mention.cui,
                alignment_mode="expand",
            )
            for mention in hidden.mentions
        ]
        doc.ents = spacy.util.filter_spans(spans)
        part = part_of[document.text]
        bins[part].add(doc)
        counts[part].update(ent.label_ for ent in doc.ents)
        counts[part]["documents"] += 1
    for part, path in paths.items():
        with write_atomically(path) as file:
            file.write(bins[part].to_bytes())
    write_concepts(
        concepts, [Concept(cui, sorted(s)) for cui, s in sorted(added.items())]
    )
    rows = [
        (part, *(f"{counts[part][name]:,}" for name in ("documents", SHORT, OTHER)))
        for part in PARTS
    ]
    header = ("Part", "Documents", "Short forms", "Other mentions")
    msg.table(rows, header=header, divider=True, aligns=("l", "r", "r", "r"))


if __name__ == "__main__":
    run(app)
