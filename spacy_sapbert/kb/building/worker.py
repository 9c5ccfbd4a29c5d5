"""A part of the shards of a knowledge base, embedded beside other workers."""

from pathlib import Path
from typing import Any

from ...errors import Errors, SapbertError
from .names import read_names
from .options import BuildOptions
from .preparation import open_build
from .row_vectors import embed_rows


def embed_shards(
    concepts_path: Path,
    output: Path,
    encoder: str,
    worker: tuple[int, int],
    **options: Any,
) -> None:
    """Embed one part of the names of a knowledge base, beside other workers.

    `build_kb` with the same arguments embeds what is missing after that, and builds. A
    worker that was stopped does only its missing shards again.

    Args:
        concepts_path: concepts.jsonl.
        output: The folder of the knowledge base that `build_kb` will write.
        encoder: A folder or a hub id.
        worker: Number of this worker, from 0, and of all.
        options: See `BuildOptions`. With `force` the knowledge base may exist; it is
            `build_kb` that replaces it.

    Raises:
        SapbertError: See `build_kb`; also if the shards that are there are of another
            plan.
    """
    number, workers = worker
    if not 0 <= number < workers:
        raise SapbertError(Errors.E395.format(worker=f"{number}/{workers}"))
    build = BuildOptions(**options)
    with open_build(concepts_path, output, encoder, build, worker=True) as prepared:
        names, counts = read_names(prepared.read_concepts(), prepared.encoder)
        index = prepared.agree_on_index(counts.rows)
        embed_rows(names, prepared, compact=index.stores_16_bits, worker=worker)
