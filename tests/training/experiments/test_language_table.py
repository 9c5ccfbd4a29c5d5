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
from training.experiments.tables import (
    find_language,
    format_table,
    make_language_table,
)

ES, RU = "xlbel_es.test.tsv.gz", "xlbel_ru.test.tsv.gz"


def write(
    path: Path,
    values: dict[str, tuple[float, float | None, float | None]],
    *,
    sha256: str = "0",
    **settings: Any,
) -> Path:
    """By file: coverage, Precision@1 and @5, by concepts with expected ties."""
    files = []
    for file, (coverage, first, five) in values.items():
        zeros = dict.fromkeys(("lenient", "expected", "strict"), 0.0)
        ks = {f"acc@{k}": {**zeros, "expected": v} for k, v in ((1, first), (5, five))}
        accuracy = {"all": {"concepts": ks, "rows": {"acc@1": zeros, "acc@5": zeros}}}
        files.append(
            {
                "file": file,
                "sha256": sha256,
                "coverage": coverage,
                "accuracy": {**accuracy, "covered": accuracy["all"]},
            }
        )
    path.write_text(
        json.dumps({"settings": {"ks": [1, 5], **settings}, "files": files})
    )
    return path


def table(*results: str, **options: Any) -> dict[str, Any]:
    return make_language_table([*results], quiet=True, **options)


@pytest.mark.parametrize(
    ("file", "language"),
    [
        ("xlbel_es.test.tsv.gz", "es"),
        ("th_1k_test_query.txt", "th"),
        ("bionnel_ru.train.tsv.gz", "ru"),
        ("dev.de.tsv", "de"),
    ],
)
def test_find_language_in_the_name_of_a_file(file: str, language: str) -> None:
    assert find_language(file) == language


@pytest.mark.parametrize(
    "file", ["mentions.tsv.gz", "test_en_gold_es.tsv", "gold.to.tsv"]
)
def test_find_language_needs_one_language_of_spacy(file: str) -> None:
    with pytest.raises(SapbertError, match="E780"):
        find_language(file)


def test_make_table_has_languages_and_their_mean(tmp_path: Path) -> None:
    one = write(tmp_path / "a.json", {ES: (0.2, 0.1, 0.2), RU: (0.4, 0.3, 0.5)})
    other = write(tmp_path / "b.json", {ES: (0.2, 0.2, 0.4), RU: (0.4, 0.5, 0.5)})
    data = table(f"base={one}", f"trained={other}")
    assert data["files"] == {"es": ES, "ru": RU}
    (base,) = data["linkers"]["base"]
    assert base == {
        "coverage": {"es": 0.2, "ru": 0.4, "mean": 0.3},
        "p@1": {"es": 0.1, "ru": 0.3, "mean": 0.2},
        "p@5": {"es": 0.2, "ru": 0.5, "mean": 0.35},
    }
    lines = format_table(data).splitlines()
    assert lines[2] == (
        "| Language | base: Coverage | base: P@1 | base: P@5 "
        "| trained: Coverage | trained: P@1 | trained: P@5 |"
    )
    assert lines[-1] == "| mean | 0.300 | 0.200 | 0.350 | 0.300 | 0.350 | 0.450 |"
    (strict,) = table(f"base={one}", ties="strict")["linkers"]["base"]
    assert set(strict["p@1"].values()) == {0}


def test_format_table_has_mean_and_deviation_of_seeds(tmp_path: Path) -> None:
    paths = [
        write(tmp_path / f"{value}.json", {ES: (0.2, value, 0.9)})
        for value in (0.1, 0.3)
    ]
    text = format_table(table(*(f"trained={path}" for path in paths)))
    assert "| es | 0.200 ± 0.000 | 0.200 ± 0.141 | 0.900 ± 0.000 |" in text


def test_make_table_leaves_empty_languages_out_of_the_mean(tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", {ES: (0.0, None, None), RU: (0.5, 0.4, 0.6)})
    data = table(f"a={path}", group="covered")
    assert data["linkers"]["a"][0]["p@1"]["mean"] == 0.4
    assert "| es | 0.000 | – | – |" in format_table(data)


def test_make_table_of_different_results_is_an_error(tmp_path: Path) -> None:
    values = {ES: (0.2, 0.1, 0.2)}
    one = write(tmp_path / "a.json", values)
    twice = {**values, "dev.es.tsv": (0.2, 0.1, 0.2)}
    for result, code in (
        (write(tmp_path / "b.json", values, distinct=1), "E746.*distinct"),
        (write(tmp_path / "c.json", values, sha256="1"), "E782"),
    ):
        with pytest.raises(SapbertError, match=code):
            table(f"a={one}", f"a={result}")
    for result, code in (
        (f"a={write(tmp_path / 'd.json', twice)}", "E781.*'es'"),
        (f"a={write(tmp_path / 'e.json', {'dev.tsv': (1, 1, 1)})}", r"E780.*dev\.tsv"),
        (str(one), "E783"),
    ):
        with pytest.raises(SapbertError, match=code):
            table(result)
    with pytest.raises(SapbertError, match="E605"):
        table(f"a={one}", ties="kind")


def test_language_table_of_evaluated_mentions(
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
    write_json(tmp_path / "results.json", results)
    words = ["language-table", f"ours={tmp_path}/results.json"]
    words += ["--output", tmp_path / "table.md", "--json", tmp_path / "table.json"]
    invoke(*words)
    text = (tmp_path / "table.md").read_text("utf8")
    assert "| en | 0.667 | 0.667 | 0.667 |" in text
    assert "| ja | 1.000 | 1.000 | 1.000 |" in text
    assert "| mean | 0.833 | 0.833 | 0.833 |" in text
    data = json.loads((tmp_path / "table.json").read_text("utf8"))
    assert data["linkers"]["ours"][0]["p@1"]["mean"] == pytest.approx(5 / 6, abs=1e-6)
