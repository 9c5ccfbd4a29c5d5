"""The tokenizer of a knowledge base, which may be of a hostile author.

It is read from tokenizer.json alone, and refused if a name of a few characters could
take it long or grow without bound.
"""

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import Errors, SapbertError
from .engine import NameTokenizer
from .sealed import read_json

if TYPE_CHECKING:
    from tokenizers import Tokenizer

FILE = "tokenizer.json"
SETTINGS_FILE = "tokenizer_config.json"
MAX_STEPS = 16
MAX_GROWTH = 16  # characters that normalisation makes of one
MAX_TEXT = 16  # characters of what is put before a text or a token
MAX_REPLACEMENT = 128  # bytes that a table of characters makes of one; NFKC has 54
MAX_SPECIAL = 4  # special tokens that are added to a name
MAX_WORD = 200  # characters of a word; the time grows with their square
# Other patterns may need exponential time. These are of SentencePiece tokenizers.
REGEXES = (" {2,}", r"\s+", " +")
NORMALIZERS = frozenset(
    [
        "BertNormalizer",
        "ByteLevel",
        "Lowercase",
        "NFC",
        "NFD",
        "NFKC",
        "NFKD",
        "Nmt",
        "Precompiled",
        "Prepend",
        "Replace",
        "Sequence",
        "Strip",
        "StripAccents",
    ]
)
PRE_TOKENIZERS = frozenset(
    [
        "BertPreTokenizer",
        "ByteLevel",
        "CharDelimiterSplit",
        "Digits",
        "Metaspace",
        "Punctuation",
        "Sequence",
        "Split",
        "UnicodeScripts",
        "Whitespace",
        "WhitespaceSplit",
    ]
)
ROLES = [
    "bos_token",
    "eos_token",
    "unk_token",
    "sep_token",
    "pad_token",
    "cls_token",
    "mask_token",
]


@contextmanager
def name_panics(path: Path | str) -> Iterator[None]:
    """Raise a named error if the library of tokenizers fails within.

    path (Path | str): The file or encoder, for the error.
    """
    try:
        yield
    except SapbertError:
        raise
    except Exception as error:  # tokenizers has no narrower one
        reason = f"it cannot be read: {str(error)[:200]}"
        raise SapbertError(Errors.E228.format(path=path, reason=reason)) from None
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # of Rust; not importable
            raise
        reason = "the library that reads it failed"
        raise SapbertError(Errors.E228.format(path=path, reason=reason)) from None


def read_tokenizer(folder: Path) -> "Tokenizer":
    """Read and check the tokenizer.json of an encoder.

    folder (Path): The folder of the encoder.
    RETURNS (tokenizers.Tokenizer): The tokenizer.
    RAISES (SapbertError): If it is missing or damaged, or could take long for a name.
    """
    from tokenizers import Tokenizer

    path = folder / FILE
    if not path.is_file():
        raise SapbertError(Errors.E205.format(name=folder))
    with name_panics(path):
        tokenizer = Tokenizer.from_file(str(path))
        problem = find_problem(tokenizer)
    if problem:
        raise SapbertError(Errors.E228.format(path=path, reason=problem))
    return tokenizer


def load_tokenizer(folder: Path, max_length: int) -> NameTokenizer:
    """Load the tokenizer of an encoder without transformers.

    Of tokenizer_config.json only the special tokens are read. Its other settings may
    name classes and files, and tokenizer.json has what they changed.

    folder (Path): The folder of an encoder that `save_encoder` wrote.
    max_length (int): Maximum of tokens in a name.
    RETURNS (NameTokenizer): As `torch_engine.make_tokenizer` makes it.
    RAISES (SapbertError): See `read_tokenizer`.
    """
    tokenizer = read_tokenizer(folder)
    path = folder / SETTINGS_FILE
    settings = read_json(path)

    def read_id(token: Any) -> int:
        text = token.get("content") if isinstance(token, dict) else token
        number = tokenizer.token_to_id(text) if isinstance(text, str) else None
        if number is None:
            reason = "it names a special token that the tokenizer does not have"
            raise SapbertError(Errors.E228.format(path=path, reason=reason))
        return number

    ids = {role: read_id(settings[role]) for role in ROLES if settings.get(role)}
    others = settings.get("additional_special_tokens") or []
    more = [read_id(token) for token in others] if isinstance(others, list) else []
    tokenizer.enable_truncation(max_length)
    tokenizer.no_padding()
    return NameTokenizer(
        tokenizer,
        frozenset([*ids.values(), *more]),
        ids.get("unk_token", -1),
        ids.get("pad_token", 0),
    )


def find_problem(tokenizer: "Tokenizer") -> str:
    """Return why a name could take a tokenizer long; empty if it could not."""
    normalizers = list(iter_steps(tokenizer.normalizer, "normalizers"))
    splits = list(iter_steps(tokenizer.pre_tokenizer, "pretokenizers"))
    if len(normalizers) > MAX_STEPS or len(splits) > MAX_STEPS:
        return f"it has more than {MAX_STEPS} steps"
    growth, tables = 1.0, 0
    for step in normalizers:
        if step["type"] not in NORMALIZERS:
            return f"it has a normalizer {step['type']!r}"
        if step["type"] == "Prepend" and len(step["prepend"]) > MAX_TEXT:
            return "it puts a long text before each name"
        if step["type"] == "Replace":
            pattern, content = step["pattern"], step["content"]
            if not (shortest := shortest_match(pattern)):
                return "it replaces a pattern that may need exponential time"
            growth *= max(1, len(content) / shortest)
        if step["type"] == "Precompiled":
            tables += 1
            table = base64.b64decode(step["precompiled_charsmap"])
            texts = table[4 + int.from_bytes(table[:4], "little") :].split(b"\0")
            if max(map(len, texts)) > MAX_REPLACEMENT:
                return "it replaces a character by a long text"
    if growth > MAX_GROWTH or tables > 1:
        return "its normalizers let a text grow without bound"
    for step in splits:
        if step["type"] not in PRE_TOKENIZERS:
            return f"it has a pre-tokenizer {step['type']!r}"
        if step["type"] == "Split" and not shortest_match(step["pattern"]):
            return "it splits at a pattern that may need exponential time"
    model = tokenizer.model
    for name in ("continuing_subword_prefix", "end_of_word_suffix"):
        if len(getattr(model, name, None) or "") > MAX_TEXT:
            return f"its `{name}` is long"
    if getattr(model, "max_input_chars_per_word", 0) > MAX_WORD:
        return f"its words may have more than {MAX_WORD} characters"
    if getattr(model, "dropout", None):
        return "it splits words at random (`dropout`)"
    if tokenizer.num_special_tokens_to_add(False) > MAX_SPECIAL:
        return f"it adds more than {MAX_SPECIAL} special tokens to a name"
    return ""


def iter_steps(component: Any, parts: str) -> Iterator[dict[str, Any]]:
    """Yield the settings of each step of a normalizer or pre-tokenizer.

    parts (str): The key of the steps of a sequence.
    """
    if component is None:
        return
    waiting = [json.loads(component.__getstate__())]
    while waiting:
        step = waiting.pop()
        if step["type"] == "Sequence":
            waiting += step[parts]
        else:
            yield step


def shortest_match(pattern: dict[str, str]) -> int:
    """Return the least number of characters that match; 0 if that is not known."""
    if "String" in pattern:
        return len(pattern["String"])
    return 1 if pattern.get("Regex") in REGEXES else 0
