"""Training from encoder folders as the hub has them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spacy_sapbert.encoder.huggingface import read_settings
from tests.encoder.test_published_folders import PUBLISHED, vectors_of
from training.trainer.settings import read_config


@pytest.mark.parametrize("make", PUBLISHED)
def test_train_of_a_published_base_starts_with_its_vectors(
    make: Callable[[Path], Any],
    small_settings: dict[str, Any],
    pairs_file: Path,
    run_training: Any,
    tmp_path: Path,
) -> None:
    """With a learning rate of zero, these are also the vectors of the end."""
    base, encoder = tmp_path / "base", tmp_path / "encoder"
    make(base)
    settings = {
        **small_settings,
        "encoder.base": str(base),
        "encoder.pooling": None,
        "training.steps": 1,
        "training.optimizer.learning_rate": 0.0,
    }
    run_training(tmp_path, pairs_file, read_config(None, settings))
    assert read_settings(encoder) == read_settings(base)
    np.testing.assert_allclose(vectors_of(encoder), vectors_of(base), atol=1e-6)
    assert not [*encoder.glob("*.bin")]
