"""What a run needs before its first step: encoder, optimiser, corpus, batches."""

from pathlib import Path
from typing import Any, Iterator, NamedTuple, Tuple

import numpy as np
import torch

from spacy_sapbert.adapters import (
    AdapterSettings,
    add_adapter,
    trainable_parameters,
)
from spacy_sapbert.errors import Errors, SapbertError
from spacy_sapbert.hf import load_encoder
from training.batches import shuffled_batches
from training.corpus import Corpus, build_corpus, open_corpus
from training.ranks import Ranks, wait_for_ranks
from training.settings import TrainingSettings, count_steps
from training.steps import Batch, collate_batch


class Parts(NamedTuple):
    """What moves while a run goes on.

    model (PreTrainedModel): The encoder.
    optimizer (torch.optim.Optimizer): Its optimiser.
    scaler (torch.amp.GradScaler): Keeps small gradients alive in fp16.
    """

    model: Any
    optimizer: torch.optim.Optimizer
    scaler: torch.amp.GradScaler


def make_parts(settings: TrainingSettings, device: str, rank: int) -> Tuple[Any, Parts]:
    """Load the encoder and what trains it.

    settings (TrainingSettings): The settings.
    device (str): "cpu" or "cuda".
    rank (int): The number of this process; each drops out other units.
    RETURNS (Tuple[PreTrainedTokenizerBase, Parts]): The tokenizer, and the parts.
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


def open_shared_corpus(
    pairs_path: Path,
    folder: Path,
    tokenizer: Any,
    settings: TrainingSettings,
    ranks: Ranks,
    progress_bar: bool,
) -> Corpus:
    """Tokenise all names in the first process, and open what it made in the others.

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


def planned_batches(
    total: int, settings: TrainingSettings, *, done: int
) -> Iterator[Tuple[int, np.ndarray]]:
    """Give the batches of the run that are still to do.

    total (int): How many pairs there are.
    settings (TrainingSettings): Batch size, epochs, steps and seed.
    done (int): Steps that an earlier run did.
    YIELDS (Tuple[int, np.ndarray]): The step, from 0, and the numbers of its pairs.
    """
    steps = count_steps(total, settings)
    size, seed = settings.batch_size, settings.seed
    while done < steps:
        epoch, start = divmod(done, -(-total // size))
        for batch in shuffled_batches(
            total, size=size, seed=seed, epoch=epoch, start=start
        ):
            if done == steps:
                return
            yield done, batch
            done += 1


def collated_batches(
    corpus: Corpus,
    settings: TrainingSettings,
    *,
    done: int,
    ranks: Ranks,
    pin: bool,
) -> Iterator[Tuple[int, Batch]]:
    """Prepare the batches of the run that are still to do; see `planned_batches`."""
    for step, numbers in planned_batches(len(corpus), settings, done=done):
        yield step, collate_batch(corpus, numbers, settings, ranks=ranks, pin=pin)
        corpus.release()
