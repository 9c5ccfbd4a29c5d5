"""Training in processes: killed, interrupted, and two that share a batch."""

import json
import os
import random
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from spacy_sapbert.encoder.huggingface import load_encoder
from spacy_sapbert.errors import SapbertError
from spacy_sapbert.vocabularies.concepts import Concept, write_concepts
from training.trainer import run as run_module
from training.trainer.distributed import (
    SINGLE,
    Ranks,
    any_rank,
    broadcast_value,
    gather_states,
    start_ranks,
    stop_ranks,
)
from training.trainer.settings import DEFAULT_CONFIG, make_settings, read_config
from training.trainer.validation import read_validation, validate

ROOT = Path(__file__).parents[3]
# SIGTERM at each line of what receives SIGTERM
OFTEN = """
import signal, sys
from training.trainer.command import receive_signals

def repeat(frame, *_):
    place = frame.f_code, frame.f_lineno
    if place not in seen:
        seen.add(place)
        signal.raise_signal(signal.SIGTERM)
    return repeat

seen, received = set(), receive_signals()
sys.settrace(repeat)
signal.raise_signal(signal.SIGTERM)
sys.settrace(None)
print(len(seen) > 1, len(received) > len(seen))
"""
LIMIT = 300  # seconds; only a run that hangs takes as long


def make_command(pairs: Path, encoder: Path, settings: dict[str, Any]) -> list[str]:
    command = [sys.executable, "-m", "training", "train", str(pairs), str(encoder)]
    for key, value in settings.items():
        command += [f"--{key}", str(value)]
    # so that a run that was quicker than its kill is repeated
    return [*command, "--force"]


def weights_of(encoder: Path) -> dict[str, torch.Tensor]:
    return load_file(encoder / "model.safetensors")


def equal_weights(one: Path, other: Path) -> bool:
    weights, others = weights_of(one), weights_of(other)
    return all(torch.equal(each, others[key]) for key, each in weights.items())


def wait_for(condition: Callable[[], Any]) -> None:
    deadline = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def count_steps(encoder: Path) -> int:
    """Return how many steps a run has logged."""
    log = encoder.with_name(f"{encoder.name}-checkpoint.log.jsonl")
    return len(log.read_bytes().splitlines()) if log.is_file() else 0


def test_train_killed_and_interrupted_equals_an_unbroken_run(
    pairs_file, small_settings, run_training, tmp_path_factory, tmp_path, new_process
):
    settings = {
        **small_settings,
        "training.epochs": 40,
        "training.checkpoint_seconds": 0,
        "training.schedule.@schedules": "spacy-sapbert.Linear.v1",
    }
    unbroken, encoder = tmp_path_factory.mktemp("unbroken"), tmp_path / "encoder"
    run_training(unbroken, pairs_file, read_config(None, settings))
    command = make_command(pairs_file, encoder, settings)
    state = tmp_path / "encoder-checkpoint" / "state.json"
    run = new_process.start(command, cwd=ROOT)
    wait_for(lambda: run.poll() is not None or state.is_file())
    time.sleep(random.random() * 0.3)
    new_process.kill(run)
    steps = count_steps(encoder)
    run = new_process.start(command, cwd=ROOT, stderr=new_process.PIPE, text=True)
    wait_for(lambda: run.poll() is not None or count_steps(encoder) > steps)
    run.send_signal(signal.SIGTERM)
    _, printed = run.communicate(timeout=LIMIT)
    assert run.returncode == 128 + signal.SIGTERM, printed
    assert "Repeat the same command" in printed
    assert state.is_file()
    done = new_process.run(command, cwd=ROOT, check=True, timeout=LIMIT)
    assert "Wrote" in done.stdout
    assert equal_weights(encoder, unbroken / "encoder")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["encoder"]


def free_port() -> str:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return str(server.getsockname()[1])


def fork_ranks(new_process: Any, work: Callable[[Ranks], Any]) -> list[int]:
    """Do some work in two processes that are forks of this one; return exit codes."""
    port, children = free_port(), []
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


class Plain(torch.optim.SGD):
    """Plain gradient descent, so that the weights show the gradient itself."""

    def __init__(self, weights: Any, lr: float, **_: Any) -> None:
        super().__init__(weights, lr=lr)


