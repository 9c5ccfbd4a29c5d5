"""Batches in which pairs have the nearest pair of another concept beside them."""

from pathlib import Path

import numpy as np
import pytest
import torch

from experiments.ablations.hard_negatives import app, find_partners
from spacy_sapbert.encoder.huggingface import load_encoder
from spacy_sapbert.vocabularies.concepts import read_concepts
from tests.commands import invoke
from training.__main__ import app as training
from training.data.dataset import PairDataset, build_dataset
from training.data.pairs import read_pairs

ROOT = Path(__file__).parents[2]
LOSSES = ROOT / "experiments" / "ablations" / "losses"
PAIRS = """A\tfever\thigh temperature
B\tfever\thot skin
C\trash\teruption
"""
ANGLES = [0, 5, 0, 20, 40, 180]  # of the names, in degrees


@pytest.fixture
def dataset(tmp_path, tiny_encoder) -> PairDataset:
    path = tmp_path / "pairs.tsv"
    path.write_text(PAIRS, "utf8")
    tokenizer, _ = load_encoder(str(tiny_encoder))
    folder = tmp_path / "tokens"
    return build_dataset(path, folder, tokenizer, max_length=25, lowercase=True)


@pytest.mark.parametrize(
    ("below", "expected", "degrees"),
    [
        (1.01, [1, 0, 1], [20, 5, 20]),
        (0.9, [2, 2, 0], [40, 40, 35]),
        (-1, [-1, -1, -1], None),
    ],
)
def test_partner_has_the_nearest_name_that_both_concepts_do_not_have(
    dataset, below, expected, degrees
):
    angles = np.radians(ANGLES)
    vectors = torch.from_numpy(np.stack([np.cos(angles), np.sin(angles)], axis=1))
    lines, rng = np.arange(3), np.random.default_rng(0)
    found, cosines = find_partners(dataset, vectors, lines, rng, below=below)
    assert found.tolist() == expected
    if degrees is None:
        assert np.isnan(cosines).all()
    else:
        assert cosines == pytest.approx(np.cos(np.radians(degrees)))


def test_commands_train_on_pairs_with_their_hard_negatives(tmp_path, tiny_encoder):
    sample = ROOT / "assets" / "sample"
    names = ("concepts.jsonl", "pairs.tsv", "batches.npz", "dictionary.jsonl")
    concepts, pairs, batches, dictionary = (tmp_path / name for name in names)
    invoke("concepts", sample, "--output", concepts, code=0)
    invoke("pairs", concepts, pairs, app=training, code=0)
    base = ("--base", tiny_encoder)
    few = ("--steps", 2, "--size", 8)
    invoke("draw", pairs, batches, *base, *few, "--seeds", 2, app=app, code=0)
    drawn = np.load(batches)
    kinds = ("random", "nearest", "below")
    assert {*drawn} == {f"{kind}-{seed}" for kind in kinds for seed in (0, 1)}
    concept_of = np.array([cui for cui, *_ in read_pairs(pairs)])
    for kind in kinds[1:]:
        lines = drawn[f"{kind}-0"]
        assert lines.shape == (2, 8)
        assert (lines[:, ::2] == drawn["random-0"][:, :4]).all()
        assert (concept_of[lines[:, ::2]] != concept_of[lines[:, 1::2]]).all()

    folders = [tiny_encoder]
    for kind, loss in (("random", "nca"), ("nearest", "nca"), ("nearest", "info-nce")):
        folders.append(tmp_path / f"{kind}-{loss}")
        words = (pairs, batches, folders[-1], "--kind", kind, *base)
        invoke("train", *words, "--config", LOSSES / f"{loss}.cfg", app=app, code=0)
    models = [load_encoder(str(folder))[1] for folder in folders]
    weights = [model.get_input_embeddings().weight for model in models]
    assert len({each.detach().numpy().tobytes() for each in weights}) == 4

    mentions = tmp_path / "mentions.tsv"
    mentions.write_text("mention\tids\nhot\tC0015967\n", "utf8")
    words = (concepts, dictionary, mentions, "--others", 3)
    invoke("dictionary", *words, app=app, code=0)
    kept = {concept.cui for concept in read_concepts(dictionary)}
    assert "C0015967" in kept
    assert len(kept) == 4
