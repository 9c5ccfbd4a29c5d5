import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")

from benchmarks.many_machines import app, make_documents, read_cpu  # noqa: E402


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    texts = ["Fever and pain.|t|", "Heart attack of the aspirin."]
    path = tmp_path / "corpus.pubtator"
    lines = [
        f"{n}|t|{text[:15]}\n{n}|a|{text[:20]}\n\n" for n, text in enumerate(texts)
    ]
    path.write_text("".join(lines), "utf8")
    return path


def test_documents_are_equal_for_any_number(corpus: Path) -> None:
    few, many = make_documents([corpus], 3), make_documents([corpus], 9)
    assert many.slice(0, 3) == few
    assert len({*many.column("text").to_pylist()}) > 1


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="this is not Linux")
def test_ways_find_the_same_mentions(
    corpus: Path, sample_kb: Path, tmp_path: Path
) -> None:
    assert read_cpu() > 0
    documents = tmp_path / "documents.parquet"
    pq.write_table(make_documents([corpus], 20), documents)
    found = []
    for way in ("plain", "batches"):
        arguments = ["one", way, sample_kb, documents, 0, 20]
        result = CliRunner().invoke(app, [*map(str, arguments)])
        assert result.exit_code == 0, result.output
        found.append(json.loads(result.output.splitlines()[-1])["mentions"])
    assert found[0] == found[1] > 0
