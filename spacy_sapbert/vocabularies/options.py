"""The options of the readers of vocabularies, declared once."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

from ..errors import SapbertError
from ..linking.languages import language_code

SCOPES = ("EXACT", "NARROW", "BROAD", "RELATED", "HIDDEN")


class ReadOption(NamedTuple):
    """What is declared of an option.

    Attributes:
        doc: Its meaning, with the default in brackets at the end.
        kind: "flag", "text" or "list".
        choices: The only values; empty = any.
    """

    doc: str
    kind: str = "text"
    choices: Sequence[str] = ()


def declare(
    doc: str, default: Any = None, choices: Sequence[str] = (), *, is_list: bool = False
) -> Any:
    """Return a field of `ReadOptions`; see `ReadOption`."""
    kind = "flag" if isinstance(default, bool) else "text"
    if is_list or isinstance(default, tuple):
        kind = "list"
    return field(default=default, metadata={"option": ReadOption(doc, kind, choices)})


@dataclass(frozen=True)
class ReadOptions:
    """What is read of a vocabulary; each reader takes some of these.

    The default of lists and texts, None, is that of the reader. An empty list is no
    filter.

    Raises:
        SapbertError: If a value is none of the choices.
    """

    languages: Sequence[str] | None = declare(
        "languages kept, the preferred first: en,es; ENG,SPA. [all; of rrf ENG]",
        is_list=True,
    )
    sources: Sequence[str] = declare("sources kept, e.g. MSH,SNOMEDCT_US. [all]", ())
    source_rank: Sequence[str] = declare(
        "sources whose names and definitions are preferred, best first.", ()
    )
    types: Sequence[str] = declare(
        "semantic types kept, e.g. T047,T191; Condition. [all]", ()
    )
    term_types: Sequence[str] = declare("term types kept, e.g. PT,SY. [all]", ())
    exclude_term_types: Sequence[str] = declare("term types left out, e.g. OAP,OP.", ())
    suppressed: bool = declare("keep suppressed rows.", default=False)
    trade_names: bool = declare("add the names of brands to drugs.", default=False)
    mapped_names: bool = declare(
        "add the names of concepts that are mapped to one.", default=False
    )
    cui_pattern: str | None = declare(
        r"regular expression for whole ids. [C\d{7} for ids of UMLS; else any]"
    )
    ids: str = declare(
        "own, or xref for ids of another vocabulary. [own]", "own", ("own", "xref")
    )
    xref_prefix: str = declare(
        "prefix of the ids that xref uses, with or without _CUI. [UMLS]", "UMLS"
    )
    multi_xref: str = declare(
        "terms with several such ids: drop them, or add their names to all. [drop]",
        "drop",
        ("drop", "all"),
    )
    scopes: Sequence[str] = declare(
        "synonyms kept, e.g. EXACT,RELATED. [EXACT]", ("EXACT",), SCOPES
    )
    obsolete: bool = declare("keep obsolete terms.", default=False)
    type: str | None = declare("semantic type of all concepts, e.g. T047.")
    columns: str | None = declare(
        "which column is what: id=Code,name=Preferred,synonyms=Synonyms,"
        "codes.ICD10CM=icd. [by their names]"
    )
    separator: str | None = declare(
        "between several synonyms or codes in a cell. [| or ;]"
    )
    encoding: str = declare("encoding of a text file, e.g. cp1252. [utf-8]", "utf-8")

    def __post_init__(self) -> None:
        object.__setattr__(self, "scopes", [scope.upper() for scope in self.scopes])
        if self.languages is not None:
            languages = [*map(language_code, self.languages)]
            object.__setattr__(self, "languages", languages)
        for name, (_, kind, choices) in READ_OPTIONS.items():
            value = getattr(self, name)
            for text in (value if kind == "list" else [value]) if choices else ():
                if text not in choices:
                    option = name.replace("_", "-")
                    known = ", ".join(choices)
                    raise SapbertError(
                        "E331",
                        f"Expected `--{option}` to be one of {known}, but got "
                        f"{text!r}.",
                    )


READ_OPTIONS: dict[str, ReadOption] = {
    each.name: each.metadata["option"] for each in fields(ReadOptions)
}


def compile_pattern(pattern: str) -> re.Pattern[str]:
    """Compile a regular expression for ids.

    Raises:
        SapbertError: If it is none.
    """
    try:
        return re.compile(pattern)
    except re.error as error:
        raise SapbertError(
            "E331",
            f"Expected a regular expression as `--cui-pattern`, but got {pattern!r}: "
            f"{error}.",
        ) from None
