from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.vocabularies.concepts import Concept
from training.experiments.figures import choose_concepts, sample_batch
from training.experiments.plots import open_figure, save_figure, write_figure


def assert_pictures(stem: Path) -> None:
    png = stem.with_name(f"{stem.name}.png").read_bytes()
    svg = stem.with_name(f"{stem.name}.svg").read_text("utf8")
    assert png.startswith(b"\x89PNG")
    assert len(png) > 5_000
    assert "<svg" in svg


def test_figures_draws_names_and_cosines_of_each_encoder(
    invoke: Callable[..., Any], concepts_file: Path, tiny_encoder: Path, tmp_path: Path
) -> None:
    encoders = ["--encoder", f"before={tiny_encoder}", "--encoder", tiny_encoder]
    names = ["figures", "names", concepts_file, tmp_path / "n", *encoders]
    invoke(*names, "--fewest", 2)
    assert_pictures(tmp_path / "n")
    cosines = ["figures", "cosines", concepts_file, tmp_path / "c", *encoders]
    invoke(*cosines, "--pairs", 5)
    assert_pictures(tmp_path / "c")
    # drawn again it is the same file
    svg = (tmp_path / "c.svg").read_text("utf8")
    invoke(*cosines, "--pairs", 5, "--force")
    assert (tmp_path / "c.svg").read_text("utf8") == svg


def test_choose_concepts_returns_concepts_with_enough_names() -> None:
    concepts = [Concept(f"C{n}", [f"{n} {i}" for i in range(n)]) for n in range(1, 9)]
    chosen = choose_concepts(concepts, count=3, fewest=5, seed=1)
    assert len({each.cui for each in chosen}) == 3
    assert all(len(each.aliases) >= 5 for each in chosen)
    with pytest.raises(SapbertError, match="99 names"):
        choose_concepts(concepts, count=3, fewest=99, seed=1)


def test_sample_batch_has_two_different_names_of_each_concept() -> None:
    concepts = [Concept(f"C{n}", [f"{n} a", f"{n} b", f"{n} c"]) for n in range(20)]
    names, labels = sample_batch(concepts, pairs=6, seed=0)
    assert len(set(names)) == 12
    assert labels.tolist() == [n for n in range(6) for _ in range(2)]


def test_figures_with_a_name_twice_is_an_error(
    invoke: Callable[..., Any], concepts_file: Path, tmp_path: Path
) -> None:
    encoders = ["--encoder", "a=x", "--encoder", "a=y"]
    words = ["figures", "cosines", concepts_file, tmp_path / "c", *encoders]
    assert "E331" in invoke(*words, code=1).output


def test_figures_draws_a_calibration(
    invoke: Callable[..., Any], sample_kb: Path, annotated_file: Path, tmp_path: Path
) -> None:
    pytest.importorskip("matplotlib", reason="no matplotlib")
    output = tmp_path / "calibration"
    invoke("figures", "calibration", sample_kb, annotated_file, "-o", output)
    assert_pictures(output)


def test_write_figure_makes_equal_files_of_equal_figures(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="no matplotlib")
    written: list[Any] = []
    for name in ("one", "two"):
        figure, axes = open_figure(1, 2)
        axes[0][1].plot([0, 1], [1, 0])
        paths = write_figure(figure, tmp_path / "new" / name)
        assert [path.name for path in paths] == [f"{name}.png", f"{name}.svg"]
        assert paths[0].read_bytes().startswith(b"\x89PNG")
        written.append(paths[1].read_text("utf8"))
    assert "<svg" in written[0]
    assert written[0] == written[1]  # neither a date nor random ids


def test_save_figure_reports_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="no matplotlib")
    (tmp_path / "file").write_text("", "utf8")
    figure, _ = open_figure(1, 1)
    with pytest.raises(SapbertError, match="E004"):
        save_figure(figure, tmp_path / "file" / "picture.png")
