"""Check the options of `link` that decide its output."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import Errors, SapbertError
from ...formats.inputs.reading import ENTITIES
from ...system.writing import check_replaceable

if TYPE_CHECKING:
    from ...kb.knowledge_base import KnowledgeBase


def choose_format(
    format: str | None, output: Path | None, shard_size: int | None
) -> str:
    """Return the format: as given, or by the ending of the output.

    A folder of parts may have any name: without a known ending they are JSONL.

    Raises:
        SapbertError: If the ending is unknown.
    """
    from ...formats.registry import SUFFIXES, guess_format

    if format is not None:
        return format
    if shard_size is not None:
        return "jsonl" if output is None else SUFFIXES.get(output.suffix, "jsonl")
    return "table" if output is None else guess_format(output)


def check_output(
    output: Path | None, format: str, *, shard_size: int | None, force: bool
) -> None:
    """Raise an error if the output cannot be written, before anything is loaded."""
    from ...formats.registry import FOLDERS

    if output is not None:
        check_replaceable(output)
    if shard_size is not None:
        if format in FOLDERS:
            raise SapbertError(Errors.E518.format(format=format))
        if output is None:
            raise SapbertError(Errors.E514)
    elif output is not None and output.is_dir() and format not in FOLDERS:
        raise SapbertError(Errors.E515.format(path=output))
    elif output is not None and output.exists() and not force:
        raise SapbertError(Errors.E003.format(path=output))


def check_keep(keep: str | None, format: str) -> tuple[str, ...]:
    """Return the fields to repeat.

    Raises:
        SapbertError: If the format cannot, or has a field of that name itself.
    """
    from ...formats.entities import COLUMNS, RUN_COLUMNS
    from ...formats.registry import KEEPING

    names = tuple(filter(None, map(str.strip, (keep or "").split(","))))
    if names and format not in KEEPING:
        expected = f"a `--format` of {', '.join(KEEPING)}"
        raise SapbertError(Errors.E600.format(expected=expected, got=format))
    for name in names:
        if name in (*COLUMNS, *RUN_COLUMNS, ENTITIES) or names.count(name) > 1:
            expected = "fields once, which the output has not of its own"
            raise SapbertError(Errors.E600.format(expected=expected, got=repr(name)))
    return names


def check_omop(kb: "KnowledgeBase", codes: Sequence[str]) -> None:
    """Raise an error if no mention would have the id of an OMOP concept.

    Args:
        codes: The vocabularies whose codes are written; empty = all.
    """
    from ...formats.omop import SOURCE

    found = codes or kb.store.sources_of_codes()
    if SOURCE not in found:
        raise SapbertError(Errors.E471.format(got=", ".join(found) or "none"))
