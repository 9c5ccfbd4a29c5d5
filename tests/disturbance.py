"""Vectors that differ a little from those of the encoder.

Libraries of numbers calculate differently on other processors and with other threads.
What a test expects must not depend on it: `pytest --disturb 1` moves each vector, in a
direction that depends on its name and on the number, in the whole run.
"""

from collections.abc import Sequence

import numpy as np

from spacy_sapbert.encoder.encoder import Encoder, TokenIds

LENGTH = 0.003  # of what is added to a unit vector


def disturb_vectors(seed: int) -> None:
    """Let all encoders give vectors that differ a little, equal ones for equal names.

    Of 1,000 cosines of the small encoder of the tests, one moves by more than 1e-3;
    between processors, they differ by 1e-6.
    """
    encode = Encoder.encode

    def encode_and_disturb(
        encoder: Encoder, token_ids: Sequence[TokenIds]
    ) -> np.ndarray:
        vectors = encode(encoder, token_ids)
        for vector, ids in zip(vectors, token_ids, strict=True):
            if ids:
                chance = np.random.default_rng([seed, *ids])
                noise = chance.standard_normal(len(vector), dtype=np.float32)
                vector += LENGTH / np.linalg.norm(noise) * noise
                vector /= np.linalg.norm(vector)
        return vectors

    Encoder.encode = encode_and_disturb  # type: ignore[method-assign]
