"""Codes of other vocabularies instead of the ids of concepts."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from spacy.language import Language
from spacy.tokens import Doc, Span, SpanGroup

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.kb.edits.change import add_concepts
from spacy_sapbert.kb.knowledge_base import load_kb
from spacy_sapbert.linking.options import LinkOptions
from spacy_sapbert.vocabularies.concepts import Concept
from tests.commands import invoke
from tests.pipelines import make_nlp

FEVER = Concept(
    "C1",
    ["Fever"],
    codes={"ICD10CM": ["R50.9", "R50"], "SNOMEDCT": ["386"], "MSH": ["D005334"]},
)


@pytest.fixture(scope="module")
def codes_kb(
    make_kb: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    return make_kb(
        tmp_path_factory.mktemp("codes"), [FEVER, Concept("C2", ["Headache"])]
    )


def make_doc(nlp: Language) -> Doc:
    doc = Doc(nlp.vocab, words=["fever", "headache", "..."])
    doc.ents = [Span(doc, place, place + 1, "X") for place in range(3)]
    return doc


def test_codes_are_limited_to_vocabularies_in_their_order(codes_kb: Path) -> None:
    nlp = make_nlp(codes_kb, codes=["SNOMEDCT_US", "ICD10CM"])
    nlp.initialize()
    fever, headache, _ = nlp(make_doc(nlp)).ents
    assert [*fever._.codes.items()] == [
        ("SNOMEDCT_US", ["386"]),
        ("ICD10CM", ["R50.9", "R50"]),
    ]
    assert fever._.candidates[0]["codes"] == fever._.codes
    assert headache._.codes == {}
    own = {"sapbert_linker": {"codes": ["MESH"]}}
    fever, *_ = nlp(make_doc(nlp), component_cfg=own).ents
    assert fever._.codes == {"MESH": ["D005334"]}


def test_codes_of_an_added_concept(codes_kb: Path, tmp_path: Path) -> None:
    own = Path(shutil.copytree(codes_kb, tmp_path / "kb"))
    kb = add_concepts(load_kb(own), [Concept("C2", ["Ache"], codes={"LOCAL": ["7"]})])
    kb.check_options(LinkOptions(codes=("LOCAL", "MSH")))
    (ache,) = kb.link(["ache"], codes=["LOCAL"])
    assert ache.codes == kb["C2"].codes == {"LOCAL": ["7"]}
    assert kb.codes("C1", "ICD10CM") == ["R50.9", "R50"]
    assert kb.cuis("MSH", "D005334") == ["C1"]


def test_codes_of_a_span_group_and_another_attribute(codes_kb: Path) -> None:
    nlp = make_nlp(codes_kb, codes=["MSH"], spans_key="sc", codes_attr="mesh_codes")
    doc = Doc(nlp.vocab, words=["fever"])
    doc.spans["sc"] = SpanGroup(doc, spans=[Span(doc, 0, 1, "X")])
    group = nlp(doc).spans["sc"]
    assert group[0]._.mesh_codes == {"MSH": ["D005334"]}
    assert group.attrs["mesh_codes"] == [{"MSH": ["D005334"]}]


def test_codes_that_the_kb_has_not_are_an_error_of_each_way_to_link(
    codes_kb: Path, tmp_path: Path
) -> None:
    with pytest.raises(SapbertError, match="E332.*codes.*ICD10CM, MSH.*RXNORM"):
        load_kb(codes_kb).link(["fever"], codes=["RXNORM"])
    nlp = make_nlp(codes_kb, codes=["RXNORM"])
    with pytest.raises(SapbertError, match="E332.*codes.*RXNORM"):
        nlp(make_doc(nlp))
    note = tmp_path / "note.txt"
    note.write_text("Fever.", "utf8")
    arguments = ["link", str(codes_kb), str(note)]
    assert "[E332]" in invoke(*arguments, "--codes", "RXNORM", code=1).output
    found = invoke(*arguments, "--format", "omop", code=1)
    assert "[E471]" in found.output
    assert "got ICD10CM, MSH, SNOMEDCT" in found.output
