from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from confection import Config
from torch import Tensor

from spacy_sapbert.encoder.huggingface import load_encoder
from spacy_sapbert.encoder.pooling import POOLINGS
from training.data.dataset import PairDataset, build_dataset, token_mask
from training.losses.registry import load_registry
from training.trainer import embedding
from training.trainer.batches import Source, collate_batch
from training.trainer.distributed import SINGLE, Ranks
from training.trainer.embedding import NameEmbedder
from training.trainer.settings import TrainingSettings, make_settings
from training.trainer.step import TrainingState, make_state, train_step

MakeConfig = Callable[..., Config]


@pytest.fixture(scope="module")
def dataset(
    pairs_file: Path, tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory
) -> PairDataset:
    tokenizer, _ = load_encoder(str(tiny_encoder))
    folder = tmp_path_factory.mktemp("steps") / "dataset"
    return build_dataset(pairs_file, folder, tokenizer, max_length=25, lowercase=True)


def as_source(dataset: PairDataset) -> Source:
    return Source("pairs", Path("pairs.tsv"), dataset)


def gradient_of(model: torch.nn.Module) -> Tensor:
    gradients = [each.grad for each in model.parameters() if each.grad is not None]
    return torch.cat([each.flatten() for each in gradients])


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


def undivided_step(
    dataset: PairDataset, settings: TrainingSettings
) -> tuple[float, Tensor]:
    """The same with each name in a padded row of its own."""
    _, model = load_encoder(settings.encoder.base)
    numbers = np.arange(20)
    rows = dataset.pairs["names"][numbers].T.reshape(-1)
    names = dataset.names[rows]
    ids = torch.from_numpy(names["tokens"].astype(np.int64))
    mask = torch.from_numpy(token_mask(names["length"], ids.shape[1])).long()
    states = model(input_ids=ids, attention_mask=mask).last_hidden_state
    pooled = POOLINGS[settings.encoder.pooling](states, mask)
    vectors = torch.nn.functional.normalize(pooled, dim=1)
    labels = torch.from_numpy(np.tile(dataset.pairs["label"][numbers], 2))
    hashes = torch.from_numpy(dataset.names["hash"][rows])
    loss = settings.training.loss(
        vectors, *settings.training.miner(vectors.detach(), labels, hashes)
    )
    loss.backward()
    return loss.item(), gradient_of(model)


DEFAULT_LOSS = "spacy-sapbert.MultiSimilarityLoss.v1"
LOSSES: list[str] = sorted({*load_registry().losses.get_all()} - {DEFAULT_LOSS})


@pytest.mark.parametrize(
    ("chunks", "loss", "pooling"),
    [
        *((chunks, DEFAULT_LOSS, "mean") for chunks in (1, 3, 40)),
        *((chunks, DEFAULT_LOSS, "cls") for chunks in (1, 3)),
        *((3, name, "mean") for name in LOSSES),
    ],
)
def test_train_step_with_names_in_common_rows_equals_padded_names(
    chunks: int,
    loss: str,
    pooling: str,
    dataset: PairDataset,
    make_config: MakeConfig,
) -> None:
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
    dataset: PairDataset, make_config: MakeConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = make_settings(make_config({"training.chunks": 4}))
    loss, gradient, after = take_step(dataset, settings, dropout=True)

    def keep(function: Any, *arguments: Any, use_reentrant: bool) -> Any:
        return function(*arguments)

    monkeypatch.setattr(embedding, "checkpoint", keep)
    other_loss, other_gradient, other_after = take_step(dataset, settings, dropout=True)
    assert loss == other_loss
    assert torch.allclose(gradient, other_gradient, atol=1e-7)
    assert torch.equal(after, other_after)


def test_make_state_decays_all_weights_by_the_setting(make_config: MakeConfig) -> None:
    settings = make_settings(make_config({"training.optimizer.weight_decay": 0.5}))
    _, state = make_state(settings, SINGLE)
    before = [weight.detach().clone() for weight in state.model.parameters()]
    for weight in state.model.parameters():
        weight.grad = torch.zeros_like(weight)
    state.optimizer.step()
    # the learning rate is .001
    for weight, was in zip(state.model.parameters(), before, strict=True):
        torch.testing.assert_close(weight, was * (1 - 0.001 * 0.5))


def test_make_state_differs_between_ranks_in_dropout_only(
    make_config: MakeConfig,
) -> None:
    settings = make_settings(make_config({"encoder.adapter_reduction": 4}))
    weights, numbers = [], []
    for rank in (0, 1):
        _, state = make_state(settings, Ranks(rank, 2))
        weights.append(torch.cat([w.flatten() for w in state.model.parameters()]))
        numbers.append(torch.rand(5))
    assert torch.equal(*weights)
    assert not torch.equal(*numbers)


def test_train_step_reports_the_share_of_positives_that_were_mined(
    dataset: PairDataset, make_config: MakeConfig
) -> None:
    settings = make_settings(make_config())
    kept = []

    def miner(*arguments: Tensor) -> tuple[Tensor, Tensor]:
        labels, names = arguments[1:]
        same = labels[:, None] == labels[None, :]
        positives = same & ~torch.eye(len(labels), dtype=torch.bool)
        total = int(positives.sum())
        positives[positives.nonzero()[: total // 4].unbind(1)] = False
        kept.append((int(positives.sum()), total))
        return positives, ~same

    _, state = make_state(settings, SINGLE)
    batch = collate_batch(as_source(dataset), np.arange(20))
    section = settings.training.model_copy(update={"miner": miner})
    changed = settings.model_copy(update={"training": section})
    result = train_step(state, batch, changed)
    ((some, total),) = kept
    assert 0 < some < total
    assert result.mined == pytest.approx(some / total)


def test_train_step_with_nan_changes_no_weights(
    dataset: PairDataset, make_config: MakeConfig
) -> None:
    settings = make_settings(make_config())
    _, model = load_encoder(settings.encoder.base)
    with torch.no_grad():
        model.embeddings.LayerNorm.weight.fill_(float("nan"))
    before = {key: value.clone() for key, value in model.state_dict().items()}
    optimizer = torch.optim.AdamW(model.parameters())
    scaler = torch.amp.GradScaler("cpu", enabled=False)
    embedder = NameEmbedder(model, settings, SINGLE)
    state = TrainingState(model, embedder, optimizer, scaler)
    batch = collate_batch(as_source(dataset), np.arange(8))
    assert np.isnan(train_step(state, batch, settings).loss)
    for key, value in model.state_dict().items():
        assert torch.equal(value.nan_to_num(7), before[key].nan_to_num(7))
