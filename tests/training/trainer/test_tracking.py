import sys
from pathlib import Path

import pytest

from spacy_sapbert.errors import SapbertError
from training.trainer.tracking import open_tracker


def test_open_tracker_without_a_name_writes_nothing(tmp_path: Path) -> None:
    with open_tracker(None, tmp_path / "tracking", {}, step=0) as track:
        track({"step": 1, "loss": 0.5})
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["tensorboard", "wandb"])
def test_open_tracker_that_is_not_installed_is_an_error(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("wandb", "torch.utils.tensorboard", "tensorboard"):
        monkeypatch.setitem(sys.modules, module, None)
    with (
        pytest.raises(SapbertError, match=f"pip install {name}"),
        open_tracker(name, tmp_path, {}, step=0),
    ):
        pass


def test_open_tracker_for_tensorboard_writes_every_number(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="tensorboard is not installed")
    folder = tmp_path / "tracking"
    with open_tracker("tensorboard", folder, {"seed": 0}, step=0) as track:
        track({"step": 1, "source": "pairs", "loss": 0.5, "mined": 0.25})
    events = list((tmp_path / "tracking").glob("events.*"))
    assert len(events) == 1
    assert b"mined" in events[0].read_bytes()
