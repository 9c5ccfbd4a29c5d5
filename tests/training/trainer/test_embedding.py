"""Names in common rows: their layout, what encoders take it, and too little memory."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from confection import Config
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoConfig, AutoModel

from spacy_sapbert.encoder.huggingface import load_encoder
from spacy_sapbert.errors import SapbertError
from training.data.dataset import DatasetMeta, MadeOf, PairDataset
from training.trainer.batches import Source, arrange_names, collate_batch
from training.trainer.distributed import SINGLE, Ranks
from training.trainer.embedding import NameEmbedder, find_layout
from training.trainer.settings import make_settings
from training.trainer.step import TrainingState, train_step

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
def test_arrange_names_keeps_each_name_whole_and_in_order(
    lengths: list[int], several: bool, multiple: int
) -> None:
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


def test_arrange_names_leaves_little_padding() -> None:
    lengths = np.random.default_rng(0).integers(4, 14, 512).tolist()
    rows = arrange_names(make_dataset(lengths), np.arange(512), several=True)
    assert sum(lengths) > 0.9 * rows.tokens[0].numel()


def make_model(kind: str, **more: Any) -> Any:
    torch.manual_seed(0)
    sizes = {"vocab_size": 200, "hidden_size": 32, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 2, "intermediate_size": 64}
    model = AutoModel.from_config(AutoConfig.for_model(kind, **sizes, **heads, **more))
    with torch.no_grad():
        for weights in model.parameters():
            if weights.dim() > 1:
                weights.normal_(std=0.3)  # so that a wrong position or mask shows
    return model.eval()


@pytest.mark.parametrize(
    ("kind", "more"),
    [("bert", {}), ("roberta", {"pad_token_id": 1}), ("electra", {})],
)
def test_encoders_with_positions_take_several_names_in_a_row(
    kind: str, more: dict[str, Any]
) -> None:
    layout = find_layout(make_model(kind, **more))
    assert layout is not None
    assert layout.first_position == more.get("pad_token_id", -1) + 1


def test_an_encoder_without_positions_of_tokens_gets_a_row_for_each_name() -> None:
    model = make_model("deberta-v2").train()
    assert find_layout(model) is None
    assert model.training


class SmallGpu(NameEmbedder):
    """Has memory for batches in at least `least` parts."""

    least = 4

    def embed(self, rows: Any) -> torch.Tensor:
        if self.chunks < self.least:
            raise torch.cuda.OutOfMemoryError
        return super().embed(rows)


@pytest.fixture
def make_step(make_config: Any, pairs_file: Path, tmp_path: Path) -> Any:
    """A function that takes a step of these settings on a small GPU."""

    def step(least: int = 4, ranks: Ranks = SINGLE, **more: Any) -> SmallGpu:
        from training.data.dataset import build_dataset

        config: Config = make_config({f"training.{k}": v for k, v in more.items()})
        chosen = make_settings(config)
        tokenizer, model = load_encoder(chosen.encoder.base)
        dataset = build_dataset(
            pairs_file, tmp_path / "set", tokenizer, max_length=25, lowercase=True
        )
        embedder = SmallGpu(model.train(), chosen, ranks)
        embedder.least = least
        optimizer = torch.optim.AdamW(model.parameters())
        scaler = torch.amp.GradScaler("cpu", enabled=False)
        state = TrainingState(model, embedder, optimizer, scaler)
        source = Source("pairs", pairs_file, dataset)
        batch = collate_batch(source, np.arange(20))
        assert np.isfinite(train_step(state, batch, chosen, ranks=ranks).loss)
        return embedder

    return step


def test_a_step_without_memory_is_repeated_in_smaller_parts(
    make_step: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert make_step().chunks == 4
    lines = capsys.readouterr().err.strip().splitlines()
    assert [line.split(" in ")[-1].split(",")[0] for line in lines] == [
        "2 parts",
        "4 parts",
    ]


def test_a_step_that_no_parts_make_small_enough_is_an_error(make_step: Any) -> None:
    with pytest.raises(SapbertError, match=r"E004.*--training.batch_size"):
        make_step(least=1000)
    with pytest.raises(SapbertError, match=r"E004.*--training.chunks 4"):
        make_step(chunks=2)
