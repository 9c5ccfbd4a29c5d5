"""The linker beside components of others, and the programs of docs/recipes.md."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc, Span

RECIPES = (Path(__file__).parents[2] / "docs" / "recipes.md").read_text("utf8")
PROGRAM = re.compile(
    r"^```python\n(.*?)^```\n+```text\n(.*?)^```", re.DOTALL | re.MULTILINE
)
TEXT = "No fever. She denies a headache, but had a heart attack."
LINKS = {"fever": "C0000004", "headache": "C0000007", "heart attack": "C0000001"}
NEGATED = {"fever": True, "headache": True, "heart attack": False}
Span.set_extension("test_negated", default=False, force=True)


def judge(ent: Span) -> bool:
    sentence = ent.doc.text[: ent.start_char].rpartition(".")[2]
    words = re.split(r"\W+", sentence.rpartition(",")[2].lower())
    return bool({"no", "denies"} & {*words})


@Language.component("test_negation")
def negate(doc: Doc) -> Doc:
    """Judge the entities and leave them as they are."""
    for ent in doc.ents:
        ent._.test_negated = judge(ent)
    return doc


@Language.component("test_negation_handing_on")
def negate_and_hand_on(doc: Doc) -> Doc:
    """Judge the entities, and set them again."""
    ents = list(doc.ents)
    doc.ents = []
    doc.ents = ents
    return negate(doc)


@Language.component("test_negation_anew")
def negate_and_make_anew(doc: Doc) -> Doc:
    """Judge the entities, and make new ones that know nothing but their labels."""
    doc.ents = [Span(doc, ent.start, ent.end, label=ent.label) for ent in doc.ents]
    return negate(doc)


@Language.component("test_negation_dropping")
def negate_and_drop(doc: Doc) -> Doc:
    """Judge the entities, and drop those that are negated."""
    doc.ents = [ent for ent in negate(doc).ents if not ent._.test_negated]
    return doc


def make_pipeline(kb: Path, *others: str, linker: str = "last") -> Language:
    """A rule-based NER, then the others, with the linker before or after them."""
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    ruler: Any = nlp.add_pipe("entity_ruler")
    ruler.add_patterns([{"label": "SIGN", "pattern": text} for text in LINKS])
    place: dict[str, Any] = {"after": "entity_ruler"} if linker == "first" else {}
    for other in others:
        nlp.add_pipe(other)
    nlp.add_pipe("sapbert_linker", config={"kb": str(kb)}, **place)
    return nlp


def links(doc: Doc) -> list[tuple[Any, ...]]:
    return [
        (ent.text, ent.label_, ent._.cui, ent._.candidates, ent._.link_note)
        for ent in doc.ents
    ]


def kb_ids(doc: Doc) -> dict[str, str]:
    return {ent.text: ent.kb_id_ for ent in doc.ents}


def negated(doc: Doc, attr: str = "test_negated") -> dict[str, bool]:
    return {ent.text: ent._.get(attr) for ent in doc.ents}


@pytest.mark.parametrize("linker", ["first", "last"])
@pytest.mark.parametrize("other", ["test_negation", "test_negation_handing_on"])
def test_linker_and_negation_are_independent(
    sample_kb: Path, other: str, linker: str
) -> None:
    doc = make_pipeline(sample_kb, other, linker=linker)(TEXT)
    assert links(doc) == links(make_pipeline(sample_kb)(TEXT))
    assert kb_ids(doc) == {ent.text: ent._.cui for ent in doc.ents} == LINKS
    assert negated(doc) == NEGATED


@pytest.mark.parametrize("linker", ["first", "last"])
def test_links_of_rewritten_entities_are_kept(sample_kb: Path, linker: str) -> None:
    doc = make_pipeline(sample_kb, "test_negation_anew", linker=linker)(TEXT)
    assert links(doc) == links(make_pipeline(sample_kb)(TEXT))
    assert negated(doc) == NEGATED
    # new spans have no kb_id unless they are given one: nothing of ours can help that
    assert kb_ids(doc) == (LINKS if linker == "last" else dict.fromkeys(LINKS, ""))


@pytest.mark.parametrize("linker", ["first", "last"])
def test_links_of_other_entities_are_kept(sample_kb: Path, linker: str) -> None:
    doc = make_pipeline(sample_kb, "test_negation_dropping", linker=linker)(TEXT)
    assert links(doc) == links(make_pipeline(sample_kb)(TEXT))[-1:]
    assert kb_ids(doc) == {"heart attack": LINKS["heart attack"]}


def test_links_and_negation_round_trip_in_bytes(sample_kb: Path) -> None:
    nlp = make_pipeline(sample_kb, "test_negation")
    doc = nlp(TEXT)
    copy = Doc(nlp.vocab).from_bytes(doc.to_bytes())
    assert (links(copy), negated(copy), kb_ids(copy)) == (links(doc), NEGATED, LINKS)


def test_linker_with_abbreviations_and_negation_links_a_stream(sample_kb: Path) -> None:
    nlp = make_pipeline(sample_kb, "sapbert_abbreviations", "test_negation")
    text = "She denies a heart attack. No fever (F), no head ache (HA)."
    for doc in nlp.pipe([text] * 3, batch_size=2):
        assert negated(doc) == {"heart attack": True, "fever": True}
        assert [span._.long_form for span in doc._.abbreviations] == ["head ache"]
        assert kb_ids(doc) == {text: LINKS[text] for text in ("heart attack", "fever")}


@pytest.mark.parametrize("linker", ["first", "last"])
@pytest.mark.parametrize(
    ("module", "other", "attr"),
    [
        ("negspacy.negation", "negex", "negex"),
        ("medspacy.context", "medspacy_context", "is_negated"),
    ],
    ids=["negspacy", "medspacy"],
)
def test_linker_and_negspacy_are_independent(
    sample_kb: Path, module: str, other: str, attr: str, linker: str
) -> None:
    pytest.importorskip(module, exc_type=ImportError)
    doc = make_pipeline(sample_kb, other, linker=linker)(TEXT)
    assert links(doc) == links(make_pipeline(sample_kb)(TEXT))
    assert kb_ids(doc) == LINKS
    assert negated(doc, attr) == NEGATED


# --- the recipes ---


def test_recipes_have_a_program_and_its_output() -> None:
    programs = PROGRAM.findall(RECIPES)
    assert len(programs) == RECIPES.count("```python") == RECIPES.count("```text") > 0


@pytest.mark.parametrize(("code", "output"), PROGRAM.findall(RECIPES))
def test_recipe_prints_its_output(
    demo_folder: Path, run_python: Callable[..., Any], code: str, output: str
) -> None:
    for module in re.findall(r"^(?:import|from) (\S+)", code, re.MULTILINE):
        pytest.importorskip(module, exc_type=ImportError)
    done = run_python(code, cwd=demo_folder)
    assert done.stdout == output, done.stderr
