"""Compare two processes on the CPU with one that has the whole batch."""

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any

import pytest
import torch
from confection import Config
from safetensors.torch import load_file

from spacy_sapbert.errors import SapbertError
from training.trainer.settings import DEFAULT_CONFIG

ROOT = Path(__file__).parents[3]
MakeConfig = Callable[..., Config]
# one step of plain gradient descent, so that the weights show the gradient itself
ONE_STEP = """
import sys, torch
from pathlib import Path
class Plain(torch.optim.SGD):
    def __init__(self, weights, lr, **other):
        super().__init__(weights, lr=lr)
torch.optim.AdamW = Plain
torch.set_num_threads(1)
from training.__main__ import app as command
command(["train", *sys.argv[1:]])
"""


def free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return int(server.getsockname()[1])


def start(count: int, arguments: list[str], code: str = ONE_STEP) -> list[int]:
    """Run the command in so many processes, as torchrun does."""
    port = str(free_port())
    processes = []
    for rank in range(count):
        env = {
            **os.environ,
            "RANK": str(rank),
            "LOCAL_RANK": str(rank),
            "WORLD_SIZE": str(count),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": port,
        }
        command = [sys.executable, "-c", code, *arguments]
        processes.append(subprocess.Popen(command, cwd=ROOT, env=env))
    return [process.wait(timeout=180) for process in processes]


def as_arguments(settings: dict[str, Any]) -> list[str]:
    return [
        part for key, value in settings.items() for part in (f"--{key}", str(value))
    ]


@pytest.fixture(scope="module")
def quiet_encoder(tiny_encoder: Path, tmp_path_factory: Any) -> Path:
    """The tiny encoder without dropout, which differs between processes."""
    folder = Path(shutil.copytree(tiny_encoder, tmp_path_factory.mktemp("q") / "e"))
    config = json.loads((folder / "config.json").read_text("utf8"))
    config["hidden_dropout_prob"] = config["attention_probs_dropout_prob"] = 0.0
    (folder / "config.json").write_text(json.dumps(config), "utf8")
    return folder


HIERARCHY = {
    "config": DEFAULT_CONFIG.with_name("hierarchy.cfg"),
    "training.steps": 4,
    "training.optimizer.learning_rate": 0.1,
}


@pytest.mark.parametrize(
    ("more", "trained"),
    [
        ({"training.recompute": "false"}, {"pairs"}),
        ({"training.recompute": "true"}, {"pairs"}),
        (HIERARCHY, {"pairs", "families"}),
    ],
)
def test_train_in_two_processes_equals_one_process(
    more: dict[str, Any],
    trained: set[str],
    quiet_encoder: Path,
    pairs_file: Path,
    forest: dict[str, str],
    small_settings: dict[str, Any],
    tmp_path: Path,
) -> None:
    settings = {
        **small_settings,
        **(forest if "families" in trained else {}),
        "encoder.base": quiet_encoder,
        "training.batch_size": 15,  # not equal shares; a family is divided
        "training.steps": 2,
        "training.optimizer.learning_rate": 1.0,
        **more,
    }
    folders = [tmp_path / f"encoder-{count}" for count in (1, 2)]
    for count, folder in enumerate(folders, start=1):
        arguments = [str(pairs_file), str(folder), "--quiet"]
        assert start(count, arguments + as_arguments(settings)) == [0] * count
        lines = (folder / "training.jsonl").read_text("utf8").splitlines()
        assert trained <= {json.loads(line)["source"] for line in lines}
    one, two, base = (
        load_file(folder / "model.safetensors") for folder in (*folders, quiet_encoder)
    )
    moved = max(float((one[key] - base[key]).abs().max()) for key in base)
    assert moved > 1e-3
    for key, weights in one.items():
        assert torch.allclose(weights, two[key], atol=1e-6), key


def test_train_in_two_processes_resumed_equals_an_unbroken_run(
    pairs_file: Path, small_settings: dict[str, Any], tmp_path: Path
) -> None:
    # a batch of NaN would stop it too; here the run is ended by the number of steps
    settings = {**small_settings, "training.checkpoint_every": 2}
    plain = ONE_STEP.replace("torch.optim.AdamW = Plain", "")
    dies = plain.replace(
        "command([",
        "import os, training.trainer.run as run\n"
        "save = run.save_run\n"
        "run.save_run = lambda r: (save(r), os._exit(9))\n"
        "command([",
    )
    for name, codes in (("unbroken", [plain]), ("broken", [dies, plain])):
        arguments = [str(pairs_file), str(tmp_path / name), "--quiet"]
        for code in codes:
            ended = start(2, arguments + as_arguments(settings), code)
            if code is dies:
                # The one that is first may tear the other out of its last barrier.
                assert 9 in ended
                assert 0 not in ended
            else:
                assert ended == [0, 0]
    one, two = (
        load_file(tmp_path / name / "model.safetensors")
        for name in ("unbroken", "broken")
    )
    assert all(torch.equal(weights, two[key]) for key, weights in one.items())


def test_train_resumed_with_other_processes_is_an_error(
    pairs_file: Path, make_config: MakeConfig, run_training: Any, tmp_path: Path
) -> None:
    stop = Event()
    stop.set()
    run_training(tmp_path, pairs_file, make_config(), stop=stop)
    state = tmp_path / "checkpoint" / "state.json"
    text = state.read_text("utf8")
    state.write_text(text.replace('"processes": 1', '"processes": 2'), "utf8")
    with pytest.raises(SapbertError, match="another processes"):
        run_training(tmp_path, pairs_file, make_config())
