"""Names → a tokenizer of wordpieces for their languages."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from training.errors import Errors, SapbertError

SPECIAL = {
    "pad_token": "[PAD]",
    "unk_token": "[UNK]",
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "mask_token": "[MASK]",
}
INSIDE = "##"  # prefix of a piece inside a word
RAREST = 2  # least count of a learned piece
WORDS_PER_LINE = 1000


def make_bare_tokenizer(*, lowercase: bool) -> Any:
    """Make a `tokenizers.Tokenizer` that splits names into words, without pieces.

    As in multilingual BERT, white space, punctuation and each CJK character end a word.
    Accents are kept, since they distinguish words in most languages. NFKC unifies
    composed, decomposed, full-width and half-width characters.
    """
    from tokenizers import Tokenizer, decoders, normalizers, pre_tokenizers
    from tokenizers.models import WordPiece

    tokenizer = Tokenizer(WordPiece(unk_token=SPECIAL["unk_token"]))
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.NFKC(),
            normalizers.BertNormalizer(lowercase=lowercase, strip_accents=False),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece(prefix=INSIDE)
    return tokenizer


def count_words(names: Iterable[str], tokenizer: Any) -> dict[str, int]:
    """Count the words of names, split by a tokenizer of `make_bare_tokenizer`."""
    words: dict[str, int] = Counter()
    for name in names:
        text = tokenizer.normalizer.normalize_str(name)
        for word, _ in tokenizer.pre_tokenizer.pre_tokenize_str(text):
            words[word] += 1
    return words


def split_letters(word: str) -> list[str]:
    """Return the smallest pieces of a word, e.g. "f", "##e", "##v"."""
    return [word[0], *(f"{INSIDE}{letter}" for letter in word[1:])]


def choose_letters(words: dict[str, int], most: int) -> list[str]:
    """Return the `most` most frequent single-character pieces, sorted.

    The limit leaves room for other pieces in scripts of thousands of characters.
    """
    letters: dict[str, int] = Counter()
    for word, count in words.items():
        for letter in split_letters(word):
            letters[letter] += count
    return sorted(sorted(letters, key=lambda piece: (-letters[piece], piece))[:most])


def repeat_words(words: dict[str, int]) -> Iterator[str]:
    """Yield each word as often as it occurs, because the trainer has no counts."""
    for word, count in sorted(words.items()):
        for start in range(0, count, WORDS_PER_LINE):
            yield " ".join([word] * min(WORDS_PER_LINE, count - start))


def learn_pieces(names: Iterable[str], *, size: int, lowercase: bool) -> list[str]:
    """Learn wordpieces; the result is deterministic.

    size (int): Number of wordpieces at most, special ones included; at most half of
        them are single characters.
    RETURNS (list[str]): The wordpieces in the order of their ids.
    """
    from tokenizers.trainers import WordPieceTrainer

    tokenizer = make_bare_tokenizer(lowercase=lowercase)
    words = count_words(names, tokenizer)
    letters = choose_letters(words, size // 2)
    if not letters:
        raise SapbertError(Errors.E776)
    known = set(letters)
    spelled = {w: n for w, n in words.items() if known.issuperset(split_letters(w))}
    # The trainer numbers special tokens in order and others in the order of a hash
    # table, and the number decides between equally frequent pieces.
    trainer = WordPieceTrainer(
        vocab_size=size,
        min_frequency=RAREST,
        show_progress=False,
        special_tokens=[*SPECIAL.values(), *letters],
        continuing_subword_prefix=INSIDE,
    )
    tokenizer.train_from_iterator(repeat_words(spelled), trainer)
    ids = tokenizer.get_vocab(with_added_tokens=False)
    return sorted(ids, key=ids.__getitem__)


def make_tokenizer(pieces: list[str], *, lowercase: bool) -> Any:
    """Make a `PreTrainedTokenizerFast` with the pieces of `learn_pieces`."""
    from tokenizers.models import WordPiece
    from tokenizers.processors import TemplateProcessing
    from transformers import PreTrainedTokenizerFast

    ids = {piece: number for number, piece in enumerate(pieces)}
    tokenizer = make_bare_tokenizer(lowercase=lowercase)
    tokenizer.model = WordPiece(ids, unk_token=SPECIAL["unk_token"])
    first, last = SPECIAL["cls_token"], SPECIAL["sep_token"]
    tokenizer.post_processor = TemplateProcessing(
        single=f"{first} $A {last}",
        pair=f"{first} $A {last} $B:1 {last}:1",
        special_tokens=[(first, ids[first]), (last, ids[last])],
    )
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **SPECIAL)
