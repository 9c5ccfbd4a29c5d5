import tracemalloc
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.evaluation import regression_cases
from spacy_sapbert.evaluation.regression_cases import CaseFields, read_cases

SENTINEL = "SENTINELTEXT"


@pytest.fixture
def read(tmp_path):
    def read_text(text):
        path = tmp_path / "cases.yaml"
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return list(read_cases(path))

    return read_text


def test_read_cases_reads_each_field(read):
    first, second, third = read(
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


def test_read_cases_reads_every_value_as_text(read):
    (case,) = read("- {mention: no, expected: 10, note: null, label: 2020-01-01}")
    assert (case.mention, case.expected) == ("no", ("10",))
    assert (case.note, case.label) == ("null", "2020-01-01")


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("- mention: x\n  cui: C1\n", 1, "texts as expected, mention"),
        ("- mention: x\n  expected: C1\n- mention: x\n", 3, "as `expected`"),
        ("- expected: C1\n", 1, "neither"),
        ("- expected: C1\n  context: no marks\n", 1, "neither"),
        ("- mention: x\n  expected:\n", 1, "as `expected`"),
        ("- mention: x\n  expected: []\n", 1, "as `expected`"),
        ("- mention: x\n  expected: [C1, '']\n", 1, "as `expected`"),
        ("- mention: ' '\n  expected: C1\n", 1, "as `mention`"),
        ("- mention: [x]\n  expected: C1\n", 1, "as `mention`"),
        ("- mention: x\n  expected: {C1: 1}\n", 1, "as `expected`"),
        ("- mention: x\n  expected: [[C1]]\n", 1, "as `expected`"),
        ("- mention: x\n  context: other\n  expected: C1\n", 1, "the mention in it"),
        ("- mention: x\n  context: '[[y]]'\n  expected: C1\n", 1, "another"),
        ("- context: '[[y'\n  expected: C1\n", 1, "half"),
        ("- context: 'y]]'\n  expected: C1\n", 1, "half"),
        ("- context: '[[ ]]'\n  expected: C1\n", 1, "half"),
        ("- context: '[[y]] [[z]]'\n  expected: C1\n", 1, "several"),
        ("- x\n", 1, "something else"),
        ("- {mention: x, expected: C1}\n---\n- x\n", 1, "one list"),
        ("- mention: x\n  mention: y\n  expected: C1\n", 1, "one list"),
    ],
)
def test_read_cases_names_the_line_of_a_wrong_case(read, text, line, message):
    with pytest.raises(SapbertError, match="E117") as caught:
        read(text)
    assert f"cases.yaml:{line}: " in str(caught.value)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (f"- mention: {SENTINEL}: x\n", 1),
        (f"- mention: x\n  expected: '{SENTINEL}\n", 2),
        (f"- mention: x\n  note: @{SENTINEL}\n", 2),
        (f"- mention: x\n  note: \x07{SENTINEL}\n", None),
    ],
)
def test_read_cases_does_not_quote_text_that_is_not_yaml(read, text, line):
    with pytest.raises(SapbertError, match="E117") as caught:
        read(text)
    assert f"cases.yaml{f':{line}' * bool(line)}: " in str(caught.value)
    assert SENTINEL not in str(caught.value)


@pytest.mark.parametrize("text", ["", "# only a comment\n", "[]\n"])
def test_read_cases_refuses_a_file_without_cases(read, text):
    with pytest.raises(SapbertError, match="E106"):
        read(text)


@pytest.mark.parametrize(
    "text", ["cases: []\n", "- mention: [" * 5000, '- mention: "\\UFFFFFFFF"\n', "x"]
)
def test_read_cases_refuses_what_is_no_list(read, text):
    with pytest.raises(SapbertError, match=r"E117.*cases\.yaml.*one list of cases"):
        read(text)


def test_read_cases_runs_no_code(read):
    for text in ("!!python/name:os.system x", "!!python/object/apply:os.system [ls]"):
        with suppress(SapbertError):
            (case,) = read(f"- mention: {text}\n  expected: C1\n")
            assert case.mention == "x"


def test_read_cases_refuses_other_bytes_and_missing_files(read, tmp_path):
    with pytest.raises(SapbertError, match="E009.*cases.yaml:2"):
        read(b"- mention: x\n  note: \xff\n")
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


def test_read_cases_refuses_a_large_file(read, monkeypatch):
    monkeypatch.setattr(regression_cases, "MAX_BYTES", 100)
    with pytest.raises(SapbertError, match="E007.*100 bytes"):
        read("- {mention: x, expected: C1}\n" * 4)


VALUES = st.text(max_size=8) | st.lists(st.text(max_size=4), max_size=2)


@given(st.text(alphabet="- :[]{}'\"&*!|>#%@,\n\tax1", max_size=40))
def test_read_cases_accepts_or_refuses_any_text(tmp_path_factory, text):
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    path.write_text(text)
    with suppress(SapbertError):
        assert list(read_cases(path))


@given(st.dictionaries(st.sampled_from([*CaseFields.model_fields]), VALUES))
def test_read_cases_accepts_or_refuses_any_mapping(tmp_path_factory, data):
    import srsly

    path = tmp_path_factory.getbasetemp() / "mapping.yaml"
    path.write_text(srsly.yaml_dumps([data]))
    try:
        (case,) = read_cases(path)
    except SapbertError:
        return
    end = case.start + len(case.mention)
    assert case.text[case.start : end] == case.mention
    assert case.expected
