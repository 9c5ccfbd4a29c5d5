"""Engines of the encoder on a CPU: names a second, cosines, accuracy.

All engines get the same token ids in the same batches and take turns. "transformers"
is the plain forward pass: the difference from PyTorch is the cost of
spacy-transformers. ONNX Runtime, which this project does not use, is measured where it
is installed (`pip install onnx onnxruntime`): in float32 and in int8.
"""

import random
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import typer
from tqdm import tqdm
from wasabi import msg

from benchmarks.harness import machine_line, print_table
from spacy_sapbert.encoder.engines.openvino_engine import FOLDER
from spacy_sapbert.encoder.huggingface import (
    EncoderSettings,
    load_encoder,
    read_settings,
    save_encoder,
)
from spacy_sapbert.encoder.name_encoder import (
    NameModel,
    create_encoder,
    encode_token_ids,
    open_encoder,
    tokenize_names,
    use_engine,
)
from spacy_sapbert.encoder.openvino_export import export_encoder
from spacy_sapbert.evaluation.accuracy import Answer
from spacy_sapbert.evaluation.gold_mentions import read_aliases
from spacy_sapbert.evaluation.rankers import Dictionary, best_answers, read_dictionary
from spacy_sapbert.evaluation.score_mentions import (
    EvaluationSettings,
    rank_mentions,
    score_mentions,
    select_mentions,
)
from spacy_sapbert.vocabularies.concepts import read_concepts

OURS = ("torch float32", "torch bf16", "openvino float32", "openvino bf16")
PLAIN = "transformers float32"
PAUSE = 0.5  # seconds in which the threads of the engine before stop spinning
WARM_UP = 64  # names
SETTINGS = EvaluationSettings(ks=(1,))

States = Callable[[np.ndarray, np.ndarray], torch.Tensor]  # ids, mask → token states


class OtherEngine:
    """An `Engine` for comparison, with the tokenizer and width of `original`."""

    def __init__(self, states: States, original: Any) -> None:
        self.states = states
        self.tokenizer, self.width = original.tokenizer, original.width


def load_transformers(encoder: Path) -> States:
    """Load an encoder with transformers alone."""
    _, model = load_encoder(str(encoder))

    def states(ids: np.ndarray, mask: np.ndarray) -> torch.Tensor:
        inputs = torch.from_numpy(ids), torch.from_numpy(mask)
        output: torch.Tensor = model(*inputs).last_hidden_state
        return output

    return states


