"""Compare two processes on the CPU with one that has the whole batch."""

import json
import os
import shutil
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from threading import Event
from typing import Any

import pytest
import torch
from confection import Config
from safetensors.torch import load_file
from torch import distributed

from spacy_sapbert.encoder.huggingface import load_encoder
from spacy_sapbert.errors import SapbertError
from spacy_sapbert.vocabularies.concepts import Concept, write_concepts
from training.trainer import run as run_module
from training.trainer.distributed import SINGLE, Ranks, start_ranks, stop_ranks
from training.trainer.settings import DEFAULT_CONFIG, make_settings
from training.trainer.validation import read_validation, validate

ROOT = Path(__file__).parents[3]
MakeConfig = Callable[..., Config]
# One process imports torch, and forks for each rank of each run, one run after another.
RANKS = """
import json, os, sys
import torch
from training.__main__ import app as command
import training.trainer.run as run

class Plain(torch.optim.SGD):
    # plain gradient descent, so that the weights show the gradient itself
    def __init__(self, weights, lr, **other):
        super().__init__(weights, lr=lr)

def die(*given, **settings):
    write(*given, **settings)
    os._exit(9)

write = run.write_checkpoint

ended = []
for given in json.load(sys.stdin):
    ranks = []
    for rank in range(given["count"]):
        if not (child := os.fork()):
            os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank)}
            os.environ |= {"WORLD_SIZE": str(given["count"])}
            os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": given["port"]}
            torch.set_num_threads(1)
            if given["how"] == "one step":
                torch.optim.AdamW = Plain
            if given["how"] == "dies":
                run.write_checkpoint = die
            sys.argv = ["training", "train", *given["arguments"]]
            code = 1
            try:
                command()
            except SystemExit as error:
                code = error.code or 0
            finally:
                sys.stdout.flush()
                os._exit(code)
        ranks.append(child)
    codes = [os.waitstatus_to_exitcode(os.waitpid(each, 0)[1]) for each in ranks]
    ended.append(codes)
print(json.dumps(ended))
"""


def free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return int(server.getsockname()[1])


def start(new_process: Any, *runs: tuple[int, str, list[str]]) -> list[list[int]]:
    """Run the command in so many processes, as torchrun does; see `RANKS`."""
    given = [
        {"count": count, "how": how, "arguments": words, "port": str(free_port())}
        for count, how, words in runs
    ]
    done = new_process.python(RANKS, cwd=ROOT, input=json.dumps(given))
    assert done.returncode == 0, done.stderr
    ended: list[list[int]] = json.loads(done.stdout.splitlines()[-1])
    return ended


def fork_ranks(new_process: Any, work: Callable[[Ranks], Any]) -> list[int]:
    """Do some work in two processes that are forks of this one; return exit codes."""
    port, children = str(free_port()), []
    for rank in range(2):
        if not (child := new_process.fork()):
            os.environ |= {"RANK": str(rank), "WORLD_SIZE": "2", "MASTER_PORT": port}
            os.environ |= {"MASTER_ADDR": "127.0.0.1"}
            code = 1
            try:
                ranks = start_ranks("cpu")
                work(ranks)
                stop_ranks(ranks)
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        children.append(child)
    return [os.waitstatus_to_exitcode(os.waitpid(each, 0)[1]) for each in children]


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
        # of 72 pairs, so that the second batch has one: fewer than processes
        ({"training.batch_size": 71}, {"pairs"}),
        ({"training.chunks": 3, "training.batch_size": 71}, {"pairs"}),
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
    new_process: Any,
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
    arguments = [
        [str(pairs_file), str(folder), "--quiet", *as_arguments(settings)]
        for folder in folders
    ]
    ended = start(
        new_process, (1, "one step", arguments[0]), (2, "one step", arguments[1])
    )
    assert ended == [[0], [0, 0]]
    for folder in folders:
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
    pairs_file: Path, small_settings: dict[str, Any], tmp_path: Path, new_process: Any
) -> None:
    # a batch of NaN would stop it too; here the run is ended by the number of steps
    settings = {**small_settings, "training.checkpoint_every": 2}
    words = {
        name: [str(pairs_file), str(tmp_path / name), "--quiet"]
        + as_arguments(settings)
        for name in ("unbroken", "broken")
    }
    unbroken, broken, resumed = start(
        new_process,
        (2, "", words["unbroken"]),
        (2, "dies", words["broken"]),
        (2, "", words["broken"]),
    )
    assert unbroken == resumed == [0, 0]
    # Rank 0 tears the other out of its barrier.
    assert 9 in broken
    assert 0 not in broken
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