@pytest.mark.parametrize(
    ("more", "trained"),
    [
        # of 72 pairs, so that the second batch has one: fewer than processes
        ({"training.chunks": 3, "training.batch_size": 71}, {"pairs"}),
        (
            {"training.steps": 4, "training.optimizer.learning_rate": 0.1},
            {"pairs", "families"},
        ),
    ],
)
def test_train_in_two_processes_equals_one_process(
    more,
    trained,
    quiet_encoder,
    pairs_file,
    forest,
    small_settings,
    run_training,
    tmp_path,
    monkeypatch,
    new_process,
):
    is_tree = "families" in trained
    settings = {
        **small_settings,
        **(forest if is_tree else {}),
        "encoder.base": str(quiet_encoder),
        "training.batch_size": 15,  # not equal shares; a family is divided
        "training.steps": 2,
        "training.optimizer.learning_rate": 1.0,
        **more,
    }
    base = DEFAULT_CONFIG.with_name("hierarchy.cfg") if is_tree else None
    config = read_config(base, settings)
    monkeypatch.setattr(torch.optim, "AdamW", Plain)

    def work(ranks: Ranks = SINGLE) -> None:
        name = "one" if ranks is SINGLE else "two"
        run_training(tmp_path / name, pairs_file, config, ranks=ranks)

    work()
    assert fork_ranks(new_process, work) == [0, 0]
    folders = [tmp_path / name / "encoder" for name in ("one", "two")]
    for folder in folders:
        lines = (folder / "training.jsonl").read_text("utf8").splitlines()
        assert trained <= {json.loads(line)["source"] for line in lines}
    one, two, start = map(weights_of, (*folders, quiet_encoder))
    moved = max(float((one[key] - start[key]).abs().max()) for key in start)
    assert moved > 1e-3
    for key, weights in one.items():
        assert torch.allclose(weights, two[key], atol=1e-6), key


def test_train_in_two_processes_resumed_equals_an_unbroken_run(
    pairs_file, make_config, run_training, tmp_path, monkeypatch, new_process
):
    config = make_config({"training.checkpoint_seconds": 0})

    def run(name: str) -> list[int]:
        return fork_ranks(
            new_process,
            lambda ranks: run_training(
                tmp_path / name, pairs_file, config, ranks=ranks
            ),
        )

    assert run("unbroken") == [0, 0]
    write = run_module.write_checkpoint

    def die(*given: Any, **settings: Any) -> None:
        write(*given, **settings)
        os._exit(9)

    with monkeypatch.context() as patch:
        patch.setattr(run_module, "write_checkpoint", die)
        broken = run("broken")
    # Rank 0 tears the other out of its barrier.
    assert 9 in broken
    assert 0 not in broken
    assert run("broken") == [0, 0]
    encoders = [tmp_path / name / "encoder" for name in ("unbroken", "broken")]
    assert equal_weights(*encoders)


def test_train_resumed_with_other_processes_is_an_error(
    pairs_file, make_config, run_training, tmp_path
):
    run_training(tmp_path, pairs_file, make_config(), is_stopped=lambda: True)
    state = tmp_path / "encoder-checkpoint" / "state.json"
    text = state.read_text("utf8")
    state.write_text(text.replace('"processes": 1', '"processes": 2'), "utf8")
    with pytest.raises(SapbertError, match="another processes"):
        run_training(tmp_path, pairs_file, make_config())


def test_validate_in_two_processes_equals_one_process(
    make_config, tmp_path, new_process
):
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
        assert any_rank([ranks.is_first, False], ranks) == [True, False]
        assert broadcast_value(ranks.rank, ranks) == 0
        states = gather_states(torch.tensor([ranks.rank]), ranks)
        assert [int(state) for state in states] == [0, 1]

    assert fork_ranks(new_process, check) == [0, 0]


def test_signals_are_received_while_another_one_is(new_process):
    done = new_process.python(OFTEN, cwd=ROOT, timeout=60)
    assert done.stdout == "True True\n", done.stderr


def test_train_under_torchrun_saves_on_sigterm(
    pairs_file, small_settings, tmp_path, new_process
):
    """As Slurm and Kubernetes stop a job; some send the signal to every process."""
    settings = {**small_settings, "training.epochs": 10_000}
    encoder = tmp_path / "encoder"
    words = make_command(pairs_file, encoder, settings)[1:]
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    run = new_process.start(
        [*command, "--master-port", free_port(), *words],
        cwd=ROOT,
        stdout=new_process.PIPE,
        stderr=new_process.STDOUT,
        text=True,
    )
    wait_for(lambda: run.poll() is not None or count_steps(encoder))
    ranks = Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text("utf8").split()
    for process in (*map(int, ranks), run.pid):
        os.kill(process, signal.SIGTERM)
    printed, _ = run.communicate(timeout=LIMIT)
    assert run.returncode != 0
    state = tmp_path / "encoder-checkpoint" / "state.json"
    assert state.is_file(), printed
    steps = json.loads(state.read_text("utf8"))["progress"]["step"]
    log = tmp_path / "encoder-checkpoint.log.jsonl"
    assert steps == len(log.read_text("utf8").splitlines())
    assert len(ranks) == 2
