"""Encoder folder → the same encoder as OpenVINO runs it, held against the original."""

import warnings
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import Errors, SapbertError
from ..kb.manifest import (
    EXPORTED,
    FILE,
    check_writable,
    describe_files,
    hold_kb,
    read_meta,
    verify_files,
)
from ..system.writing import write_folder_atomically, write_json
from .engines.openvino_engine import (
    DESCRIPTION_FILE,
    FORMAT,
    GRAPH_FILE,
    TOKENIZER_FILE,
    import_openvino,
    open_exported,
)
from .huggingface import EncoderSettings, check_settings, load_encoder
from .name_encoder import create_encoder, encode_wordpieces, open_encoder, use_engine

FIELDS = tuple(asdict(EncoderSettings()))
LEAST_COSINE = 0.999
TRIED_NAMES = 64


def export_encoder(source: Path, target: Path, settings: EncoderSettings) -> float:
    """Write an encoder as OpenVINO runs it.

    `openvino.convert_model` would report to its maker that it was called; its reader of
    PyTorch's graphs alone, which is used here, reports nothing.

    source (Path): The encoder folder. Its adapter goes into the graph.
    target (Path): A folder, which is made if it is not there.
    settings (EncoderSettings): How the encoder is run.
    RETURNS (float): The smallest cosine between its vectors and the original's.
    RAISES (SapbertError): If OpenVINO is not installed or cannot read the encoder, or
        its vectors are others.
    SOURCE: openvino.frontend, in the order of openvino.convert_model.
    """
    openvino = import_openvino()
    tokenizer, model = load_encoder(str(source))
    if not tokenizer.is_fast or not (source / TOKENIZER_FILE).is_file():
        raise SapbertError(Errors.E205.format(name=source))
    graph = convert_graph(model, source)
    target.mkdir(exist_ok=True)
    openvino.save_model(graph, target / GRAPH_FILE, compress_to_fp16=False)
    unknown = tokenizer.unk_token_id
    write_json(
        target / DESCRIPTION_FILE,
        {
            "format": FORMAT,
            "made_with": f"openvino {openvino.__version__}",
            "width": model.config.hidden_size,
            "pad_id": tokenizer.pad_token_id or 0,
            "unknown_id": -1 if unknown is None else unknown,
            "special_ids": sorted(tokenizer.all_special_ids),
        },
    )
    cosine = compare_engines(source, target, settings, vocabulary=len(tokenizer))
    if not cosine > LEAST_COSINE:  # nor if it is no number
        raise SapbertError(Errors.E224.format(least=LEAST_COSINE, cosine=cosine))
    return cosine


def convert_graph(model: Any, folder: Path) -> Any:
    """Turn an encoder in PyTorch into a graph of OpenVINO.

    model (PreTrainedModel): The encoder, in evaluation mode.
    folder (Path): Where it came from, for the error.
    RETURNS (openvino.Model): Wordpieces and mask to states, for any number and length.
    RAISES (SapbertError): If OpenVINO cannot do it.
    """
    import torch
    from openvino import PartialShape
    from openvino.frontend import FrontEndManager
    from openvino.frontend.pytorch.ts_decoder import TorchScriptPythonDecoder
    from transformers.utils import logging

    class States(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            found = self.model(input_ids=ids, attention_mask=mask)
            states: torch.Tensor = found.last_hidden_state
            return states

    # Two lengths, so that what masks padding is traced too.
    ids = torch.ones((2, 6), dtype=torch.int64)
    mask = torch.tensor([[1] * 6, [1] * 4 + [0] * 2])
    verbosity = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            traced = torch.jit.trace(States(), (ids, mask), check_trace=False)
        reader = FrontEndManager().load_by_framework("pytorch")
        decoder = TorchScriptPythonDecoder(traced)  # is asked until all is converted
        graph = reader.convert(reader.load(decoder))
        graph.reshape({port: PartialShape([-1, -1]) for port in graph.inputs})
    except RuntimeError as error:
        reason = str(error).strip().partition("\n")[0]
        raise SapbertError(Errors.E223.format(path=folder, reason=reason)) from error
    finally:
        logging.set_verbosity(verbosity)
    return graph


def compare_engines(
    source: Path, target: Path, settings: EncoderSettings, *, vocabulary: int
) -> float:
    """Tell how near the vectors of both engines are, for names drawn at random.

    source (Path): The encoder folder.
    target (Path): What was exported of it.
    settings (EncoderSettings): How it is run.
    vocabulary (int): How many wordpieces there are.
    RETURNS (float): The smallest cosine.
    """
    random = np.random.default_rng(0)
    lengths = random.integers(1, settings.max_length + 1, TRIED_NAMES)
    pieces = [tuple(random.integers(0, vocabulary, n).tolist()) for n in lengths]
    original, exported = create_encoder("torch"), create_encoder("openvino")
    open_encoder(original, source, settings=settings)
    engine = open_exported(target, source / TOKENIZER_FILE, settings, "float32")
    use_engine(exported, engine, settings)
    vectors = [encode_wordpieces(model, pieces) for model in (original, exported)]
    return float(np.einsum("nd,nd->n", *vectors).min())


def export_kb(folder: Path) -> float:
    """Add to a knowledge base what OpenVINO runs; its index stays as it is.

    folder (Path): Of the knowledge base. It is changed in place, and whole at each
        moment.
    RETURNS (float): See `export_encoder`.
    RAISES (SapbertError): If the knowledge base is damaged or read-only, somebody else
        is changing it, or as `export_encoder` does.
    """
    check_writable(folder)
    with hold_kb(folder):
        meta = read_meta(folder)
        verify_files(folder, meta)
        settings = check_settings({f: meta["encoder"][f] for f in FIELDS})
        place, prefix = folder / EXPORTED, f"{EXPORTED}/"
        files = meta.pop("files")
        kept = {name: e for name, e in files.items() if not name.startswith(prefix)}
        if len(kept) < len(files):
            # What meta.json does not name may be replaced.
            write_json(folder / FILE, {**meta, "files": kept})
        with write_folder_atomically(place) as part:
            cosine = export_encoder(folder / "encoder", part, settings)
        made = {prefix + name: e for name, e in describe_files(place).items()}
        write_json(folder / FILE, {**meta, "files": {**kept, **made}})
    return cosine
