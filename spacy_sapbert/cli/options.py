"""Options of several commands, each declared once, and what is made of them.

Limits of options of linking stand in `LinkOptions` alone, which refuses what is out of
them.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ..errors import SapbertError, may_skip
from ..formats.documents import FailOrSkip
from ..formats.format_table import FORMATS, list_formats
from ..io.reading import read_lines
from ..io.terminal import msg

if TYPE_CHECKING:
    from ..kb.knowledge_base import KnowledgeBase

ALL = "all"
Panel = dict[str, Any]
FILTER: Panel = {"rich_help_panel": "Only these concepts and names"}
INPUT: Panel = {"rich_help_panel": "Input"}
LINKING: Panel = {"rich_help_panel": "Linking"}
OUTPUT: Panel = {"rich_help_panel": "Output"}
RUNNING: Panel = {"rich_help_panel": "Running"}


def one_of(list_names: Callable[[], Iterable[str]]) -> dict[str, Any]:
    """Return arguments of an option for a choice that other packages can extend."""

    def check(value: str | None) -> str | None:
        if value is not None and value not in (known := [*list_names()]):
            raise typer.BadParameter(f"{value!r} is not one of {', '.join(known)}.")
        return value

    def complete(begun: str) -> list[str]:
        return [name for name in list_names() if name.startswith(begun)]

    return {"callback": check, "autocompletion": complete}


def some_of(known: Sequence[str]) -> Callable[[str | None], str | None]:
    """Return the check of an option for known values, with commas between them."""

    def check(value: str | None) -> str | None:
        for each in split_values(value) or ():
            if each.upper() not in known:
                raise typer.BadParameter(f"{each!r} is not one of {', '.join(known)}.")
        return value

    return check


KbFolder = Annotated[
    Path, typer.Argument(metavar="KB", help="Folder of the knowledge base.")
]
KbName = Annotated[
    str, typer.Argument(metavar="KB", help="Folder or name of the knowledge base.")
]
InstalledKb = Annotated[
    str | None,
    typer.Argument(
        metavar="KB",
        help="Folder or name of the knowledge base. [the only one installed]",
    ),
]
KbOrPipeline = Annotated[
    str,
    typer.Argument(
        metavar="KB",
        help="Folder or name of a knowledge base, or of a pipeline that links.",
    ),
]
Pipeline = Annotated[
    str | None,
    typer.Option(
        "--pipeline",
        "-p",
        help="Folder or package that detects mentions. [a blank one that detects the "
        "names of the knowledge base]",
    ),
]
Lang = Annotated[
    str | None,
    typer.Option(help="Language of the blank pipeline, e.g. es. [en]"),
]
Force = Annotated[
    bool,
    typer.Option("--force", "-f", help="Replace existing outputs.", **OUTPUT),
]
Quiet = Annotated[
    bool,
    typer.Option("--quiet", help="Print nothing but errors.", **OUTPUT),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.", **OUTPUT)]
OnError = Annotated[
    FailOrSkip,
    typer.Option(help="skip = count what is invalid or fails, and continue."),
]

# Which column of a table, or field of JSONL, is what
COLUMN = typer.Option("--column", help="Column of the terms.", **INPUT)
TEXT = typer.Option(
    "--text", help="Column or field of the texts; a.b = nested.", **INPUT
)
ID = typer.Option("--id", help="Column or field of the ids.", **INPUT)
LABEL = typer.Option(
    "--label", help="Column of the names that stand beside the ids.", **INPUT
)
Encoding = Annotated[
    str,
    typer.Option(help="Of texts, JSONL and tables, e.g. cp1252 (Windows).", **INPUT),
]

Corpus = Annotated[Path, typer.Argument(help="File or folder, as the format has it.")]
ANNOTATED_FORMAT = typer.Option(
    None,
    "--format",
    help=f"{', '.join(name for name, each in FORMATS.items() if each.read)}. "
    "[detected]",
    **one_of(partial(list_formats, "read")),
)
Prefix = Annotated[
    str,
    typer.Option(help="Add to ids without a colon, e.g. MESH:", show_default=False),
]
DropPrefix = Annotated[
    str, typer.Option(help="Remove from ids, e.g. UMLS:", show_default=False)
]
BARS_JOIN_PARTS = typer.Option(
    None,
    "--bars-join-parts/--bars-are-alternatives",
    help="A|B means A and B, or A or B. [as the format]",
)

Mentions = Annotated[
    list[Path],
    typer.Argument(
        metavar="MENTIONS...",
        help="Annotated files or folders of any format, also tables.",
    ),
]
Aliases = Annotated[
    Path | None,
    typer.Option(help="Lines: an id, a tab, the id that it is an alias of."),
]
BarsJoinParts = Annotated[
    bool,
    typer.Option(
        "--bars-join-parts", help="A|B means A+B, as in NCBI disease and BC5CDR."
    ),
]
MentionColumns = Annotated[
    str | None,
    typer.Option(
        "--columns",
        help="Of tables, which column is what: mention=span,ids=code,doc=file,start=…, "
        "end=…; numbers if the first row has no names. [by their names]",
    ),
]
Delimiter = Annotated[
    str | None,
    typer.Option(
        help="Of tables, between the fields: tab, ; or any character. [detected]"
    ),
]
TableEncoding = Annotated[
    str | None,
    typer.Option("--encoding", help="Of tables, e.g. cp1252 (Windows). [utf-8]"),
]
LeastConfidence = Annotated[
    float | None,
    typer.Option(
        min=0,
        max=1,
        help="Of SSSOM: least confidence of a mapping that has one, 0 = all. [0.5]",
    ),
]
Limit = Annotated[
    int,
    typer.Option(
        min=0, max=1_000_000_000, help="First mentions of each file; 0 = all."
    ),
]

Types = Annotated[
    str | None,
    typer.Option(
        help="Semantic types or groups: T047,T191 or DISO. [all]",
        **FILTER,
    ),
]
Sources = Annotated[
    str | None,
    typer.Option(
        help="Vocabularies of the names, e.g. MSH,SNOMEDCT_US. [all]",
        **FILTER,
    ),
]
Languages = Annotated[
    str | None,
    typer.Option(
        help="Languages of the names, e.g. ENG,SPA. [of the document, ENG; or all]",
        **FILTER,
    ),
]
Allow = Annotated[
    Path | None,
    typer.Option(
        help="File with the ids of the only allowed concepts, one a line.",
        **FILTER,
    ),
]
Deny = Annotated[
    Path | None,
    typer.Option(help="File with ids that are not allowed, one a line.", **FILTER),
]

K = Annotated[
    int | None,
    typer.Option(
        "-k",
        "--k",
        help="Candidates for a mention. [as the linker: 10]",
        **LINKING,
    ),
]
Threshold = Annotated[
    float | None,
    typer.Option(
        help="Least probability of a link, 0 = link everything. [as the linker, the "
        "kb: 0.5]",
        **LINKING,
    ),
]
LeastCosine = Annotated[
    float | None,
    typer.Option(
        help="Least score of a link, whatever its probability. [as the linker: any]",
        **LINKING,
    ),
]
Codes = Annotated[
    str | None,
    typer.Option(
        help="Vocabularies whose codes are written: SNOMEDCT_US,ICD10CM. [all]",
        **LINKING,
    ),
]
SETTING = typer.Option(
    [],
    metavar="NAME=VALUE",
    help="Another option of linking, e.g. k=5. May be repeated.",
    **LINKING,
)
Engine = Annotated[
    Literal["auto", "torch", "onnx"] | None,
    typer.Option(
        help="What runs the encoder; auto = onnx where it is installed and there "
        "is no GPU. [as the linker: auto]",
        **RUNNING,
    ),
]
Precision = Annotated[
    Literal["float32", "bf16"] | None,
    typer.Option(help="Of the encoder. [as the linker: float32]", **RUNNING),
]
Device = Annotated[
    str,
    typer.Option(
        help="Of the encoder: cpu, cuda, a GPU like cuda:1, or auto = a GPU if there "
        "is one.",
        **RUNNING,
    ),
]


def open_kb(kb: str | Path, device: str) -> "KnowledgeBase":
    """Open a knowledge base whose encoder runs on a device; see `load_kb`."""
    from ..encoder.encoder import EncoderConfig
    from ..kb.knowledge_base import load_kb

    return load_kb(kb, encoder=EncoderConfig(device=device))


def choose_pipeline(
    kb: str, pipeline: str | None = None
) -> tuple[str | None, str | None]:
    """Return the pipeline and the knowledge base that a command was given.

    `kb` may be a pipeline that links, which has its own knowledge base.
    """
    if Path(kb).is_file():
        raise SapbertError(
            "E310",
            f"Expected a knowledge base, or a pipeline that links, but {kb} is a file. "
            "Name the folder first, and the files after it.",
        )
    if not is_pipeline(kb):
        return pipeline, kb
    if pipeline is None:
        return kb, None
    raise SapbertError(
        "E423",
        f"Expected a knowledge base with `--pipeline`, but {kb} is a pipeline too. "
        "Remove `--pipeline`, or name the folder of a knowledge base in place of "
        f"{kb}.",
    )


def is_pipeline(name: str) -> bool:
    """Return whether a name is the folder or package of a pipeline."""
    from ..kb.folder.versions import PIPELINE_FILE, installed_kbs

    folder = Path(name)
    if folder.is_dir():
        return (folder / PIPELINE_FILE).is_file()
    try:
        return name not in installed_kbs() and bool(distribution(name))
    except (PackageNotFoundError, ValueError):  # or a name that no package can have
        return False


def split_values(text: str | None) -> list[str] | None:
    """Split values at commas; "all" or an empty text is no filter, None stays None."""
    if text is None:
        return None
    values = [value.strip() for value in text.split(",")]
    return [] if values == [ALL] else [value for value in values if value]


def gather_reading(**given: Any) -> dict[str, Any]:
    """Return the options of `read_corpus` that were given."""
    return {name: v for name, v in given.items() if v not in (None, "", False)}


class Skipped:
    """What `--on-error` does with a document that cannot be read."""

    def __init__(self, on_error: FailOrSkip) -> None:
        self.fails = on_error == "fail"
        self.count, self.first = 0, ""

    def __call__(self, error: SapbertError) -> None:
        if self.fails:
            raise may_skip(error)
        self.count += 1
        self.first = self.first or str(error)

    def report(self) -> None:
        """Print how many were left out, and the first reason."""
        if self.count:
            msg.warn(f"{self.count:,} documents or lines were left out: {self.first}")


def read_ids(path: Path) -> list[str]:
    """Read distinct ids, one a line; text after a tab is a remark.

    Blank lines and lines that begin with `#` are skipped.
    """
    ids: dict[str, None] = {}
    for number, line in read_lines(path):
        cui = line.partition("\t")[0].strip()
        if not line.strip() or cui.startswith("#"):
            continue
        if len(cui.split()) != 1:
            raise SapbertError(
                "E117",
                f"{path}:{number}: Expected one id, optionally followed by a tab and "
                "a comment, but got a blank in the id. Correct the line.",
            )
        ids[cui] = None
    return list(ids)


def gather_filter(
    types: str | None = None,
    sources: str | None = None,
    languages: str | None = None,
    allow: Path | None = None,
    deny: Path | None = None,
) -> dict[str, list[str]] | None:
    """Return the filter of the options; None = none was given, `{}` = all are "all"."""
    given = {
        "types": split_values(types),
        "sources": split_values(sources),
        "languages": split_values(languages),
        "allow": None if allow is None else read_ids(allow),
        "deny": None if deny is None else read_ids(deny),
    }
    if allow is not None and not given["allow"]:
        raise SapbertError(
            "E106",
            f"Expected at least one id in {allow}, but got none. Add one, or remove "
            "`--allow` to allow every concept.",
        )
    if all(values is None for values in given.values()):
        return None
    return {name: values for name, values in given.items() if values}


def parse_settings(given: Sequence[str]) -> dict[str, Any]:
    """Parse settings like `k=5`; a value is JSON, or else a text."""
    settings: dict[str, Any] = {}
    for setting in given:
        name, equals, value = setting.partition("=")
        if not name or not equals or not value:
            raise SapbertError(
                "E331",
                "Expected a setting as NAME=VALUE, but got something else. Write it "
                "like `k=5`; a value is a number, a text, or JSON.",
            )
        try:
            settings[name] = json.loads(value)
        except (ValueError, RecursionError):  # or lists in each other without end
            settings[name] = value
    return settings


def gather_options(
    setting: Sequence[str] = (), codes: str | None = None, **given: Any
) -> dict[str, Any]:
    """Return the options of linking that were given; those of `setting` come last."""
    given["codes"] = split_values(codes)
    options = {name: value for name, value in given.items() if value is not None}
    return options | parse_settings(setting)
