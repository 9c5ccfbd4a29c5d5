"""The linker beside components of others, and the programs of two pages."""

import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc, Span

DOCS = Path(__file__).parents[2] / "docs"
RECIPES = "\n".join(
    (DOCS / page).read_text("utf8") for page in ("first_hour.md", "recipes.md")
)
PROGRAM = re.compile(
    r"^```python\n(.*?)^```\n+```text\n(.*?)^```", re.DOTALL | re.MULTILINE
)
TEXT = "No fever. She denies a headache, but had a heart attack."
LINKS = {"fever": "C0000004", "headache": "C0000007", "heart attack": "C0000001"}
ENDS = ("out", "err")  # of the files with what a program prints
FOUND = ("fever", "heart", "attack")  # words that the stand-ins of detectors know
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


# Opening spaCy takes seconds: one process does it, and forks for each program.
PROGRAMS = """
import os, sys, traceback
import spacy
spacy.blank("en")

number = 0
for code in eval(sys.stdin.read()):
    number += 1
    child = os.fork()
    if not child:
        with open(f"{number}.out", "w") as out, open(f"{number}.err", "w") as err:
            os.dup2(out.fileno(), 1)
            os.dup2(err.fileno(), 2)
        try:
            exec(compile(code, "program", "exec"), {"__name__": "__main__"})
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(0)
    os.waitpid(child, 0)
"""


@pytest.fixture(scope="module")
def printed(demo_folder: Path, shared_process: Any) -> dict[str, tuple[str, str]]:
    """What each program prints: code → standard output and error."""
    folder = demo_folder
    make_token_classifier(folder / "models" / "disease-ner")
    with suppress(ImportError):
        make_gliner(folder / "models" / "disease-gliner")
    codes = [code for code, _ in PROGRAM.findall(RECIPES)]
    # that model is not trained: all its scores are about 0.5
    changed = [code.replace("threshold=0.5", "threshold=0.0") for code in codes]
    done = shared_process.python(PROGRAMS, cwd=folder, input=repr(changed))
    assert done.returncode == 0, done.stderr
    return {
        code: tuple((folder / f"{number}.{end}").read_text("utf8") for end in ENDS)
        for number, code in enumerate(codes, 1)
    }


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.parametrize(("code", "output"), PROGRAM.findall(RECIPES))
def test_recipe_prints_its_output(
    printed: dict[str, tuple[str, str]], code: str, output: str
) -> None:
    for module in re.findall(r"^(?:import|from) (\S+)", code, re.MULTILINE):
        pytest.importorskip(module, exc_type=ImportError)
    found, errors = printed[code]
    if "gliner" in code:
        assert "fever" in found, errors
    else:
        assert found == output, errors


def make_words(folder: Path) -> list[str]:
    """Write a tokenizer that knows a few words."""
    from transformers import BertTokenizerFast

    folder.mkdir(parents=True)
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *FOUND, "a", "."]
    (folder / "vocab.txt").write_text("\n".join(words), "utf8")
    tokenizer = BertTokenizerFast(str(folder / "vocab.txt"), model_max_length=64)
    tokenizer.save_pretrained(folder)
    return words


def make_token_classifier(folder: Path) -> None:
    """Save a BERT without layers that finds the words of `FOUND`."""
    import torch
    from transformers import BertConfig, BertForTokenClassification

    words = make_words(folder)
    config = BertConfig(
        vocab_size=len(words),
        hidden_size=2,
        num_hidden_layers=0,
        num_attention_heads=1,
        max_position_embeddings=64,
        id2label={0: "O", 1: "I-Disease"},
        label2id={"O": 0, "I-Disease": 1},
    )
    model = BertForTokenClassification(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        embeddings = model.bert.embeddings
        embeddings.LayerNorm.weight.fill_(1)
        vectors = [[-1.0, 1.0] if word in FOUND else [1.0, -1.0] for word in words]
        embeddings.word_embeddings.weight[:] = torch.tensor(vectors)
        model.classifier.weight[:] = torch.eye(2) * 9
    model.save_pretrained(folder)


def make_gliner(folder: Path) -> None:
    """Save a GLiNER that was not trained."""
    import torch
    from gliner import GLiNER
    from gliner.config import GLiNERConfig
    from transformers import BertConfig, BertModel

    base = folder.with_name("bert")
    size = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1}
    words = len(make_words(base))
    torch.manual_seed(0)
    BertModel(
        BertConfig(vocab_size=words, num_attention_heads=1, **size)
    ).save_pretrained(base)
    config = GLiNERConfig(
        model_name=str(base), max_width=3, hidden_size=16, max_len=64, dropout=0.0
    )
    GLiNER.from_config(config).save_pretrained(folder)
