import sys
from pathlib import Path

import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.evaluation.canvas import (
    check_figure,
    close_figure,
    open_canvas,
    save_figure,
    write_figure,
)


def test_an_ending_that_is_no_picture_is_refused() -> None:
    with pytest.raises(SapbertError, match=r"E580.*\.png or \.svg.*picture\.pdf"):
        check_figure(Path("picture.pdf"))


def test_without_matplotlib_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(SapbertError, match=r"E752.*spacy-sapbert\[figures\]"):
        check_figure(Path("picture.png"))


def test_figures_are_written_as_their_endings_say(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="no matplotlib")
    written = []
    for name in ("one", "two"):
        figure, axes = open_canvas(1, 2)
        axes[0][1].plot([0, 1], [1, 0])
        paths = write_figure(figure, tmp_path / "new" / name)
        assert [path.name for path in paths] == [f"{name}.png", f"{name}.svg"]
        assert paths[0].read_bytes().startswith(b"\x89PNG")
        written.append(paths[1].read_text("utf8"))
    assert "<svg" in written[0]
    assert written[0] == written[1]  # neither a date nor ids of chance


def test_a_figure_that_cannot_be_written_is_a_named_error(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="no matplotlib")
    (tmp_path / "file").write_text("", "utf8")
    figure, _ = open_canvas(1, 1)
    with pytest.raises(SapbertError, match="E004"):
        save_figure(figure, tmp_path / "file" / "picture.png")
    close_figure(figure)
