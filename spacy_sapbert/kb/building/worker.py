"""A part of the shards of a knowledge base, embedded beside other workers."""

from pathlib import Path
from tempfile import TemporaryDirectory

from ...encoder.encoder import EncoderConfig
from ...encoder.huggingface import EncoderSettings
from ...errors import Errors, SapbertError
from ...system.progress import show_progress
from ...vocabularies.concepts import read_concepts
from ..indexes.choice import choose_index, uses_compact_rows
from .names import read_names
from .plan import agree_on_plan, lock_work_folder
from .preparation import check_inputs, prepare
from .row_vectors import embed_rows


def embed_shards(
    concepts_path: Path,
    output: Path,
    encoder: str,
    worker: tuple[int, int],
    *,
    settings: EncoderSettings | None = None,
    backend: str | None = None,
    backend_settings: dict[str, int] | None = None,
    engine: str = "torch",
    names_per_pass: int = 64,
    precision: str = "float32",
    reuse: Path | None = None,
    force: bool = False,
    progress: bool = False,
) -> None:
    """Embed one part of the names of a knowledge base, beside other workers.

    `build_kb` with the same arguments embeds what is missing after that, and builds. A
    worker that was stopped does only its missing shards again.

    worker (tuple[int, int]): Number of this worker, from 0, and of all.
    force (bool): The knowledge base may exist; it is `build_kb` that replaces it.
    RAISES (SapbertError): See `build_kb`; also if the shards that are there are of
        another plan.
    """
    number, workers = worker
    if not 0 <= number < workers:
        raise SapbertError(Errors.E395.format(worker=f"{number}/{workers}"))
    given = check_inputs(concepts_path, output, backend, backend_settings, force=force)
    config = EncoderConfig(engine, names_per_pass, precision)
    with (
        lock_work_folder(output, shared=True) as work,
        TemporaryDirectory(
            prefix=".encoder.", dir=work, ignore_cleanup_errors=True
        ) as folder,
    ):
        prepared = prepare(
            work,
            Path(folder),
            config,
            concepts_path=concepts_path,
            encoder=encoder,
            settings=settings,
            index=given,
            reuse=reuse,
            replace=False,
        )
        concepts = show_progress(
            read_concepts(concepts_path),
            unit="concepts",
            desc="Read",
            quiet=not progress,
        )
        names, counts = read_names(concepts, prepared.encoder)
        index = given or choose_index(counts.rows)
        index = agree_on_plan(work, prepared.plan, index, fixed=given is not None)
        embed_rows(
            names,
            work,
            prepared.encoder,
            compact=uses_compact_rows(index),
            worker=worker,
            reused=prepared.reused,
            progress=progress,
        )
