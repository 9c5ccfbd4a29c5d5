import json
from pathlib import Path

import pytest

from benchmarks.numbers import main


def write(path: Path, value: float) -> Path:
    """Write a results.json with one accuracy."""
    ties = {"lenient": value + 0.1, "expected": value, "strict": value}
    levels = {level: {"acc@1": ties, "acc@5": ties} for level in ("concepts", "rows")}
    accuracy = {"all": levels, "covered": levels}
    file = {"file": "dev.tsv.gz", "sha256": "", "coverage": 1, "accuracy": accuracy}
    path.write_text(json.dumps({"settings": {"ks": [1, 5]}, "files": [file]}), "utf8")
    return path


def test_numbers_has_a_line_for_each_linker_with_its_seeds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    values = {"base": 0.4, "trained-0": 0.5, "trained-1": 0.7, "fine-tuned-0": 0.8}
    paths = [write(tmp_path / f"{name}.json", value) for name, value in values.items()]
    main(paths, group="all", ties="expected")
    lines = capsys.readouterr().out.splitlines()
    assert "| Linker | dev Acc@1 | dev Acc@5 |" in lines
    assert "| base | 0.400 | 0.400 |" in lines
    assert "| trained | 0.600 ± 0.141 | 0.600 ± 0.141 |" in lines
    assert "| fine-tuned | 0.800 | 0.800 |" in lines
    main(paths[:1], group="covered", ties="lenient")
    assert "| base | 0.500 | 0.500 |" in capsys.readouterr().out
