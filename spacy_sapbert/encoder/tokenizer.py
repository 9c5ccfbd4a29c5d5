"""The tokenizer of an encoder, which needs no transformers."""

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import SapbertError
from .safety import TOKENIZER_FILE, read_json

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

FILE = "tokenizer.json"
PANIC = "PanicException"  # of Rust, which is no `Exception`
MANY_TEXTS = 2_000  # of a vocabulary; mentions of a batch are fewer
ROLES = [f"{role}_token" for role in ("bos", "eos", "unk", "sep", "pad", "cls", "mask")]


class NameTokenizer(NamedTuple):
    """Tokenises names for an encoder.

    Attributes:
        backend: Truncates long names and does not pad.
        special_ids: Ids that stand for no text, and the unknown id.
        pad_id: Id of padding.
    """

    backend: "Tokenizer"
    special_ids: frozenset[int]
    pad_id: int

    def encode(self, texts: list[str]) -> "list[Encoding]":
        """Tokenise texts, few of them one by one.

        The library uses threads for a batch, and then prints a warning in each process
        that is forked later. A few thousand texts are as fast without.
        """
        if len(texts) < MANY_TEXTS:
            return [self.backend.encode(text) for text in texts]
        return self.backend.encode_batch(texts)


def load_tokenizer(folder: Path, length: int) -> NameTokenizer:
    """Load the tokenizer that `save_encoder` wrote, without transformers.

    Of tokenizer_config.json only the special tokens are read: it may name classes and
    files, and tokenizer.json has what its other settings changed.
    """
    from tokenizers import Tokenizer

    path = folder / FILE
    if not path.is_file():
        raise SapbertError(
            "E203",
            f"Expected an encoder with a fast tokenizer, but {folder} has none. Save "
            "it once with `AutoTokenizer.from_pretrained(…, "
            "use_fast=True).save_pretrained(…)`.",
        )
    try:
        backend = Tokenizer.from_file(str(path))
        backend.encode("a")
    except BaseException as error:  # the library has no narrower one
        if not isinstance(error, Exception) and type(error).__name__ != PANIC:
            raise
        reason = f"it cannot be read: {str(error)[:200]}"
        raise wrong_tokenizer(path=path, reason=reason) from None
    settings_path = folder / TOKENIZER_FILE
    settings = read_json(settings_path)

    def read_id(token: Any) -> int:
        text = token.get("content") if isinstance(token, dict) else token
        number: int | None = None
        with suppress(TypeError, UnicodeError):  # no text, or half a surrogate pair
            number = backend.token_to_id(text)
        if number is None:
            reason = "it names a special token that the tokenizer does not have"
            raise wrong_tokenizer(path=settings_path, reason=reason)
        return number

    ids = {role: read_id(settings[role]) for role in ROLES if settings.get(role)}
    others = settings.get("additional_special_tokens")
    more = [read_id(token) for token in others] if isinstance(others, list) else []
    backend.enable_truncation(length)
    backend.no_padding()
    return NameTokenizer(
        backend, frozenset([*ids.values(), *more]), ids.get("pad_token", 0)
    )


def wrong_tokenizer(*, path: object, reason: object) -> SapbertError:
    return SapbertError(
        "E203",
        f"{path}: Expected a tokenizer that the library tokenizers can run, but "
        f"{reason}. Choose another encoder, or save it again with `save_pretrained`.",
    )
