"""What runs an encoder fastest on a CPU: names a second, nearness, accuracy.

    python -m benchmarks.engines models/minilm concepts.jsonl --pooling mean
        --mentions bc5cdr_disease.dev.tsv.gz --aliases aliases.tsv.gz

All engines get the same wordpieces in the same batches and take turns. "transformers"
is the plain forward pass: what PyTorch takes longer is the share of spacy-transformers.
ONNX Runtime, which this project does not use, takes part where it is installed (`pip
install onnx onnxruntime`): in float32, and with weights and inputs of products in int8.
"""

import random
import statistics
import tempfile
import time
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import typer
from tqdm import tqdm
from wasabi import msg

from benchmarks.machine import machine_line
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
from spacy_sapbert.errors import SapbertError
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
OTHERS = ("onnxruntime float32", "onnxruntime int8")
PLAIN = "transformers float32"
PAUSE = 0.5  # seconds
NAMES_TO_WAKE = 64
SETTINGS = EvaluationSettings(ks=(1,))


class PlainEngine:
    """An `Engine` of transformers alone, for comparison.

    encoder (Path): The encoder folder.
    original (Any): An engine with the same tokenizer and width.
    """

    def __init__(self, encoder: Path, original: Any) -> None:
        _, self.model = load_encoder(str(encoder))
        self.tokenizer, self.width = original.tokenizer, original.width

    def states(self, ids: np.ndarray, mask: np.ndarray) -> torch.Tensor:
        """See `Engine.states`."""
        inputs = torch.from_numpy(ids), torch.from_numpy(mask)
        found: torch.Tensor = self.model(*inputs).last_hidden_state
        return found


class OnnxEngine:
    """An `Engine` of ONNX Runtime, for comparison.

    path (Path): The graph.
    original (Any): An engine with the same tokenizer and width.
    """

    def __init__(self, path: Path, original: Any) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = torch.get_num_threads()
        self.session = onnxruntime.InferenceSession(
            str(path), options, providers=["CPUExecutionProvider"]
        )
        self.tokenizer, self.width = original.tokenizer, original.width

    def states(self, ids: np.ndarray, mask: np.ndarray) -> torch.Tensor:
        """See `Engine.states`."""
        (found,) = self.session.run(["states"], {"ids": ids, "mask": mask})
        return torch.from_numpy(found)


def export_onnx(encoder: Path, folder: Path) -> dict[str, Path]:
    """Write an encoder as ONNX Runtime reads it.

    encoder (Path): The encoder folder.
    folder (Path): Where to write.
    RETURNS (dict[str, Path]): The graphs, by name of the engine; none if ONNX is not
        installed.
    """
    try:
        from onnxruntime.quantization import QuantType, quantize_dynamic
    except ImportError:
        return {}
    _, model = load_encoder(str(encoder))
    model.config.return_dict = False
    paths = {name: folder / f"{name.split()[1]}.onnx" for name in OTHERS}
    whole, small = paths.values()
    sizes = {0: "names", 1: "length"}
    ones = torch.ones((2, 6), dtype=torch.int64)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            model,
            (ones, ones),
            str(whole),
            input_names=["ids", "mask"],
            output_names=["states", "pooled"],
            dynamic_axes={"ids": sizes, "mask": sizes, "states": sizes},
            dynamo=False,
        )
        quantize_dynamic(whole, small, weight_type=QuantType.QInt8)
    return paths


def open_all(encoder: str, settings: EncoderSettings, work: Path) -> dict[str, Any]:
    """Open an encoder in every engine.

    encoder (str): A folder or a hub id.
    settings (EncoderSettings): How it is run.
    work (Path): Where to export it.
    RETURNS (dict[str, NameModel]): By name.
    """
    folder = work / "encoder"
    (folder / FOLDER).mkdir(parents=True)
    save_encoder(folder, *load_encoder(encoder), settings)
    export_encoder(folder, folder / FOLDER, settings)
    opened: dict[str, NameModel] = {}
    for name in OURS:
        engine, precision = name.split()
        opened[name] = create_encoder(engine, precision=precision)
        open_encoder(opened[name], folder, settings=settings)
    original = opened[OURS[0]].attrs["engine"]
    opened[PLAIN] = create_encoder()
    use_engine(opened[PLAIN], PlainEngine(folder, original), settings)
    for name, path in export_onnx(folder, work).items():
        opened[name] = create_encoder()
        use_engine(opened[name], OnnxEngine(path, original), settings)
    return opened


