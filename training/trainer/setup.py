"""What a run needs before its first step: encoder, optimiser, corpus, batches."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from spacy_sapbert.encoder.adapters import (
    AdapterSettings,
    add_adapter,
    trainable_parameters,
)
from spacy_sapbert.encoder.huggingface import load_encoder
from training.errors import Errors, SapbertError
from spacy_sapbert.system.reading import file_digest
from training.data.hierarchy import FAMILY, Hierarchy, read_hierarchy
from training.data.tokenized_pairs import Corpus, build_corpus, open_corpus
from training.trainer.batch_plan import Lines, planned_batches
from training.trainer.distributed import Ranks, wait_for_ranks
from training.trainer.settings import TrainingSettings
from training.trainer.step import Batch, collate_batch


class Parts(NamedTuple):
    """What moves while a run goes on.

    model (PreTrainedModel): The encoder.
    optimizer (torch.optim.Optimizer): Its optimiser.
    scaler (torch.amp.GradScaler): Keeps small gradients alive in fp16.
    """

    model: Any
    optimizer: torch.optim.Optimizer
    scaler: torch.amp.GradScaler


def make_parts(settings: TrainingSettings, device: str, rank: int) -> tuple[Any, Parts]:
    """Load the encoder and what trains it.

    settings (TrainingSettings): The settings.
    device (str): "cpu" or "cuda".
    rank (int): The number of this process; each drops out other units.
    RETURNS (tuple[PreTrainedTokenizerBase, Parts]): The tokenizer, and the parts.
    RAISES (SapbertError): If there is no such encoder, or no adapter to be written.
    """
    tokenizer, model = load_encoder(settings.base)
    torch.manual_seed(settings.seed)  # the same new weights in all processes
    if settings.adapter_reduction:
        add_adapter(model, AdapterSettings(settings.adapter_reduction))
    elif settings.adapter_only and not hasattr(model, "sapbert_adapter"):
        raise SapbertError(
            Errors.E616.format(setting="encoder.adapter_reduction", least=1, value=0)
        )
    torch.manual_seed(settings.seed + rank)
    model.to(device).train()
    if settings.compile:
        model.compile(dynamic=True)
    optimizer = torch.optim.AdamW(
        trainable_parameters(model),
        lr=settings.learning_rate,
        weight_decay=settings.weight_decay,
        fused=True,
    )
    scaler = torch.amp.GradScaler(device, enabled=settings.precision == "fp16")
    return tokenizer, Parts(model, optimizer, scaler)


class Source(NamedTuple):
    """A file that is trained on.

    name (str): "pairs", "relations" or "families".
    path (Path): The file.
    corpus (Corpus): Its names, tokenised.
    hierarchy (Hierarchy | None): Of families, how far their concepts are apart.
    """

    name: str
    path: Path
    corpus: Corpus
    hierarchy: Hierarchy | None = None

    @property
    def lines(self) -> Lines:
        """How many lines there are, and how many stay together."""
        return Lines(len(self.corpus), 1 if self.hierarchy is None else FAMILY)


def corpus_folders(folder: Path) -> dict[str, Path]:
    """Say where the tokenised names of each file are kept.

    folder (Path): Where those of the pairs are.
    RETURNS (dict[str, Path]): By the names of `Source`.
    """
    beside = {
        name: folder.with_name(f"{folder.name}-{name}")
        for name in ("relations", "families")
    }
    return {"pairs": folder, **beside}


def open_sources(
    pairs_path: Path,
    folder: Path,
    tokenizer: Any,
    settings: TrainingSettings,
    ranks: Ranks,
    progress_bar: bool,
) -> list[Source]:
    """Tokenise the files in the first process, and open what it made in the others.

    pairs_path (Path): pairs.tsv.
    folder (Path): Where its tokenised names are kept; those of other files beside it.
    tokenizer (PreTrainedTokenizerBase): The encoder's tokenizer.
    settings (TrainingSettings): The other files, lengths and case.
    ranks (Ranks): The processes.
    progress_bar (bool): Show a bar.
    RETURNS (list[Source]): Pairs, then relations and families if there are any.
    RAISES (SapbertError): If a file is not usable, or has no whole families.
    """
    wanted = settings.hierarchy
    paths = {
        "pairs": pairs_path,
        "relations": settings.relations,
        "families": wanted.families,
    }
    sources = []
    for name, place in corpus_folders(folder).items():
        path = paths[name]
        if path is not None:
            corpus = open_shared_corpus(
                path, place, tokenizer, settings, ranks, progress_bar
            )
            sources.append(Source(name, path, corpus))
    if wanted.families is not None and wanted.concepts is not None:
        lines = len(sources[-1].corpus)
        if lines % FAMILY:
            raise SapbertError(
                Errors.E758.format(path=wanted.families, group=FAMILY, lines=lines)
            )
        hierarchy = read_hierarchy(wanted.concepts)
        sources[-1] = sources[-1]._replace(hierarchy=hierarchy)
    return sources


def open_shared_corpus(
    pairs_path: Path,
    folder: Path,
    tokenizer: Any,
    settings: TrainingSettings,
    ranks: Ranks,
    progress_bar: bool,
) -> Corpus:
    """Tokenise one file in the first process, and open what it made in the others.

    RETURNS (Corpus): The corpus; see `build_corpus` for it and the arguments.
    """

    if ranks.is_first:
        build_corpus(
            pairs_path,
            folder,
            tokenizer,
            max_length=settings.max_length,
            lowercase=settings.lowercase,
            progress=progress_bar,
        )
    wait_for_ranks(ranks)
    return open_corpus(folder)


def digest_sources(
    sources: Sequence[Source], settings: TrainingSettings
) -> dict[str, str]:
    """Say which files a run is of.

    sources (Sequence[Source]): What is trained on.
    settings (TrainingSettings): The concepts of the hierarchy.
    RETURNS (dict[str, str]): The sha256 of each.
    """
    found = {f"{each.name}_sha256": each.corpus.pairs_sha256 for each in sources}
    if settings.hierarchy.concepts is not None:
        found["hierarchy_sha256"] = file_digest(settings.hierarchy.concepts)
    return found


def collated_batches(
    sources: Sequence[Source],
    settings: TrainingSettings,
    *,
    done: int,
    ranks: Ranks,
    pin: bool,
) -> Iterator[tuple[int, Source, Batch]]:
    """Prepare the batches of the run that are still to do; see `planned_batches`."""
    files = [source.lines for source in sources]
    for step, file, numbers in planned_batches(files, settings, done=done):
        source = sources[file]
        batch = collate_batch(
            source.corpus,
            numbers,
            settings,
            ranks=ranks,
            pin=pin,
            hierarchy=source.hierarchy,
        )
        yield step, source, batch
        source.corpus.release()
