"""concepts.jsonl → encoder/: new wordpieces, with the weights of another encoder.

For use where no multilingual encoder is available. The vectors of new wordpieces are
means of old ones, or random: the encoder has to be trained.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from spacy_sapbert.encoder.huggingface import (
    ENCODER_FOLDER,
    EncoderSettings,
    load_encoder,
    read_settings,
    save_encoder,
)
from spacy_sapbert.system.writing import check_folder_output, write_folder_atomically
from spacy_sapbert.vocabularies.concepts import read_concepts
from training.data.pairs import read_pairs
from training.data.reporting import Force, Quiet, print_counts
from training.encoders.wordpieces import INSIDE, SPECIAL, learn_pieces, make_tokenizer
from training.errors import Errors, SapbertError

WIDTH, LAYERS, HEAD_WIDTH = 384, 6, 32


def make_body(vocabulary: int, *, width: int, layers: int, seed: int) -> Any:
    """Build a `BertModel` with random weights.

    vocabulary (int): Number of wordpieces.
    width (int): Columns of a vector, a multiple of 32.
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
    """Spell a wordpiece with the wordpieces of another tokenizer.

    piece (str): E.g. "kuu" or "##me".
    tokenizer (tokenizers.Tokenizer): The other tokenizer; it normalises the piece.
    RETURNS (list[int]): Ids of the longest matches; empty if a letter is missing.
    """
    if piece in vocabulary:
        return [vocabulary[piece]]
    text = piece.removeprefix(INSIDE)
    if tokenizer.normalizer is not None:
        # it may add blanks around a character
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


def compute_vectors(
    pieces: list[str], tokenizer: Any, vectors: Any, *, seed: int
) -> tuple[Any, dict[str, int]]:
    """Compute the vectors of new wordpieces from the old ones.

    pieces (list[str]): New wordpieces, in the order of their ids.
    tokenizer (PreTrainedTokenizerFast): The old tokenizer, with wordpieces.
    vectors (Tensor): Vectors of the old wordpieces. Shape: (old, width).
    RETURNS (tuple[Tensor, dict[str, int]]): Vectors, shape (new, width), and the count
        of each kind: the old vector of a wordpiece in both, else the mean of the old
        ones that spell it, else a random one with their mean and deviation.
    """
    import torch

    generator = torch.Generator().manual_seed(seed)
    noise = torch.randn(len(pieces), vectors.shape[1], generator=generator)
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
    """Replace the wordpieces of an encoder and their vectors, in place.

    old (PreTrainedTokenizerFast): Its tokenizer.
    RETURNS (dict[str, int]): The counts of `compute_vectors`.
    """
    from tokenizers.models import WordPiece
    from torch import nn

    backend = getattr(old, "backend_tokenizer", None)
    if backend is None or not isinstance(backend.model, WordPiece):
        raise SapbertError(Errors.E778)
    vectors = model.get_input_embeddings().weight.detach()
    made, counts = compute_vectors(pieces, old, vectors, seed=seed)
    pad = pieces.index(SPECIAL["pad_token"])
    model.set_input_embeddings(nn.Embedding.from_pretrained(made, False, pad))
    model.config.vocab_size, model.config.pad_token_id = len(pieces), pad
    return counts


def read_names(concepts: Path, translations: Sequence[Path] = ()) -> Iterator[str]:
    """Yield all names of concepts.jsonl and all words of files of translation pairs."""
    for concept in read_concepts(concepts):
        yield from concept.aliases
    for path in translations:
        for _, *words in read_pairs(path):
            yield from words


def make_encoder(
    concepts: Annotated[Path, typer.Argument(help="concepts.jsonl, of all languages.")],
    output: Annotated[Path, typer.Argument(metavar="ENCODER", help="Folder to write.")],
    translations: Annotated[
        list[Path] | None,
        typer.Option(help="Translation pairs with more words; may be repeated."),
    ] = None,
    size: Annotated[int, typer.Option(min=100, help="Wordpieces at most.")] = 30_000,
    body: Annotated[
        str | None,
        typer.Option(help="Encoder with the other weights. [random weights]"),
    ] = None,
    width: Annotated[
        int | None, typer.Option(min=1, help=f"Vector columns. [{WIDTH}]")
    ] = None,
    layers: Annotated[
        int | None, typer.Option(min=1, help=f"Layers. [{LAYERS}]")
    ] = None,
    lowercase: Annotated[bool, typer.Option(help="Lower-case names.")] = True,
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
    force: Force = False,
    quiet: Quiet = False,
) -> dict[str, int]:
    """Write an encoder with new wordpieces, which has to be trained before use.

    Example: python -m training new-encoder corpus/concepts.jsonl models/small
    --body models/minilm

    Example: python -m training new-encoder corpus/concepts.jsonl models/small
    --translations corpus/translations.tsv --size 30000 --width 384 --layers 6
    """
    check_folder_output(output, ENCODER_FOLDER, force=force)
    if body and (width or layers):
        raise SapbertError(Errors.E779)
    how = read_settings(Path(body)) if body else EncoderSettings()
    names = read_names(concepts, translations or ())
    pieces = learn_pieces(names, size=size, lowercase=lowercase)
    if body:
        old, model = load_encoder(body)
        counts = change_vocabulary(model, old, pieces, seed=seed)
    else:
        shape = {"width": width or WIDTH, "layers": layers or LAYERS}
        model = make_body(len(pieces), **shape, seed=seed)
        counts = {"random": len(pieces)}
    settings = EncoderSettings(how.pooling, how.max_length, lowercase)
    with write_folder_atomically(output, ENCODER_FOLDER) as part:
        tokenizer = make_tokenizer(pieces, lowercase=lowercase)
        save_encoder(part, tokenizer, model, settings)
    counts = {"wordpieces": len(pieces), **counts}
    print_counts(counts, output, quiet=quiet)
    return counts
