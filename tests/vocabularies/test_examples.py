"""Files as releases have them, and the concepts and the reports that they give.

A folder of `examples` has files of a format, or of several for `united`, and
`expected.jsonl`. There a line says what is read, one path or several, with which
options, and what is reported of each file; the lines below it are the concepts. After a
reader has changed, `python -m tests.vocabularies.test_examples` writes them again, and
git shows what is different: read it.
"""

import json
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.vocabularies.concepts import Concept, concept_to_json, write_concepts
from spacy_sapbert.vocabularies.reader_table import READERS, read_vocabularies
from spacy_sapbert.vocabularies.report import Report
from tests.golden import read_cases

FOLDER = Path(__file__).parent / "examples"
NAMES = sorted(path.name for path in FOLDER.iterdir())
PIECES = [
    *('"', "|", "||", "\t", "\n", "\r", "\0", "\\", "[", "{", "<", ">", "&", "\ufeff"),
    *("[Term]\n", "id: X:2\n", 'synonym: "', "is_a: ", "xref: UMLS:", "alt_id: "),
    *("<DescriptorRecord>", "</DescriptorRecord>", "<!--", "-->", "<![CDATA[", "]]>"),
    *("&#0;", "<?x ?>", "<diag>", "<name>", "</diag>", '"cui": ', '"aliases": [', "}"),
    *(",", "1\t", "Maps to", "9" * 30, "[]", "@en", "^^", "\\u"),
]
TEXTS = st.lists(st.sampled_from(PIECES) | st.text(max_size=9), max_size=6)


def copy_example(name: str, folder: Path, without: list[str]) -> Path:
    """Copy the files of an example, except those of some patterns."""
    copy = Path(shutil.copytree(FOLDER / name, folder / name))
    (copy / "expected.jsonl").unlink()
    for path in [path for pattern in without for path in copy.glob(f"*/{pattern}")]:
        path.unlink()
    return copy


def list_files(case: dict[str, Any], copy: Path) -> tuple[list[Path], ...]:
    """Return the paths that are read, of cross references and of retired ids."""
    read = [case["read"]] if isinstance(case["read"], str) else case["read"]
    listed = read, case.get("xrefs", []), case.get("retired", [])
    return tuple([copy / path for path in paths] for paths in listed)


def read_case(
    case: dict[str, Any],
    copy: Path,
    conflict: Callable[..., None] | None = None,
    **options: Any,
) -> tuple[list[Concept], list[Report]]:
    """Return the concepts of a case, and the report of each of its files."""
    files, xrefs, retired = list_files(case, copy)
    reports = [Report(conflict=conflict) for _ in (*files, *xrefs, *retired)]
    options = {**case.get("options", {}), **options}
    more = {"xrefs": xrefs, "retired": retired, "reports": reports}
    return list(
        read_vocabularies(files, case.get("format"), **more, **options)
    ), reports


def show_case(
    name: str, case: dict[str, Any], folder: Path
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Read a case from a copy of its files, and return it as JSON."""
    copy = copy_example(name, folder, case.get("without", []))
    conflicts: list[list[str]] = []
    concepts, reports = read_case(case, copy, lambda *row: conflicts.append([*row]))
    shown = [report.to_json() for report in reports]
    files = [str(path) for paths in list_files(case, copy) for path in paths]
    assert [data.pop("path") for data in shown] == files
    for data in shown:
        data["notes"] = [note.replace(f"{copy}/", "") for note in data["notes"]]
    if conflicts:
        shown[-1]["conflicts"] = conflicts
    return [concept_to_json(concept) for concept in concepts], shown


CASES = [
    pytest.param(name, case, concepts, id=f"{name}-{number}")
    for name in NAMES
    for number, (case, concepts) in enumerate(read_cases(FOLDER / name))
]


@pytest.mark.parametrize(("name", "case", "expected"), CASES)
def test_example_gives_its_concepts_and_its_report(name, case, expected, tmp_path):
    concepts, reports = show_case(name, case, tmp_path)
    assert concepts == expected
    assert [list(each) for each in concepts] == [list(each) for each in expected]
    assert reports == case["reports"]


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=settings().max_examples // 3)
@given(
    which=st.integers(0, 99),
    place=st.floats(0, 1),
    texts=TEXTS,
    extra=st.binary(max_size=3),
    cut=st.integers(0, 30),
    on_error=st.sampled_from(["fail", "skip"]),
)
def test_damaged_example_gives_concepts_or_a_sapbert_error(
    name, which, place, texts, extra, cut, on_error
):
    with tempfile.TemporaryDirectory() as folder:
        copy = copy_example(name, Path(folder), [])
        files = sorted(path for path in copy.rglob("*") if path.is_file())
        path = files[which % len(files)]
        cases = [case for case, _ in read_cases(FOLDER / name)]
        # a file that is read with another one has no case of its own
        case = max(
            cases,
            key=lambda case: any(
                path.is_relative_to(each)
                for paths in list_files(case, copy)
                for each in paths
            ),
        )
        data = path.read_bytes()
        start = int(place * len(data))
        end = start + cut
        path.write_bytes(data[:start] + "".join(texts).encode() + extra + data[end:])
        with suppress(SapbertError):
            concepts, _ = read_case(case, copy, on_error=on_error)
            assert concepts
            assert all(concept.cui and concept.aliases for concept in concepts)
            write_concepts(Path(folder) / "again.jsonl", concepts)


def test_examples_have_all_formats():
    assert {*READERS} | {"united"} == {*NAMES}


def write_expected() -> None:
    """Write the reports and concepts of all cases again, as they are now."""
    for name in NAMES:
        lines = []
        for case, _ in reversed([*read_cases(FOLDER / name)]):
            with tempfile.TemporaryDirectory() as folder:
                concepts, reports = show_case(name, case, Path(folder))
            lines += [{**case, "reports": reports}, *concepts]
        texts = [json.dumps(line, ensure_ascii=False) + "\n" for line in lines]
        (FOLDER / name / "expected.jsonl").write_text("".join(texts), "utf8")


if __name__ == "__main__":
    write_expected()