def load_onnx(path: Path) -> States:
    """Load a graph with ONNX Runtime."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    providers = ["CPUExecutionProvider"]
    session = onnxruntime.InferenceSession(str(path), options, providers=providers)

    def states(ids: np.ndarray, mask: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(session.run(["states"], {"ids": ids, "mask": mask})[0])

    return states


def export_onnx(encoder: Path, folder: Path) -> dict[str, Path]:
    """Write an encoder as ONNX graphs, in float32 and int8, if ONNX is installed."""
    try:
        from onnxruntime.quantization import QuantType, quantize_dynamic
    except ImportError:
        return {}
    _, model = load_encoder(str(encoder))
    model.config.return_dict = False
    full, small = folder / "float32.onnx", folder / "int8.onnx"
    sizes = {0: "names", 1: "length"}
    ones = torch.ones((2, 6), dtype=torch.int64)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            model,
            (ones, ones),
            str(full),
            input_names=["ids", "mask"],
            output_names=["states", "pooled"],
            dynamic_axes={"ids": sizes, "mask": sizes, "states": sizes},
            dynamo=False,
        )
        quantize_dynamic(full, small, weight_type=QuantType.QInt8)
    return {"onnxruntime float32": full, "onnxruntime int8": small}


def open_engines(
    encoder: str, settings: EncoderSettings, work: Path
) -> dict[str, NameModel]:
    """Open an encoder in every engine; `work` is a folder for its exports."""
    folder = work / "encoder"
    (folder / FOLDER).mkdir(parents=True)
    save_encoder(folder, *load_encoder(encoder), settings)
    export_encoder(folder, folder / FOLDER, settings)
    models: dict[str, NameModel] = {}
    for name in OURS:
        engine, precision = name.split()
        models[name] = create_encoder(engine, precision=precision)
        open_encoder(models[name], folder, settings=settings)
    others = {PLAIN: load_transformers(folder)}
    others |= {name: load_onnx(p) for name, p in export_onnx(folder, work).items()}
    for name, states in others.items():
        models[name] = create_encoder()
        original = models[OURS[0]].attrs["engine"]
        use_engine(models[name], OtherEngine(states, original), settings)
    return models


def measure_accuracy(
    model: NameModel, dictionary: Dictionary, path: Path, aliases: dict[str, str]
) -> float:
    """Return Acc@1 by concepts of exact search, ties expected; all by one engine."""
    names = model.predict(list(dictionary.names))  # (names, width)
    rows = np.arange(len(names))

    def rank(texts: Sequence[str]) -> list[list[Answer]]:
        cosines = model.predict([dictionary.fold(text) for text in texts]) @ names.T
        return [best_answers(rows, c, dictionary, aliases, k=1) for c in cosines]

    golds, _ = select_mentions(path, SETTINGS)
    answers = rank_mentions(rank, (gold.mention for gold in golds))
    scores = score_mentions(golds, answers, dictionary.lookup, aliases, SETTINGS)
    accuracy: float = scores["accuracy"]["all"]["concepts"]["acc@1"]["expected"]
    return accuracy


def measure_engines(
    encoder: str = typer.Argument(..., help="Folder or hub id."),
    concepts: Path = typer.Argument(..., help="concepts.jsonl with short names."),
    pooling: str | None = typer.Option(None, help="cls or mean. [as the folder]"),
    mentions: list[Path] = typer.Option([], help="Gold mentions; may be repeated."),
    aliases: Path | None = typer.Option(None, help="Ids and the ids they alias."),
    names: int = typer.Option(4000, min=100, help="Names to measure with."),
    singles: int = typer.Option(200, min=1, help="Names that are encoded one by one."),
    rounds: int = typer.Option(5, min=1, help="Runs of each engine."),
) -> None:
    """encoder + concepts.jsonl -> table of engines

    Example: python -m benchmarks.speed engines models/minilm concepts.jsonl --pooling
    mean --mentions bc5cdr_disease.dev.tsv.gz --aliases aliases.tsv.gz
    """
    settings = read_settings(Path(encoder))
    settings = replace(settings, pooling=pooling) if pooling else settings
    known = read_aliases(aliases) if aliases else {}
    dictionary = read_dictionary(read_concepts(concepts), lowercase=settings.lowercase)
    listed = sorted(dictionary.names)
    texts = random.Random(0).sample(listed, min(names, len(listed)))
    with tempfile.TemporaryDirectory() as work:
        models = open_engines(encoder, settings, Path(work))
        speeds: dict[str, list[float]] = {name: [] for name in models}
        alone: dict[str, list[float]] = {name: [] for name in models}
        vectors: dict[str, np.ndarray] = {}
        for _ in tqdm(range(rounds + 1), desc="Rounds", disable=None):
            for name, model in models.items():
                token_ids, _ = tokenize_names(model, texts)
                time.sleep(PAUSE)
                encode_token_ids(model, token_ids[:WARM_UP])
                start = time.perf_counter()
                vectors[name] = encode_token_ids(model, token_ids)
                speeds[name].append(len(texts) / (time.perf_counter() - start))
                for one in token_ids[:singles]:
                    start = time.perf_counter()
                    encode_token_ids(model, [one])
                    alone[name].append(time.perf_counter() - start)
        accuracy = {
            name: [measure_accuracy(model, dictionary, p, known) for p in mentions]
            for name, model in tqdm(models.items(), desc="Accuracy", disable=None)
        }
    first = OURS[0]
    base = statistics.median(speeds[first][1:])  # the first round warms up
    rows = []
    for name in models:
        speed = statistics.median(speeds[name][1:])
        single = 1e3 * statistics.median(
            alone[name][len(alone[name]) // (rounds + 1) :]
        )
        cosine = (vectors[name] * vectors[first]).sum(axis=1).min()
        cells = (f"{speed:,.0f}", f"{speed / base:.2f}", f"{single:.2f} ms")
        scores = (f"{value:.4f}" for value in accuracy[name])
        rows.append((name, *cells, f"{cosine:.5f}", *scores))
    files = [f"Acc@1 {path.name.partition('.tsv')[0]}" for path in mentions]
    header = ("engine", "names/s", f"{first} = 1", "one alone", "least cosine")
    print_table([*header, *files], rows)
    msg.text(
        f"{len(texts):,} of {len(listed):,} names, {torch.get_num_threads()} threads, "
        f"median of {rounds} rounds"
    )
    msg.text(machine_line())
