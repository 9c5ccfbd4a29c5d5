"""An embedding layer for detectors, with features from names of concepts.

Only training reads the names. A trained pipeline has the layer in its config, so it is
installed with the package and not with what trains.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from spacy.ml.featureextractor import FeatureExtractor
from spacy.strings import hash_string  # type: ignore[attr-defined]
from spacy.tokens import Doc
from thinc.api import (
    HashEmbed,
    Maxout,
    Model,
    chain,
    concatenate,
    list2ragged,
    ragged2list,
    with_array,
)
from thinc.types import Floats2d, Ints2d

from .name_features import LabelTable, NameFeatures

FEATURE_ROWS = 1000  # of the embeddings of the two features
TABLES = ("labels", "name_hashes", "name_numbers", "word_hashes", "word_numbers")


def make_name_embed(
    width: int, attrs: list[str], rows: list[int], kb: str
) -> Model[list[Doc], list[Floats2d]]:
    """Make the layer: `MultiHashEmbed` of spaCy and two features of each token.

    The names are read when the pipeline is initialised, and saved with it as hashes.

    Args:
        rows: Rows of the embedding of each attribute of a token in `attrs`.
        kb: Folder or name of a knowledge base; later it is not needed.
    """
    columns = [*rows, FEATURE_ROWS, FEATURE_ROWS]
    embeddings: list[Model] = [
        HashEmbed(width, number, column=column, seed=8 + column, dropout=0.0)
        for column, number in enumerate(columns)
    ]
    mixer = Maxout(width, width * len(columns), nP=3, dropout=0.0, normalize=True)
    return chain(
        NameExtractor(FeatureExtractor(attrs), kb),
        list2ragged(),
        with_array(concatenate(*embeddings)),
        with_array(mixer),
        ragged2list(),
    )


def NameExtractor(  # noqa: N802, as thinc names its layers
    attributes: Model[list[Doc], list[Ints2d]], kb: str
) -> Model[list[Doc], list[Ints2d]]:
    """Make the layer that adds two columns to the attributes of tokens."""
    return Model(
        "name_extractor",
        extract,
        init=initialize,
        layers=[attributes],
        attrs={"kb": kb, **dict.fromkeys(TABLES)},
    )


def initialize(model: Model, X: Any = None, Y: Any = None) -> None:  # noqa: N803
    """Read the names of the knowledge base."""
    from ..kb.knowledge_base import load_kb

    if model.attrs["labels"] is None:
        features = NameFeatures.from_kb(load_kb(model.attrs["kb"]))
        tables = (features.labels, *features.names, *features.words)
        model.attrs.update(zip(TABLES, tables, strict=True))


def read_features(model: Model) -> NameFeatures:
    """Return what `initialize` read."""
    labels, *tables = (model.attrs[name] for name in TABLES)
    return NameFeatures(labels, LabelTable(*tables[:2]), LabelTable(*tables[2:]))


def extract(
    model: Model[list[Doc], list[Ints2d]], docs: list[Doc], is_train: bool
) -> tuple[list[Ints2d], Callable]:
    """Return the attributes and features of tokens, uint64. Shape: (tokens, n)."""
    attributes, _ = model.layers[0](docs, is_train)
    features, ops = read_features(model), model.ops
    joined: list[Any] = []
    for columns, doc in zip(attributes, docs, strict=True):
        added: Any = features_of_tokens(doc, features)
        joined.append(ops.xp.hstack([columns, ops.asarray2i(added, dtype="uint64")]))
    return joined, lambda gradient: []


def features_of_tokens(doc: Doc, features: NameFeatures) -> np.ndarray:
    """Return the hashes of the two features of each token. Shape: (tokens, 2)."""
    values = np.zeros((len(doc), 2), dtype=np.uint64)
    starts = [token.idx for token in doc]
    for start, _, name, word in features.find(doc.text):
        token = max(0, int(np.searchsorted(starts, start, side="right")) - 1)
        if not values[token].any():
            values[token] = hash_string(name), hash_string(word)
    return values
