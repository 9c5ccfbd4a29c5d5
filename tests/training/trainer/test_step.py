"""A step: its batches, names in common rows, too little memory, its gradient."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from confection import Config
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from transformers import AutoConfig, AutoModel

from spacy_sapbert.encoder.huggingface import load_encoder
from spacy_sapbert.encoder.pooling import POOLINGS
from spacy_sapbert.errors import SapbertError
from training.data.dataset import DatasetMeta, MadeOf, PairDataset, build_dataset
from training.losses.functions import registry
from training.trainer import embedding
from training.trainer.batches import (
    Lines,
    Source,
    arrange_names,
    collate_batch,
    count_steps,
    plan_batches,
)
from training.trainer.distributed import SINGLE, Ranks, start_ranks
from training.trainer.embedding import NameEmbedder, find_layout
from training.trainer.settings import TrainingSettings, make_settings
from training.trainer.step import TrainingState, make_state, train_step

MakeConfig = Callable[..., Config]
FILES = [Lines(10, 1), Lines(31, 3), Lines(7, 1)]


def make(make_config: MakeConfig, **more: Any) -> TrainingSettings:
    values = {f"training.{key}": value for key, value in more.items()}
    return make_settings(make_config({"training.batch_size": 4, **values}))


def test_plan_batches_has_each_line_once_an_epoch_and_groups_together(make_config):
    settings = make(make_config, epochs=2)
    everything = list(plan_batches(FILES, settings, done=0))
    assert [step for step, _, _ in everything] == list(range(len(everything)))
    assert count_steps(FILES, settings) == len(everything)
    more = make(make_config, epochs=2, steps=len(everything) + 1)
    assert count_steps(FILES, more) == len(everything)
    half = len(everything) // 2
    first, second = (
        [lines.tolist() for _, _, lines in epoch]
        for epoch in (everything[:half], everything[half:])
    )
    assert first != second
    for epoch in (everything[:half], everything[half:]):
        for file, lines in enumerate(FILES):
            batches = [batch.tolist() for _, each, batch in epoch if each == file]
            numbers = [number for batch in batches for number in batch]
            # lines that are no whole group are never trained on
            assert sorted(numbers) == list(range(lines.groups * lines.group))
            assert all(0 < len(batch) <= 4 for batch in batches)
            for batch in batches:
                firsts = batch[:: lines.group]
                assert batch == [
                    first + k for first in firsts for k in range(lines.group)
                ]
                assert all(first % lines.group == 0 for first in firsts)


def test_plan_batches_resumes_after_the_steps_done(make_config):
    def plain(batches: Any) -> list[Any]:
        return [(step, file, batch.tolist()) for step, file, batch in batches]

    settings = make(make_config, epochs=2)
    everything = plain(plan_batches(FILES, settings, done=0))
    for done in range(len(everything) + 1):
        rest = plain(plan_batches(FILES, settings, done=done))
        assert rest == everything[done:]
    few = make(make_config, steps=2)
    assert plain(plan_batches(FILES, few, done=0)) == everything[:2]


PAD = 7


def make_dataset(lengths: list[int], longest: int = 25) -> PairDataset:
    """Names of these lengths, each with other tokens than the others."""
    dtype = [("hash", "<i8"), ("length", "<u2"), ("tokens", "<u2", longest)]
    names = np.zeros(len(lengths), np.dtype(dtype))
    names["tokens"] = PAD
    for number, length in enumerate(lengths):
        names["length"][number] = length
        names["tokens"][number, :length] = 100 * (number + 1) + np.arange(length)
    made_of = MadeOf(
        pairs_sha256="", tokenizer_sha256="", pad=PAD, max_length=25, lowercase=True
    )
    meta = DatasetMeta(made_of=made_of, pairs=0, names=len(lengths), concepts=0)
    return PairDataset(np.zeros(0), names, meta)


@given(
    lengths=st.lists(st.integers(2, 25), min_size=1, max_size=60),
    several=st.booleans(),
    multiple=st.sampled_from([1, 8]),
)
@settings(max_examples=60, deadline=None)
def test_arrange_names_keeps_each_name_whole_and_in_order(lengths, several, multiple):
    dataset = make_dataset(lengths)
    numbers = np.arange(len(lengths))
    rows = arrange_names(dataset, numbers, several=several, multiple=multiple)
    tokens, positions, names = rows.tokens.flatten(1)
    length = rows.tokens.shape[2]
    assert rows.tokens.shape[1] % multiple == 0
    assert rows.lengths.tolist() == lengths
    for number, own in enumerate(lengths):
        places = rows.places[number]
        assert len({*(places[:own] // length).tolist()}) == 1  # one row
        expected = dataset.names["tokens"][number, :own].tolist()
        assert tokens[places[:own]].tolist() == expected
        assert positions[places[:own]].tolist() == [*range(own)]
        assert set(names[places[:own]].tolist()) == {number + 1}
        assert set(places[own:].tolist()) <= {int(places[0])}
    assert int((names > 0).sum()) == sum(lengths)
    assert set(tokens[names == 0].tolist()) <= {PAD}
    row_of = (rows.places[:, 0] // length).tolist()
    assert row_of == sorted(row_of)
    for row, (begin, end) in enumerate(zip(rows.first, rows.first[1:], strict=False)):
        assert row_of[begin:end] == [row] * (end - begin)
    if not several:
        assert row_of == [*range(len(lengths))]


@pytest.mark.parametrize(
    ("lengths", "longest", "first", "length"),
    [
        ([10, 20, 30, 5], 25, [0, 3, 4], 64),
        ([32, 32, 1, 64], 25, [0, 2, 3, 4], 64),
        ([60, 12, 1], 66, [0, 2, 3], 72),
    ],
)
def test_arrange_names_fills_rows(lengths, longest, first, length):
    dataset = make_dataset(lengths, longest=max(longest, *lengths))
    rows = arrange_names(dataset, np.arange(len(lengths)), several=True, multiple=1)
    assert rows.first.tolist() == first
    assert rows.tokens.shape == (3, len(first) - 1, length)


def make_model(kind: str, **more: Any) -> Any:
    torch.manual_seed(0)
    sizes = {"vocab_size": 300, "hidden_size": 32, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 2, "intermediate_size": 64}
    model = AutoModel.from_config(AutoConfig.for_model(kind, **sizes, **heads, **more))
    with torch.no_grad():
        for weights in model.parameters():
            if weights.dim() > 1:
                weights.normal_(std=0.3)  # so that a wrong position or mask shows
    return model.eval()


@pytest.mark.parametrize(
    ("kind", "more"),
    [("bert", {}), ("roberta", {"pad_token_id": 1})],
)
def test_encoders_with_positions_take_several_names_in_a_row(kind, more):
    layout = find_layout(make_model(kind, **more))
    assert layout is not None
    assert layout.first_position == more.get("pad_token_id", -1) + 1


def test_an_encoder_without_positions_of_tokens_gets_a_row_for_each_name(make_config):
    model = make_model("deberta-v2").train()
    assert find_layout(model) is None
    assert model.training
    lengths, names = [5, 3], make_dataset([5, 3])
    rows = arrange_names(names, np.arange(2), several=False, multiple=1)
    embedder = NameEmbedder(model.eval(), make(make_config), SINGLE)
    for number, vector in enumerate(embedder.embed(rows)):
        ids = names.names["tokens"][number, : lengths[number]].astype(np.int64)
        states = model(input_ids=torch.from_numpy(ids)[None]).last_hidden_state
        expected = torch.nn.functional.normalize(states.mean(1), dim=1)[0]
        torch.testing.assert_close(vector, expected, atol=1e-5, rtol=0)


@pytest.fixture(scope="module")
def dataset(pairs_file, tiny_encoder, tmp_path_factory) -> PairDataset:
    tokenizer, _ = load_encoder(str(tiny_encoder))
    folder = tmp_path_factory.mktemp("steps") / "dataset"
    return build_dataset(pairs_file, folder, tokenizer, max_length=25, lowercase=True)


def as_source(dataset: PairDataset) -> Source:
    return Source("pairs", Path("pairs.tsv"), dataset)


class Keep(torch.optim.SGD):
    """Changes no weights and keeps the gradient of its step."""

    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        weights = self.param_groups[0]["params"]
        self.kept = torch.cat([w.grad.flatten() for w in weights if w.grad is not None])


def take_step(
    dataset: PairDataset, settings: TrainingSettings, *, dropout: bool
) -> tuple[float, Tensor, Tensor]:
    """Return loss and gradient, and the next numbers of the random generator."""
    _, model = load_encoder(settings.encoder.base)
    model.train(dropout)
    torch.manual_seed(5)
    optimizer = Keep(model.parameters(), lr=1.0)
    scaler = torch.amp.GradScaler("cpu", enabled=False)
    state = TrainingState(
        model, NameEmbedder(model, settings, SINGLE), optimizer, scaler
    )
    batch = collate_batch(as_source(dataset), np.arange(20))
    result = train_step(state, batch, settings)
    return result.loss, optimizer.kept, torch.rand(3)


def test_a_process_without_pairs_embeds_one_name_that_does_not_count(dataset):
    source, lines = as_source(dataset), np.arange(1)
    some, none = (collate_batch(source, lines, ranks=Ranks(n, 2)) for n in (0, 1))
    assert some.sizes == none.sizes == [2, 0]
    assert none.rows.lengths.tolist() == some.rows.lengths[:1].tolist()


class SmallGpu(NameEmbedder):
    """Has memory for batches in at least `least` parts."""

    least = 4

    def embed(self, rows: Any) -> torch.Tensor:
        if self.chunks < self.least:
            raise torch.cuda.OutOfMemoryError
        return super().embed(rows)


def undivided_step(
    dataset: PairDataset, settings: TrainingSettings
) -> tuple[float, Tensor]:
    """The same with each name in a padded row of its own."""
    _, model = load_encoder(settings.encoder.base)
    numbers = np.arange(20)
    rows = dataset.pairs["names"][numbers].T.reshape(-1)
    names = dataset.names[rows]
    ids = torch.from_numpy(names["tokens"].astype(np.int64))
    is_token = np.arange(ids.shape[1]) < names["length"][:, None]
    mask = torch.from_numpy(is_token).long()
    states = model(input_ids=ids, attention_mask=mask).last_hidden_state
    pooled = POOLINGS[settings.encoder.pooling](states, mask)
    vectors = torch.nn.functional.normalize(pooled, dim=1)
    labels = torch.from_numpy(np.tile(dataset.pairs["label"][numbers], 2))
    hashes = torch.from_numpy(dataset.names["hash"][rows])
    loss = settings.training.loss(
        vectors, *settings.training.miner(vectors.detach(), labels, hashes)
    )
    loss.backward()
    gradients = [each.grad for each in model.parameters() if each.grad is not None]
    return loss.item(), torch.cat([each.flatten() for each in gradients])


DEFAULT_LOSS = "spacy-sapbert.MultiSimilarityLoss.v1"
LOSSES: list[str] = sorted({*registry.losses.get_all()} - {DEFAULT_LOSS})


@pytest.mark.parametrize(
    ("chunks", "loss", "pooling"),
    [
        *((chunks, DEFAULT_LOSS, "mean") for chunks in (1, 3, 40)),
        (3, DEFAULT_LOSS, "cls"),
        *((3, name, "mean") for name in LOSSES),
    ],
)
def test_train_step_with_names_in_common_rows_equals_padded_names(
    chunks, loss, pooling, dataset, make_config
):
    more = {"training.chunks": chunks, "encoder.pooling": pooling}
    settings = make_settings(make_config({**more, "training.loss.@losses": loss}))
    value, gradient, _ = take_step(dataset, settings, dropout=False)
    expected_value, expected = undivided_step(dataset, settings)
    # the circle loss has a scale of 256
    tolerance = 1e-6 if loss == DEFAULT_LOSS else 1e-5
    assert value == pytest.approx(expected_value, abs=1e-6, rel=1e-5)
    assert expected.norm() > (1e-4 if pooling == "cls" else 0.01)
    relative = 0 if loss == DEFAULT_LOSS else 1e-3
    assert torch.allclose(gradient, expected, atol=tolerance, rtol=relative)


def test_train_step_computes_activations_again_with_the_same_dropout(
    dataset, make_config, monkeypatch
):
    settings = make_settings(make_config({"training.chunks": 4}))
    loss, gradient, after = take_step(dataset, settings, dropout=True)

    def keep(function: Any, *arguments: Any, use_reentrant: bool) -> Any:
        return function(*arguments)

    monkeypatch.setattr(embedding, "checkpoint", keep)
    other_loss, other_gradient, other_after = take_step(dataset, settings, dropout=True)
    assert loss == other_loss
    assert torch.allclose(gradient, other_gradient, atol=1e-7)
    assert torch.equal(after, other_after)


def test_make_state_decays_all_weights_by_the_setting(make_config):
    settings = make_settings(make_config({"training.optimizer.weight_decay": 0.5}))
    _, state = make_state(settings, SINGLE)
    before = [weight.detach().clone() for weight in state.model.parameters()]
    for weight in state.model.parameters():
        weight.grad = torch.zeros_like(weight)
    state.optimizer.step()
    # the learning rate is .001
    for weight, was in zip(state.model.parameters(), before, strict=True):
        torch.testing.assert_close(weight, was * (1 - 0.001 * 0.5))


def test_make_state_differs_between_ranks_in_dropout_only(make_config):
    settings = make_settings(make_config({"encoder.adapter_reduction": 4}))
    weights, numbers = [], []
    for rank in (0, 1):
        _, state = make_state(settings, Ranks(rank, 2))
        weights.append(torch.cat([w.flatten() for w in state.model.parameters()]))
        numbers.append(torch.rand(5))
    assert torch.equal(*weights)
    assert not torch.equal(*numbers)


def step_on_small_gpu(
    dataset: PairDataset, settings: TrainingSettings, least: int
) -> int:
    """Take a step, and return in how many parts it went."""
    _, model = load_encoder(settings.encoder.base)
    embedder = SmallGpu(model.train(), settings, SINGLE)
    embedder.least = least
    scaler = torch.amp.GradScaler("cpu", enabled=False)
    state = TrainingState(model, embedder, Keep(model.parameters(), lr=1.0), scaler)
    batch = collate_batch(as_source(dataset), np.arange(20))
    assert np.isfinite(train_step(state, batch, settings).loss)
    return embedder.chunks


def test_a_step_without_memory_is_repeated_in_smaller_parts(
    dataset, make_config, capsys
):
    assert step_on_small_gpu(dataset, make(make_config), 4) == 4
    lines = capsys.readouterr().err.strip().splitlines()
    assert [line.split(" in ")[-1].split(",")[0] for line in lines] == [
        "2 parts",
        "4 parts",
    ]
    with pytest.raises(SapbertError, match=r"E004.*--training.batch_size"):
        step_on_small_gpu(dataset, make(make_config), 1000)
    with pytest.raises(SapbertError, match=r"E004.*--training.chunks 4"):
        step_on_small_gpu(dataset, make(make_config, chunks=2), 4)


@pytest.mark.parametrize(
    ("device", "chosen"), [("cpu", []), ("cuda", []), ("cuda:0", [0]), ("cuda:3", [3])]
)
def test_start_ranks_takes_a_numbered_gpu_for_a_gpu(monkeypatch, device, chosen):
    """The number is chosen once; all that asks for a GPU sees one."""
    numbers: list[int] = []
    monkeypatch.setattr(torch.cuda, "set_device", numbers.append)  # no GPU is needed
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    ranks = start_ranks(device)
    assert (numbers, ranks.is_gpu) == (chosen, device != "cpu")
    assert ranks.device == device.partition(":")[0]
