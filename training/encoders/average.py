"""Two encoders → one with the mean of their weights."""

from pathlib import Path
from typing import Annotated, Any

import torch
import typer

from spacy_sapbert.encoder.huggingface import (
    ENCODER_FOLDER,
    load_encoder,
    read_settings,
    save_encoder,
)
from spacy_sapbert.system.terminal import msg
from spacy_sapbert.system.writing import check_folder_output, write_folder_atomically
from training.data.reporting import Force, Quiet
from training.data.tokenized_pairs import tokenizer_digest
from training.errors import Errors, SapbertError

CARD = """---
tags: [biomedical, entity-linking, sapbert]
base_model: {base}
---

# Averaged encoder

Each weight is {kept:.3g} of `{base}` plus {ratio:.3g} of
`{trained}`, which was trained from it (Wortsman et al. 2022, *Robust fine-tuning
of zero-shot models*). Made with `python -m training average`. The model card of the
trained encoder says what it was trained on:

{card}
"""


def find_difference(base: tuple[Any, Any], trained: tuple[Any, Any]) -> str | None:
    """Return what forbids to average two encoders, each a tokenizer and a model."""
    if tokenizer_digest(base[0]) != tokenizer_digest(trained[0]):
        return "tokenizer"
    shapes = [
        {name: weight.shape for name, weight in model.state_dict().items()}
        for _, model in (base, trained)
    ]
    for name in sorted(shapes[0].keys() | shapes[1].keys()):
        if shapes[0].get(name) != shapes[1].get(name):
            return f"shape of the weight `{name}`"
    return None


@torch.no_grad()
def average_weights(base: Any, trained: Any, ratio: float) -> None:
    """Move the weights of an encoder towards those of another, in place.

    base (PreTrainedModel): The encoder that changes.
    trained (PreTrainedModel): An encoder with weights of the same shapes.
    ratio (float): Weight of `trained`, 0 to 1.
    SOURCE: Wortsman et al. (2022), Robust fine-tuning of zero-shot models.
    """
    others = trained.state_dict()
    for name, weight in base.state_dict().items():
        if weight.is_floating_point():
            weight.lerp_(others[name], ratio)


def average_command(
    base: Annotated[str, typer.Argument(help="The encoder that was trained further.")],
    trained: Annotated[Path, typer.Argument(help="What was trained from it.")],
    output: Annotated[Path, typer.Argument(metavar="ENCODER", help="Folder to write.")],
    ratio: Annotated[
        float, typer.Option(min=0, max=1, help="Weight of the trained encoder.")
    ] = 0.5,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Write an encoder whose weights are between those of a base and a trained one.

    Example: python -m training average models/minilm models/encoder models/averaged

    Example: python -m training average models/minilm models/encoder models/averaged
    --ratio 0.25
    """
    check_folder_output(output, ENCODER_FOLDER, force=force)
    encoders = load_encoder(base), load_encoder(str(trained))
    if problem := find_difference(*encoders):
        raise SapbertError(
            Errors.E668.format(base=base, trained=trained, problem=problem)
        )
    (_, model), (tokenizer, other) = encoders
    average_weights(model, other, ratio)
    card = trained / "README.md"
    text = card.read_text("utf8").partition("\n---\n")[2] if card.is_file() else ""
    lines = "\n".join(f"> {line}".rstrip() for line in text.strip().splitlines())
    with write_folder_atomically(output, ENCODER_FOLDER) as part:
        save_encoder(part, tokenizer, model, read_settings(trained))
        values = {"base": base, "trained": trained, "kept": 1 - ratio, "ratio": ratio}
        (part / "README.md").write_text(
            CARD.format(**values, card=lines or "> (none)"), "utf8"
        )
    if not quiet:
        msg.good(f"Wrote {output}")
