"""Speed of the encoder by engine; `benchmarks.linking` measures all of the linker."""

import random
import statistics
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
import typer
from torch import Tensor

from benchmarks.harness import machine_line, print_table, run_cli
from spacy_sapbert.encoder.encoder import EXPORTED, Encoder, EncoderConfig
from spacy_sapbert.encoder.export import export_encoder
from spacy_sapbert.encoder.huggingface import (
    EncoderSettings,
    load_encoder,
    read_settings,
    save_encoder,
)
from spacy_sapbert.io.terminal import msg
from spacy_sapbert.vocabularies.concepts import read_concepts
from training.data.dictionary import read_dictionary

OURS = ("torch float32", "torch bf16", "openvino float32", "openvino bf16")
PLAIN = "transformers float32"
PAUSE = 0.5  # seconds in which the threads of the engine before stop spinning
NAMES, WARM_UP, SINGLES = 2000, 64, 100  # in batches, before them, one by one
REPEATS = 5  # measurements after one that warms up; the median counts


class PlainEngine:
    """An encoder in transformers alone, as an `Engine`; the tokenizer is shared."""

    def __init__(self, folder: Path, original: Any) -> None:
        _, self.model = load_encoder(str(folder))
        self.tokenizer = original.tokenizer
        self.positions, self.vocabulary = original.positions, original.vocabulary

    def states(self, ids: np.ndarray, mask: np.ndarray) -> Tensor:
        inputs = torch.from_numpy(ids), torch.from_numpy(mask)
        output: Tensor = self.model(*inputs).last_hidden_state
        return output


def open_engines(
    encoder: str, settings: EncoderSettings, folder: Path
) -> dict[str, Encoder]:
    """Open an encoder in every engine; `folder` is for its exports."""
    (folder / EXPORTED).mkdir()
    save_encoder(folder, *load_encoder(encoder), settings)
    export_encoder(folder, folder / EXPORTED, settings)
    encoders: dict[str, Encoder] = {}
    for name in OURS:
        engine, precision = name.split()
        config = EncoderConfig(engine, precision=precision)
        encoders[name] = Encoder.open(folder, config, settings=settings)
    first = encoders[OURS[0]]
    encoders[PLAIN] = replace(first, engine=PlainEngine(folder, first.engine))
    return encoders


def time_names(encoder: Encoder, names: Sequence[str]) -> dict[str, Any]:
    """Return the seconds of `all` names and of `one` name, and all `vectors`."""
    token_ids, _ = encoder.tokenize(names)
    time.sleep(PAUSE)
    encoder.encode(token_ids[:WARM_UP])
    start = time.perf_counter()
    vectors = encoder.encode(token_ids)
    seconds = time.perf_counter() - start
    alone = []
    for one in token_ids[:SINGLES]:
        start = time.perf_counter()
        encoder.encode([one])
        alone.append(time.perf_counter() - start)
    return {"all": seconds, "one": statistics.median(alone), "vectors": vectors}


def main(
    encoder: str = typer.Argument(..., help="Folder or hub id."),
    concepts: Path = typer.Argument(..., help="concepts.jsonl with short names."),
) -> None:
    """encoder + concepts.jsonl -> table of engines

    All get the same token ids in the same batches and take turns. "transformers" is the
    plain forward pass, without spacy-transformers.

    Example: python -m benchmarks.speed models/minilm concepts.jsonl
    """
    settings = read_settings(Path(encoder))
    every = sorted(read_dictionary(read_concepts(concepts)).names)
    names = random.Random(0).sample(every, min(NAMES, len(every)))
    with TemporaryDirectory() as folder:
        encoders = open_engines(encoder, settings, Path(folder))
        runs: dict[str, list[dict[str, Any]]] = {name: [] for name in encoders}
        for _ in range(REPEATS + 1):
            for name, opened in encoders.items():
                runs[name].append(time_names(opened, names))
    rows: list[tuple[str, ...]] = []
    first = runs[OURS[0]]
    for name, measured in runs.items():
        base, seconds = (
            statistics.median(run["all"] for run in some[1:])
            for some in (first, measured)
        )
        one = 1000 * statistics.median(run["one"] for run in measured[1:])
        cosine = (measured[0]["vectors"] * first[0]["vectors"]).sum(axis=1).min()
        speed, ratio = f"{len(names) / seconds:,.0f}", f"{base / seconds:.2f}"
        rows.append((name, speed, ratio, f"{one:.2f} ms", f"{cosine:.5f}"))
    msg.text(machine_line())
    header = ("Engine", "Names/s", f"{OURS[0]} = 1", "One alone", "Least cosine")
    print_table(header, rows)
    msg.text(
        f"{len(names):,} of {len(every):,} names, {torch.get_num_threads()} threads"
    )


if __name__ == "__main__":
    run_cli(main)
