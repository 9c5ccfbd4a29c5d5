"""Names → a tokenizer of wordpieces for the languages that they are in."""

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
INSIDE = "##"  # begins a piece that is not the first of its word
RAREST = 2  # a piece that is found less often is not learned
REPEATED_AT_ONCE = 1000


def make_bare_tokenizer(*, lowercase: bool) -> Any:
    """Make what cuts names into words; it knows no pieces yet.

    As in multilingual BERT, white space, punctuation and each CJK character are cut
    off. Accents are kept, since they tell words apart in most languages, and NFKC makes
    one form of composed, decomposed, full-width and half-width characters.

    lowercase (bool): Whether names are lower-cased.
    RETURNS (tokenizers.Tokenizer): The tokenizer.
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
    """Count the words of names.

    names (Iterable[str]): The names.
    tokenizer (tokenizers.Tokenizer): From `make_bare_tokenizer`.
    RETURNS (dict[str, int]): How often each occurs.
    """
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
    """Choose the smallest pieces, of which the others are made.

    words (dict[str, int]): From `count_words`.
    most (int): How many, the most frequent first; a script of thousands of characters
        must not leave room for nothing else.
    RETURNS (list[str]): The pieces, sorted.
    """
    letters: dict[str, int] = Counter()
    for word, count in words.items():
        for letter in split_letters(word):
            letters[letter] += count
    return sorted(sorted(letters, key=lambda piece: (-letters[piece], piece))[:most])


def repeat_words(words: dict[str, int]) -> Iterator[str]:
    """Write each word as often as it occurs; that is how a trainer is told a count."""
    for word, count in sorted(words.items()):
        for start in range(0, count, REPEATED_AT_ONCE):
            yield " ".join([word] * min(REPEATED_AT_ONCE, count - start))


def learn_pieces(names: Iterable[str], *, size: int, lowercase: bool) -> list[str]:
    """Learn wordpieces, the same ones each time.

    names (Iterable[str]): The names.
    size (int): Wordpieces at the most, special ones included; half of them at the most
        are single characters.
    lowercase (bool): Whether names are lower-cased.
    RETURNS (list[str]): The wordpieces in the order of their ids.
    RAISES (SapbertError): If the names have no word.
    """
    from tokenizers.trainers import WordPieceTrainer

    tokenizer = make_bare_tokenizer(lowercase=lowercase)
    words = count_words(names, tokenizer)
    letters = choose_letters(words, size // 2)
    if not letters:
        raise SapbertError(Errors.E776)
    known = set(letters)
    spelled = {w: n for w, n in words.items() if known.issuperset(split_letters(w))}
    # The trainer numbers what is special first and in order, all else as its hash
    # table has it, and decides by number between pieces that are equally frequent.
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
    """Make a tokenizer of wordpieces, as transformers loads and saves it.

    pieces (list[str]): From `learn_pieces`.
    lowercase (bool): Whether names are lower-cased.
    RETURNS (PreTrainedTokenizerFast): The tokenizer.
    """
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