def test_start_ranks_lets_processes_wait_for_hours(new_process: Any) -> None:
    """The first one tokenises and validates meanwhile."""

    def check(ranks: Ranks) -> None:
        group = distributed.distributed_c10d._get_default_group()
        backend: Any = group._get_backend(torch.device("cpu"))
        assert backend.options._timeout >= timedelta(hours=6)

    assert fork_ranks(new_process, check) == [0, 0]


def test_validate_in_two_processes_equals_one_process(
    make_config: MakeConfig, tmp_path: Path, new_process: Any
) -> None:
    names = ["heart attack", "fever", "pain", "lung", "skin", "bone", "liver"]
    concepts = [Concept(name, [name, f"acute {name}"]) for name in names]
    write_concepts(tmp_path / "concepts.jsonl", concepts)
    lines = [f"{one} {two}||{one}\n" for one in names for two in names]
    (tmp_path / "mentions.txt").write_text("".join(lines), "utf8")
    more = {
        "validation.mentions": str(tmp_path / "mentions.txt"),
        "validation.concepts": str(tmp_path / "concepts.jsonl"),
    }
    settings = make_settings(make_config(more))
    validation = read_validation(settings)
    assert validation is not None

    def work(ranks: Ranks = SINGLE) -> float:
        tokenizer, model = load_encoder(settings.encoder.base)
        return validate(model, tokenizer, validation, settings, ranks)

    expected = work()
    assert 0 < expected < 1

    def check(ranks: Ranks) -> None:
        assert work(ranks) == expected

    assert fork_ranks(new_process, check) == [0, 0]


def test_train_in_two_processes_leaves_the_best_weights_to_the_first(
    pairs_file: Path,
    make_config: MakeConfig,
    run_training: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    new_process: Any,
) -> None:
    """It removes them with the checkpoint, maybe before the other has read them."""
    (tmp_path / "concepts.jsonl").write_text(
        '{"cui": "C1", "aliases": ["heart"]}\n', "utf8"
    )
    (tmp_path / "mentions.txt").write_text("heart||C1\n", "utf8")
    more = {
        "training.steps": 2,
        "validation.mentions": str(tmp_path / "mentions.txt"),
        "validation.concepts": str(tmp_path / "concepts.jsonl"),
    }
    config, read_best = make_config(more), run_module.read_best

    def read_late(folder: Path, model: Any) -> None:
        if os.environ["RANK"] == "1":
            while folder.exists():
                time.sleep(0.01)
        read_best(folder, model)

    monkeypatch.setattr(run_module, "read_best", read_late)
    codes = fork_ranks(
        new_process,
        lambda ranks: run_training(tmp_path, pairs_file, config, ranks=ranks),
    )
    assert codes == [0, 0]


def test_train_under_torchrun_saves_on_sigterm(
    pairs_file: Path, small_settings: dict[str, Any], tmp_path: Path, new_process: Any
) -> None:
    """As Slurm and Kubernetes stop a job; some send the signal to every process."""
    settings = {**small_settings, "training.epochs": 10_000}
    encoder = tmp_path / "encoder"
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    command += ["--master-port", str(free_port()), "-m", "training", "train"]
    command += [str(pairs_file), str(encoder), *as_arguments(settings)]
    run = new_process.start(
        command, cwd=ROOT, stdout=new_process.PIPE, stderr=new_process.STDOUT, text=True
    )
    log = tmp_path / "encoder-checkpoint.log.jsonl"
    while run.poll() is None and not (log.is_file() and log.stat().st_size):
        time.sleep(0.01)
    ranks = Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text("utf8").split()
    for process in (*map(int, ranks), run.pid):
        os.kill(process, signal.SIGTERM)
    printed, _ = run.communicate(timeout=300)
    assert run.returncode != 0
    state = tmp_path / "encoder-checkpoint" / "state.json"
    assert state.is_file(), printed
    steps = json.loads(state.read_text("utf8"))["progress"]["step"]
    assert steps == len(log.read_text("utf8").splitlines())
    assert len(ranks) == 2
