import tracemalloc
from contextlib import suppress
from pathlib import Path

import pytest
import spacy
from spacy.language import Language

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.evaluation import regression_cases
from spacy_sapbert.evaluation.regression import make_doc, read_context, run_cases
from spacy_sapbert.evaluation.regression_cases import Case, read_cases
from spacy_sapbert.pipeline.running import complete_pipeline


@Language.component("test_record_entities", assigns=["doc.sents"])
def record_entities(doc):
    SEEN.append((doc.text, [(ent.text, ent.label_) for ent in doc.ents]))
    return doc


SEEN: list = []


def make_case(text, mention, *expected, label=None, line=1):
    return Case(
        Path("cases.yaml"),
        line,
        text,
        text.index(mention),
        mention,
        expected,
        label,
        None,
    )


@pytest.fixture
def pipeline(sample_kb):
    """Makes a pipeline of components and a linker."""

    def make(*components):
        nlp = spacy.blank("en")
        for name in components:
            pipe = nlp.add_pipe(name)
            if name == "entity_ruler":
                texts = ("fever", "MI", "no fever")
                pipe.add_patterns(
                    [{"label": "SIGN", "pattern": text} for text in texts]
                )
        nlp.add_pipe("sapbert_linker", config={"kb": str(sample_kb)})
        return nlp, complete_pipeline(nlp, detection=False)

    return make


# text, mention, expected; whether it passed, the concept, the rank, remarks
OUTCOMES = [
    ("no fever", "fever", ["C0000004"], True, "C0000004", 1, []),
    ("pyrexia", "pyrexia", ["C0000001"], False, "C0000004", 7,
     ["the expected is rank 7"]),
    ("MI", "MI", ["C0000001", "C0000002"], False, None, 1,  # they share the name
     ["the expected is rank 1"]),
    ("--", "--", ["NIL"], True, None, None, []),
    ("fever", "fever", ["NIL"], False, "C0000004", None, []),
    ("--", "--", ["C0000004"], False, None, None, ["the expected is no candidate"]),
    ("fever", "fever", ["NIL", "C0000004"], True, "C0000004", 1, []),
    ("heart attack", "heart attack", ["C9999999"], True, "C0000001", 1,
     ["C9999999 is C0000001 now"]),
    ("fever", "fever", ["C7777777"], False, "C0000004", None,
     ["C7777777 is unknown"]),
]  # fmt: skip


def test_run_cases_returns_what_was_found_instead(pipeline):
    nlp, linker = pipeline()
    cases = [
        make_case(text, mention, *expected, label="SIGN", line=line)
        for line, (text, mention, expected, *_) in enumerate(OUTCOMES, 2)
    ]
    outcomes = list(run_cases(nlp, linker, cases))
    shown = [
        (o.context, o.mention, o.expected, o.passed, o.cui, o.rank, o.remarks)
        for o in outcomes
    ]
    assert shown == OUTCOMES
    wrong, nothing = outcomes[1], outcomes[5]
    assert wrong.candidates[6]["cui"] == "C0000001"
    assert nothing._replace(candidates=[]) == (
        *("cases.yaml", 7, "--", "--", 0, "SIGN", None, ["C0000004"], False),
        *(None, None, None, "empty", None, nothing.remarks, []),
    )
    assert (wrong.name, wrong.score, wrong.link_note) == ("Fever", 1.0, None)


@pytest.mark.parametrize(
    ("text", "mention"),
    [
        ("nofevertoday", "fever"),
        ("don't", "n"),
        ("头痛頭痛", "頭痛"),
    ],
)
@pytest.mark.parametrize("key", [None, "sc"])
def test_make_doc_has_the_mention_as_the_entity(text, mention, key):
    nlp = spacy.blank("en")
    nlp.max_length = len(text)
    doc = make_doc(nlp, make_case(text, mention, "C1"), spans_key=key)
    (span,) = doc.ents if key is None else doc.spans[key]
    assert doc.text == text
    assert (span.text, span.start_char) == (mention, text.index(mention))
    assert span.label_ == "CONCEPT"
    nlp.max_length -= 1
    with pytest.raises(SapbertError, match="cases.yaml"):
        make_doc(nlp, make_case(text, mention, "C1"), spans_key=key)


def test_run_cases_runs_the_pipeline_on_the_context(pipeline):
    nlp, linker = pipeline("entity_ruler", "test_record_entities")
    SEEN.clear()
    case = make_case("no fever", "fever", "C0000004", label="OTHER")
    (outcome,) = run_cases(nlp, linker, [case])
    assert outcome.passed
    assert SEEN == [("no fever", [("fever", "OTHER")])]


