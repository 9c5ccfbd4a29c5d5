from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import typer

from benchmarks.options import format_change, main, score_mention
from tests.building import build_small_kb
from tests.commands import invoke

app = typer.Typer()
app.command()(main)
TITLE = "Fever, mitral insufficiency (MI), and acetylsalicylic acid."
PLACES = [
    ("Fever", "Disease", "C0000004"),
    ("mitral insufficiency", "Disease", "C0000002"),
    ("MI", "Disease", "C0000002"),
    ("acetylsalicylic acid", "Chemical", "C0000006"),
    ("acid", "Chemical", "-1"),
    ("insufficiency", "Disease", "C7654321"),
]


def write_corpus(path: Path, documents: int = 1) -> Path:
    lines: list[str] = []
    for number in range(1, documents + 1):
        lines += [f"{number}|t|{TITLE}", f"{number}|a|None."]
        for mention, label, cui in PLACES:
            start = TITLE.index(mention)
            place = f"{start}\t{start + len(mention)}\t{mention}"
            lines.append(f"{number}\t{place}\t{label}\t{cui}")
        lines.append("")
    path.write_text("\n".join(lines), "utf8")
    return path


run = partial(invoke, app=app)


def candidate(cui: str, score: float) -> Any:
    return {"cui": cui, "score": score}


def test_score_mention_counts_the_order_and_all_parts() -> None:
    found = [
        candidate(cui, score) for cui, score in (("C1", 1), ("C2", 1), ("C3", 0.5))
    ]
    assert score_mention(found, [{"C1"}], {}) == [True, True]
    assert score_mention(found, [{"C2"}], {}) == [False, True]
    assert score_mention(found, [{"C9"}], {"C1": "C9"}) == [True, True]
    assert score_mention(found, [{"C1"}, {"C3"}], {}) == [False, True]
    assert score_mention([], [{"C1"}], {}) == [False, False]


def hits(*right: int) -> np.ndarray:
    return np.array([[one, 1] for one in right], dtype=bool)


def test_format_change_compares_mention_by_mention() -> None:
    one, other = hits(1, 0, 0, 0), hits(0, 1, 1, 0)
    assert format_change(other, one) == "+25.00 (+2 −1), p = 1.000"
    assert format_change(one, None) == "–"
    assert format_change(one, one) == "0"
    better = format_change(hits(*[1] * 20), hits(*[0] * 20))
    assert better == "+100.00 (+20 −0), p < 0.001"


def test_options_measures_options_in_the_pipeline(
    concepts_file: Path, tiny_encoder: Path, tmp_path: Path
) -> None:
    kb = tmp_path / "kb"
    build_small_kb(concepts_file, kb, tiny_encoder)
    dev = write_corpus(tmp_path / "dev.txt", documents=3)
    result = run(dev, "--kb", kb, "--limit", 1, code=0)
    summary = "1 documents, 4 of 6 mentions scored, 1 without an id, coverage 0.800"
    assert f"dev.txt: {summary}." in result.output
    # MI is the infarction, by its id
    assert "| plain | 0.7500 | – | 1.0000 |" in result.output
    assert "| abbreviations | 1.0000 | +25.00 (+1 −0), p = 1.000 |" in result.output
    assert "| label as filter | 0.7500 | 0 |" in result.output
    assert "| **+ abbreviations** | 1.0000 |" in result.output
    assert "insufficiency" not in result.output


def test_options_without_known_ids_is_an_error(sample_kb: Path, tmp_path: Path) -> None:
    dev = write_corpus(tmp_path / "dev.txt")
    result = run(dev, "--kb", sample_kb, "--prefix", "MESH:", code=1)
    assert "E106" in str(result.exception)
