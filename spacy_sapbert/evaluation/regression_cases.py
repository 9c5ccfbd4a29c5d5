"""Regression cases of a YAML file: mention and context → concept, checked strictly."""

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    TypeAdapter,
    ValidationError,
)

from ..errors import SapbertError
from ..formats.documents import read_text
from ..io.writing import (
    FolderKind,
    check_folder_output,
    write_folder_atomically,
    write_json,
)
from ..kb.database import is_encodable
from ..kb.folder.versions import PIPELINE_FILE

MAX_BYTES = 8 << 20
OPENING, CLOSING = "[[", "]]"
KEPT = "regression"  # the folder of cases in a pipeline
LEAST = "least.json"  # how many cases of each file must pass
LeastPassed = TypeAdapter(dict[str, int], config=ConfigDict(strict=True))
KEPT_CASES = FolderKind("cases of a pipeline", LEAST, lambda name: "/" not in name)

Text = Annotated[str, StringConstraints(pattern=r"\S")]
Id = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class CaseFields(BaseModel):
    """A case as it is written: an id, a list of ids or NIL, and texts."""

    model_config = ConfigDict(extra="forbid", strict=True)

    expected: Annotated[
        list[Id],
        Field(min_length=1),
        BeforeValidator(lambda ids: [ids] if isinstance(ids, str) else ids),
    ]
    mention: Text | None = None
    context: Text | None = None
    label: Text | None = None
    note: Text | None = None


class Case(NamedTuple):
    """The expected link of one mention.

    Attributes:
        line: Line of the file where the case begins, from 1.
        text: The context without marks, or the mention alone.
        start: Start of the mention in the text.
        expected: Ids that are right; "NIL" for no concept.
    """

    path: Path
    line: int
    text: str
    start: int
    mention: str
    expected: tuple[str, ...]
    label: str | None
    note: str | None


def read_cases(path: Path) -> Iterator[Case]:
    """Read cases from a list of mappings with the fields of `CaseFields`."""
    found = False
    for line, data in read_list(path):
        found = True

        def fail(expected: str, got: str, line: int = line) -> SapbertError:
            return SapbertError(
                "E117",
                f"{path}:{line}: Expected {expected}, but got {got}. Correct the case; "
                "`spacy sapbert regress --help` shows one.",
            )

        try:
            fields = CaseFields.model_validate(data)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            known = ", ".join(CaseFields.model_fields)
            expected = f"a case with texts as {known}, of which `expected` is required"
            name = next(iter(first["loc"]), "")
            of = f" as `{name}`" if name in CaseFields.model_fields else ""
            raise fail(expected, f"something else{of}") from None
        mention, text, start = place_mention(fields.mention, fields.context, fail)
        cuis = tuple(dict.fromkeys(fields.expected))
        yield Case(path, line, text, start, mention, cuis, fields.label, fields.note)
    if not found:
        raise SapbertError(
            "E106", f"Expected at least one case in {path}, but it has none. Add one."
        )


def check_kept(pipeline: Path, cases: Sequence[Path], *, force: bool) -> None:
    """Check that cases can be kept in the folder of a pipeline."""
    if not (pipeline / PIPELINE_FILE).is_file():
        raise SapbertError(
            "E507",
            f"Expected the folder of a pipeline as `--keep`, but {pipeline} has no "
            f"{PIPELINE_FILE}. Write one with `spacy sapbert assemble`.",
        )
    check_folder_output(pipeline / KEPT, KEPT_CASES, force=force)
    if len({path.name for path in cases}) < len(cases) or not cases:
        raise SapbertError(
            "E331",
            "Expected files of cases with different names, to keep them in one "
            "folder, but got none, or equal names. Rename them.",
        )


def keep_cases(
    pipeline: Path, cases: Sequence[Path], passed: Mapping[str, int]
) -> None:
    """Write files of cases, and how many of each passed, to the folder of a pipeline.

    `spacy package` packs them with it.
    """
    with write_folder_atomically(pipeline / KEPT, KEPT_CASES) as part:
        for path in cases:
            shutil.copyfile(path, part / path.name)
        write_json(part / LEAST, {path.name: passed[path.name] for path in cases})


def find_kept(pipeline: Path | None) -> tuple[list[Path], dict[str, int]]:
    """Return the files of cases in a pipeline, and how many of each must pass."""
    folder = None if pipeline is None else pipeline / KEPT
    if folder is None or not (folder / LEAST).is_file():
        raise SapbertError(
            "E106",
            "Expected files of cases, or a pipeline that has some, but got neither. "
            "Name the files; `--keep` puts them into a pipeline.",
        )
    try:
        least = LeastPassed.validate_json((folder / LEAST).read_bytes())
    except ValidationError:
        raise SapbertError(
            "E117",
            f"{folder / LEAST}: Expected how many cases of each file must pass, but "
            "got something else. Correct it, or keep the cases again.",
        ) from None
    return [folder / Path(name).name for name in sorted(least)], least


def read_list(path: Path) -> Iterator[tuple[int, Any]]:
    """Yield the line and the content of each item of a list in YAML.

    Values are texts, whatever they look like; an error does not quote them.
    """
    from srsly.ruamel_yaml import BaseLoader

    if path.is_file() and path.stat().st_size > MAX_BYTES:
        raise SapbertError(
            "E007",
            f"Expected a file of at most {MAX_BYTES} bytes at {path}, but got a "
            "larger one. Split it; `spacy sapbert regress` reads several files.",
        )
    text = read_text(path, longest=MAX_BYTES)
    try:
        loader = BaseLoader(text)
        root = loader.get_single_node()
        items = root.value if root else []
        if not isinstance(items, list) or (items and root.id != "sequence"):
            raise TypeError
        for node in items:
            yield node.start_mark.line + 1, loader.construct_object(node, deep=True)
    except SapbertError:
        raise
    except Exception as error:  # YAMLError, or e.g. ValueError of a wrong escape
        marks = (
            getattr(error, f"{what}_mark", None) for what in ("context", "problem")
        )
        mark = next(filter(None, marks), None)
        line = f":{mark.line + 1}" if mark else ""
        raise SapbertError(
            "E117",
            f"{path}{line}: Expected one list of cases in YAML, but got something "
            "else. Correct it; quotes around the value often help.",
        ) from None


def place_mention(
    mention: str | None,
    context: str | None,
    fail: Callable[[str, str], Exception],
) -> tuple[str, str, int]:
    """Return a mention, its context without marks, and where the mention starts in it.

    Without marks around the mention the first place counts.
    """
    for text in (mention, context):
        if text is not None and not is_encodable(text):
            raise fail("a text in UTF-8", "other bytes")
    if mention is not None and not mention.strip():
        raise fail("a mention", "blanks or nothing")
    if context is None:
        if mention is None:
            raise fail("`mention`, or a `context` that marks it", "neither")
        return mention, mention, 0
    if OPENING in context or CLOSING in context:
        before, opening, rest = context.partition(OPENING)
        marked, closing, after = rest.partition(CLOSING)
        if not (opening and closing and marked.strip()):
            raise fail(f"one {OPENING}mention{CLOSING}", "half of it")
        if any(mark in part for mark in (OPENING, CLOSING) for part in (marked, after)):
            raise fail(f"one {OPENING}mention{CLOSING}", "several")
        if mention not in (None, marked):
            raise fail("the mention that the context marks", "another")
        return marked, before + marked + after, len(before)
    if mention is None:
        raise fail(f"`mention`, or {OPENING}marks{CLOSING} around it", "neither")
    start = context.find(mention)
    if start < 0:
        raise fail("a context with the mention in it", "another")
    return mention, context, start