def test_read_context_uses_long_forms_of_components_only(pipeline):
    case = make_case("A heart attack (HA). Since the HAs", "HA")
    without = read_context(*pipeline(), case)
    assert (without.text, without.defined) == ("HA", "heart attack")
    context = read_context(*pipeline("sapbert_abbreviations"), case)
    assert (context.text, context.long_form) == ("heart attack", "heart attack")
    # Behind the linker it is too late.
    nlp, linker = pipeline()
    nlp.add_pipe("sapbert_abbreviations")
    assert read_context(nlp, linker, case).long_form is None


def test_read_context_detects_the_other_mentions(pipeline):
    nlp, linker = pipeline("entity_ruler")
    text = "MI and no fever, then fever"
    context = read_context(nlp, linker, make_case(text, "MI"))
    assert context.label == "SIGN"
    assert context.others == [("no fever", "SIGN"), ("fever", "SIGN")]
    # What overlaps with the mention is not another one.
    context = read_context(nlp, linker, make_case(text, "fever"))
    assert context.label == ""
    assert context.others == [("MI", "SIGN"), ("fever", "SIGN")]


SENTINEL = "SENTINELTEXT"


@pytest.fixture
def read(tmp_path):
    def read_text(text):
        path = tmp_path / "cases.yaml"
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return list(read_cases(path))

    return read_text


def test_read_cases_reads_each_field(read):
    first, second, third, fourth = read(
        """# a comment
- mention: heart attack
  expected: C1

- {mention: MI, context: "old MI, no MI now", expected: [C1, C2, C1], label: X}
-
  context: >
    No [[raised
    temperature]] today.
  expected: NIL
  note: 'a reason: why'
- {mention: no, expected: 10, note: null, label: 2020-01-01}
"""
    )
    assert first[1:] == (2, "heart attack", 0, "heart attack", ("C1",), None, None)
    assert second[1:] == (5, "old MI, no MI now", 4, "MI", ("C1", "C2"), "X", None)
    assert third[1:] == (
        7,
        "No raised temperature today.\n",
        3,
        "raised temperature",
        ("NIL",),
        None,
        "a reason: why",
    )
    assert fourth[4:] == ("no", ("10",), "2020-01-01", "null")


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("- mention: x\n  cui: C1\n", ":1", "texts as expected, mention"),
        ("- mention: x\n  expected: C1\n- mention: x\n", ":3", "as `expected`"),
        ("- expected: C1\n", ":1", "neither"),
        ("- mention: ' '\n  expected: C1\n", ":1", "as `mention`"),
        ("- mention: x\n  context: other\n  expected: C1\n", ":1", "the mention in it"),
        ("- mention: x\n  context: '[[y]]'\n  expected: C1\n", ":1", "another"),
        ("- context: '[[y'\n  expected: C1\n", ":1", "half"),
        ("- context: '[[y]] [[z]]'\n  expected: C1\n", ":1", "several"),
        ("- {mention: x, expected: C1}\n---\n- x\n", ":1", "one list"),
        (f"- mention: x\n  expected: '{SENTINEL}\n", ":2", "one list"),
        (f"- mention: x\n  note: \x07{SENTINEL}\n", "", "one list"),
        ("- mention: [" * 5000, ":1", "one list"),
        ('- mention: "\\UFFFFFFFF"\n', "", "one list"),
    ],
)
def test_read_cases_names_the_line_of_a_wrong_case(read, text, place, message):
    with pytest.raises(SapbertError, match="E117") as caught:
        read(text)
    assert f"cases.yaml{place}: " in str(caught.value)
    assert message in str(caught.value)
    assert SENTINEL not in str(caught.value)


def test_read_cases_runs_no_code(read):
    for text in ("!!python/name:os.system x", "!!python/object/apply:os.system [ls]"):
        with suppress(SapbertError):
            (case,) = read(f"- mention: {text}\n  expected: C1\n")
            assert case.mention == "x"


def test_read_cases_refuses_large_and_missing_files_and_other_bytes(
    read, tmp_path, monkeypatch
):
    monkeypatch.setattr(regression_cases, "MAX_BYTES", 100)
    with pytest.raises(SapbertError, match="E007.*100 bytes"):
        read("- {mention: x, expected: C1}\n" * 4)
    with pytest.raises(SapbertError, match="E009.*cases.yaml:2"):
        read(b"- mention: x\n  note: \xff\n")
    with pytest.raises(SapbertError, match="E106"):
        read("# no case\n")
    with pytest.raises(SapbertError, match="E001"):
        list(read_cases(tmp_path / "none.yaml"))


def test_read_cases_does_not_expand_aliases(read):
    layers = ["- &a0 [x, x, x, x, x, x, x, x, x]"]
    layers += [f"- &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    tracemalloc.start()
    with pytest.raises(SapbertError, match="E117"):
        read("\n".join(layers))
    assert tracemalloc.get_traced_memory()[1] < 20_000_000
    tracemalloc.stop()
