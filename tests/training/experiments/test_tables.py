import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.evaluation.evaluate import evaluate_kb
from spacy_sapbert.evaluation.score_mentions import EvaluationSettings
from spacy_sapbert.io.writing import write_json
from spacy_sapbert.kb.knowledge_base import load_kb
from training.experiments.tables import MEAN, TOGETHER, read_results, results_table

ES, RU = "xlbel_es.test.tsv.gz", "xlbel_ru.test.tsv.gz"
Values = dict[str, tuple[float, float | None, float | None]]


def write(path: Path, values: Values, *, sha256: str = "0", **settings: Any) -> Path:
    """By file: coverage, Acc@1 and @5, by concepts with expected ties."""
    files = []
    for file, (coverage, *accuracies) in values.items():
        zeros = dict.fromkeys(("lenient", "expected", "strict"), 0.0)
        ks = {
            f"acc@{k}": {**zeros, "expected": value}
            for k, value in zip((1, 5), accuracies, strict=True)
        }
        groups = {"concepts": ks, "rows": dict.fromkeys(ks, zeros)}
        result = {"file": file, "sha256": sha256, "coverage": coverage}
        accuracy = {"all": groups, "covered": groups}
        files.append({**result, "accuracy": accuracy})
    data = {"settings": {"ks": [1, 5], **settings}, "files": files}
    path.write_text(json.dumps(data), "utf8")
    return path


def table(*results: object, **options: Any) -> list[list[str]]:
    return results_table([*map(str, results)], quiet=True, **options)


def test_table_has_each_file_with_each_linker_and_the_mean(tmp_path: Path) -> None:
    base = write(tmp_path / "base.json", {ES: (0.2, 0.1, 0.2), RU: (0.4, 0.3, 0.5)})
    other = write(tmp_path / "b.json", {ES: (0.2, 0.2, 0.4), RU: (0.4, 0.5, 0.5)})
    assert table(base, f"trained={other}") == [
        [ES, "base", "0.200", "0.100", "0.200"],
        [ES, "trained", "0.200", "0.200", "0.400"],
        [RU, "base", "0.400", "0.300", "0.500"],
        [RU, "trained", "0.400", "0.500", "0.500"],
        [MEAN, "base", "0.300", "0.200", "0.350"],
        [MEAN, "trained", "0.300", "0.350", "0.450"],
    ]
    assert table(base, ties="strict")[0] == [ES, "base", "0.200", "0.000", "0.000"]
    assert table(base, level="rows")[0] == [ES, "base", "0.200", "0.000", "0.000"]


def test_table_has_mean_and_sample_deviation_of_seeds(tmp_path: Path) -> None:
    # squares of -0.15, -0.05 and 0.2 add up to 0.065; the root of 0.0325
    paths = [
        write(tmp_path / f"trained-{seed}.json", {ES: (0.2, value, 0.9)})
        for seed, value in enumerate((0.5, 0.6, 0.85))
    ]
    row = [ES, "trained", "0.200 ± 0.000", "0.650 ± 0.180", "0.900 ± 0.000"]
    assert table(*paths) == [row]
    assert table(*(f"trained={path}" for path in paths)) == [row]


def test_table_joins_folds(tmp_path: Path) -> None:
    folds: Values = {"0.tsv": (0.9, 0.5, 1), "1.tsv": (0.9, 0.7, 1)}
    (row,) = table(write(tmp_path / "a.json", folds), together=True)
    assert row == [TOGETHER, "a", "0.900 ± 0.000", "0.600 ± 0.141", "1.000 ± 0.000"]
    apart = [
        write(tmp_path / f"fold-{n}.json", {f"{n}.tsv": (0.9, 0.5, 1)}) for n in (0, 1)
    ]
    assert [row[0] for row in table(*apart)] == ["0.tsv", "1.tsv"]


def test_table_leaves_files_without_mentions_out_of_the_mean(tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", {ES: (0.0, None, None), RU: (0.5, 0.4, 0.6)})
    first, _, mean = table(path, group="covered")
    assert first == [ES, "a", "0.000", "–", "–"]
    assert mean == [MEAN, "a", "0.250", "0.400", "0.600"]


def test_table_of_different_results_is_an_error(tmp_path: Path) -> None:
    values: Values = {ES: (0.2, 0.1, 0.2)}
    one = write(tmp_path / "a.json", values)
    other = write(tmp_path / "b.json", values, composite="released")
    with pytest.raises(SapbertError, match=r"E746.*b\.json.*a\.json.*`composite`"):
        table(one, other)
    with pytest.raises(SapbertError, match="E746"):
        table(one, write(tmp_path / "c.json", values, sha256="1"))
    with pytest.raises(SapbertError, match=r"E746.*'seen'"):
        table(one, group="seen")
    with pytest.raises(SapbertError, match="E331"):
        table(one, ties="kind")
    with pytest.raises(SapbertError, match="E001"):
        table(tmp_path / "none.json")


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", "[" * 5000]
    + ['{"settings": {"ks": [1]}, "files": [{"file": "a", "sha256": "b"}]}'],
)
def test_read_results_refuses_other_files(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(text, "utf8")
    with pytest.raises(SapbertError, match=r"a\.json.*spacy sapbert evaluate"):
        read_results([path])


def test_results_table_of_evaluated_mentions(
    invoke: Callable[..., Any], sample_kb: Path, tmp_path: Path
) -> None:
    # the second of two ids is right; one id is not in the knowledge base
    (tmp_path / "xlbel_en.test.tsv").write_text(
        "mention\tids\nfever\tC7777777|C0000004\naspirin\tC0000006\nflu\tC8888888\n",
        "utf8",
    )
    (tmp_path / "xlbel_ja.test.tsv").write_text("mention\tids\npyrexia\tC0000004\n")
    paths = [tmp_path / f"xlbel_{language}.test.tsv" for language in ("en", "ja")]
    kb = load_kb(str(sample_kb))
    results = evaluate_kb(kb, paths, EvaluationSettings()).results
    write_json(tmp_path / "ours.json", results)
    output = tmp_path / "table.md"
    shown = invoke("results-table", tmp_path / "ours.json", "--output", output).output
    text = output.read_text("utf8")
    assert text in shown
    assert "| Mentions | Linker | Coverage | Acc@1 | Acc@5 |" in text
    assert "| xlbel_en.test.tsv | ours | 0.667 | 0.667 | 0.667 |" in text
    assert "| xlbel_ja.test.tsv | ours | 1.000 | 1.000 | 1.000 |" in text
    assert f"| {MEAN} | ours | 0.833 | 0.833 | 0.833 |" in text