def measure_accuracy(
    model: NameModel,
    dictionary: Dictionary,
    mentions: Sequence[Path],
    aliases: dict[str, str],
) -> list[float]:
    """Link gold mentions to a dictionary by exact search; all by the same engine.

    model (NameModel): The encoder.
    dictionary (Dictionary): What they are linked to.
    mentions (Sequence[Path]): Files of gold mentions.
    aliases (dict[str, str]): Ids that another one stands for.
    RETURNS (list[float]): Acc@1 by concepts of each file, ties counted with their
        probability, 0 to 1.
    """
    names = model.predict(list(dictionary.names))  # (names, width)
    rows = np.arange(len(names))

    def rank(texts: Sequence[str]) -> list[list[Answer]]:
        cosines = model.predict([dictionary.fold(text) for text in texts]) @ names.T
        return [best_answers(rows, c, dictionary, aliases, k=1) for c in cosines]

    found = []
    for path in mentions:
        golds, _ = select_mentions(path, SETTINGS)
        answers = rank_mentions(rank, (gold.mention for gold in golds))
        judged = score_mentions(golds, answers, dictionary.lookup, aliases, SETTINGS)
        found.append(judged["accuracy"]["all"]["concepts"]["acc@1"]["expected"])
    return found


def main(
    encoder: str = typer.Argument(..., help="Folder or hub id."),
    concepts: Path = typer.Argument(..., help="concepts.jsonl with short names."),
    pooling: str | None = typer.Option(None, help="cls or mean. [as the folder]"),
    mentions: list[Path] = typer.Option([], help="Gold mentions; may be repeated."),
    aliases: Path | None = typer.Option(None, help="Ids and what they alias."),
    names: int = typer.Option(4000, min=100, help="Names in the measurement."),
    singles: int = typer.Option(200, min=1, help="Names that go through one by one."),
    rounds: int = typer.Option(5, min=1, help="How often each engine runs."),
    threads: int = typer.Option(0, min=0, help="Threads; 0 = all cores."),
) -> None:
    """encoder + concepts.jsonl -> table of engines"""
    if threads:
        torch.set_num_threads(threads)
    settings = read_settings(Path(encoder))
    settings = replace(settings, pooling=pooling) if pooling else settings
    try:
        known = read_aliases(aliases) if aliases else {}
        dictionary = read_dictionary(
            read_concepts(concepts), lowercase=settings.lowercase
        )
    except SapbertError as error:
        msg.fail(str(error), exits=1)
    some = random.Random(0).sample(
        sorted(dictionary.names), min(names, len(dictionary.names))
    )
    with tempfile.TemporaryDirectory() as work:
        models = open_all(encoder, settings, Path(work))
        speeds: dict[str, list[float]] = {name: [] for name in models}
        alone: dict[str, list[float]] = {name: [] for name in models}
        vectors: dict[str, np.ndarray] = {}
        for _ in tqdm(range(rounds + 1), desc="Rounds", disable=None):
            for name, model in models.items():
                pieces, _ = tokenize_names(model, some)
                # The threads of the one before go to sleep, and its own wake up.
                time.sleep(PAUSE)
                encode_token_ids(model, pieces[:NAMES_TO_WAKE])
                start = time.perf_counter()
                vectors[name] = encode_token_ids(model, pieces)
                speeds[name].append(len(some) / (time.perf_counter() - start))
                for one in pieces[:singles]:
                    start = time.perf_counter()
                    encode_token_ids(model, [one])
                    alone[name].append(time.perf_counter() - start)
        accuracy = {
            name: measure_accuracy(model, dictionary, mentions, known)
            for name, model in tqdm(models.items(), desc="Accuracy", disable=None)
            if mentions
        }
    first = OURS[0]
    table = []
    for name in models:
        cosines = (vectors[name] * vectors[first]).sum(axis=1)
        speed, base = (statistics.median(speeds[n][1:]) for n in (name, first))
        table.append(
            (
                name,
                f"{speed:,.0f}",
                f"{speed / base:.2f}",
                f"{1e3 * statistics.median(alone[name][singles:]):.2f}",
                f"{cosines.min():.5f}",
                *(f"{value:.4f}" for value in accuracy.get(name, ())),
            )
        )
    header = ("engine", "names/s", f"{first} = 1", "ms alone", "least cosine")
    files = tuple(f"Acc@1 {path.name.partition('.tsv')[0]}" for path in mentions)
    msg.table(
        table,
        header=header + files,
        divider=True,
        aligns=("l", *"r" * 9)[: 5 + len(files)],
    )
    msg.text(
        f"{len(some):,} of {len(dictionary.names):,} names, "
        f"{torch.get_num_threads()} threads, median of {rounds} rounds"
    )
    msg.text(machine_line())


if __name__ == "__main__":
    typer.run(main)
