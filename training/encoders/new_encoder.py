"""concepts.jsonl → encoder/: new wordpieces, on the body of another encoder or on none.

For where no multilingual encoder can be had. It knows nothing of the new wordpieces but
what the old ones say, or nothing at all: train it.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import typer
from wasabi import msg

from spacy_sapbert.encoder.huggingface import (
    EncoderSettings,
    load_encoder,
    read_settings,
    save_encoder,
)
from training.errors import Errors, SapbertError
from spacy_sapbert.system.writing import write_folder_atomically
from spacy_sapbert.vocabularies.concepts import read_concepts
from training.data.tokenized_pairs import read_pairs
from training.encoders.wordpieces import INSIDE, SPECIAL, learn_pieces, make_tokenizer

WIDTH, LAYERS, HEAD_WIDTH = 384, 6, 32


def make_body(vocabulary: int, *, width: int, layers: int, seed: int) -> Any:
    """Make a BERT with random weights.

    vocabulary (int): Wordpieces.
    width (int): Columns of a vector, a multiple of 32.
    layers (int): Layers.
    seed (int): Of the weights.
    RETURNS (BertModel): The encoder.
    RAISES (SapbertError): If the width cannot be parted.
    """
    import torch
    from transformers import BertConfig, BertModel

    if width % HEAD_WIDTH:
        raise SapbertError(Errors.E777.format(parts=HEAD_WIDTH, width=width))
    config = BertConfig(
        vocab_size=vocabulary,
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=width // HEAD_WIDTH,
        intermediate_size=4 * width,
        pad_token_id=0,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return BertModel(config).eval()


def spell_piece(piece: str, tokenizer: Any, vocabulary: dict[str, int]) -> list[int]:
    """Spell a wordpiece with those of another tokenizer.

    piece (str): E.g. "kuu" or "##me".
    tokenizer (tokenizers.Tokenizer): The other one, for what it does to letters.
    vocabulary (dict[str, int]): Its wordpieces.
    RETURNS (list[int]): Ids of the wordpieces, the longest first; empty if there is a
        letter that it does not have.
    """
    if piece in vocabulary:
        return [vocabulary[piece]]
    text = piece.removeprefix(INSIDE)
    if tokenizer.normalizer is not None:
        # It may set blanks around a character.
        text = "".join(tokenizer.normalizer.normalize_str(text).split())
    begun = INSIDE if piece.startswith(INSIDE) else ""
    ids: list[int] = []
    start = 0
    while start < len(text):
        for end in range(len(text), start, -1):
            found = vocabulary.get(begun + text[start:end])
            if found is not None:
                break
        else:
            return []
        ids.append(found)
        start, begun = end, INSIDE
    return ids


def transplant_vectors(
    pieces: list[str], tokenizer: Any, vectors: Any, *, seed: int
) -> tuple[Any, dict[str, int]]:
    """Make the vectors of new wordpieces of those of the old ones.

    pieces (list[str]): New wordpieces, in the order of their ids.
    tokenizer (PreTrainedTokenizerFast): The old tokenizer, of wordpieces.
    vectors (Tensor): Of the old wordpieces. Shape: (old, width).
    seed (int): Of the random ones.
    RETURNS (tuple[Tensor, dict[str, int]]): Vectors, shape (new, width): the old one of
        a wordpiece that both have, else the mean of the old ones that spell it, else a
        random one as far spread as they are; and how many there are of each.
    """
    import torch

    chance = torch.Generator().manual_seed(seed)
    noise = torch.randn(len(pieces), vectors.shape[1], generator=chance)
    made = vectors.mean(dim=0) + vectors.std(dim=0) * noise
    counts = {"same": 0, "spelled": 0, "random": 0}
    vocabulary = tokenizer.get_vocab()
    roles = {piece: getattr(tokenizer, f"{role}_id") for role, piece in SPECIAL.items()}
    for number, piece in enumerate(pieces):
        if (special := roles.get(piece)) is not None:
            ids = [special]
        else:
            ids = spell_piece(piece, tokenizer.backend_tokenizer, vocabulary)
        if ids:
            made[number] = vectors[ids].mean(dim=0) if len(ids) > 1 else vectors[ids[0]]
        counts[("random", "same")[len(ids)] if len(ids) < 2 else "spelled"] += 1
    return made, counts


def change_vocabulary(
    model: Any, old: Any, pieces: list[str], *, seed: int
) -> dict[str, int]:
    """Return an encoder other wordpieces; all but their vectors stays as it is.

    model (PreTrainedModel): The encoder; changed in place.
    old (PreTrainedTokenizerFast): Its tokenizer.
    pieces (list[str]): The new wordpieces.
    seed (int): Of the vectors that are random.
    RETURNS (dict[str, int]): See `transplant_vectors`.
    RAISES (SapbertError): If the old tokenizer has no wordpieces.
    """
    from tokenizers.models import WordPiece
    from torch import nn

    backend = getattr(old, "backend_tokenizer", None)
    if backend is None or not isinstance(backend.model, WordPiece):
        raise SapbertError(Errors.E778)
    vectors = model.get_input_embeddings().weight.detach()
    made, counts = transplant_vectors(pieces, old, vectors, seed=seed)
    pad = pieces.index(SPECIAL["pad_token"])
    model.set_input_embeddings(nn.Embedding.from_pretrained(made, False, pad))
    model.config.vocab_size, model.config.pad_token_id = len(pieces), pad
    return counts


def read_names(concepts: Path, translations: Sequence[Path] = ()) -> Iterator[str]:
    """Read what wordpieces are learned from.

    concepts (Path): concepts.jsonl.
    translations (Sequence[Path]): pairs.tsv of languages that it has not.
    YIELDS (str): Names and words.
    RAISES (SapbertError): If a file is not usable.
    """
    for concept in read_concepts(concepts):
        yield from concept.aliases
    for path in translations:
        for _, *words in read_pairs(path):
            yield from words


def make_encoder(
    concepts: Path,
    output: Path,
    *,
    translations: Sequence[Path] = (),
    size: int = 30_000,
    body: str | None = None,
    width: int = WIDTH,
    layers: int = LAYERS,
    lowercase: bool = True,
    seed: int = 0,
) -> dict[str, int]:
    """Write an encoder with the wordpieces of a vocabulary's names.

    concepts (Path): concepts.jsonl; all its languages count.
    output (Path): The folder.
    translations (Sequence[Path]): pairs.tsv from `training.data.translation_pairs`, for
        wordpieces of languages that the concepts have no name in.
    size (int): Wordpieces at the most.
    body (str | None): Encoder whose other weights are taken, a folder or hub id;
        None = random weights.
    width (int): Without a body: columns of a vector.
    layers (int): Without a body: layers.
    lowercase (bool): Whether names are lower-cased.
    seed (int): Of all that is random.
    RETURNS (dict[str, int]): Wordpieces, and how many there are of each kind.
    RAISES (SapbertError): If there are no names, or the body does not fit.
    """
    how = read_settings(Path(body)) if body else EncoderSettings()
    names = read_names(concepts, translations)
    pieces = learn_pieces(names, size=size, lowercase=lowercase)
    if body:
        old, model = load_encoder(body)
        counts = change_vocabulary(model, old, pieces, seed=seed)
    else:
        model = make_body(len(pieces), width=width, layers=layers, seed=seed)
        counts = {"random": len(pieces)}
    settings = EncoderSettings(how.pooling, how.max_length, lowercase)
    with write_folder_atomically(output) as part:
        tokenizer = make_tokenizer(pieces, lowercase=lowercase)
        save_encoder(part, tokenizer, model, settings)
    return {"wordpieces": len(pieces), **counts}


def main(
    concepts: Path = typer.Argument(..., help="concepts.jsonl, of all languages."),
    output: Path = typer.Argument(..., metavar="ENCODER", help="Folder to write."),
    translations: list[Path] = typer.Option(
        [], help="pairs.tsv to learn wordpieces of too; may be repeated."
    ),
    size: int = typer.Option(30_000, min=100, help="Wordpieces at the most."),
    body: str | None = typer.Option(
        None, help="Encoder whose other weights are taken. [random weights]"
    ),
    width: int | None = typer.Option(None, min=1, help=f"Of a vector. [{WIDTH}]"),
    layers: int | None = typer.Option(None, min=1, help=f"Layers. [{LAYERS}]"),
    lowercase: bool = typer.Option(True, help="Lower-case names."),
    seed: int = typer.Option(0, help="Of what is random."),
    quiet: bool = typer.Option(False, "--quiet", help="Print nothing but errors."),
) -> None:
    """concepts.jsonl -> encoder folder with wordpieces of its languages, to be trained

    Example: python -m training.encoders.new_encoder corpus/concepts.jsonl models/small
    --body models/minilm

    Example: python -m training.encoders.new_encoder corpus/concepts.jsonl models/small
    --translations corpus/translations.tsv --size 30000 --width 384 --layers 6
    """
    try:
        if body and (width or layers):
            raise SapbertError(Errors.E779)
        counts = make_encoder(
            concepts,
            output,
            translations=translations,
            size=size,
            body=body,
            width=width or WIDTH,
            layers=layers or LAYERS,
            lowercase=lowercase,
            seed=seed,
        )
    except SapbertError as error:
        msg.fail(str(error), exits=1)
    if not quiet:
        msg.table([(what, f"{n:,}") for what, n in counts.items()], aligns=("l", "r"))
        msg.good(f"Wrote {output}", "It has to be trained before it is of use.")


if __name__ == "__main__":
    typer.run(main)
