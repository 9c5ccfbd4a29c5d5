"""The options of the readers of vocabularies, declared once."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_type_hints

from ..errors import SapbertError, check_range
from ..io.tables.delimited import name_delimiter
from ..linking.languages import language_code

# The values of options that have few
Ids = Literal["own", "xref"]
MultiXref = Literal["drop", "all"]
Scope = Literal["EXACT", "NARROW", "BROAD", "RELATED", "HIDDEN"]
SCOPES: tuple[str, ...] = get_args(Scope)
Texts = Sequence[str]
LEAST_CONFIDENCE = 0.5


class ReadOption(NamedTuple):
    """What is declared of an option.

    Attributes:
        doc: Its meaning, with the default in brackets at the end.
        kind: "flag", "text", "number" from 0 to 1, or "list".
        choices: The type of its only values, a `Literal`; None = any.
    """

    doc: str
    kind: str
    choices: Any


@dataclass(frozen=True)
class ReadOptions:
    """What is read of a vocabulary; each reader takes some of these.

    The default of lists and texts, None, is that of the reader. An empty list is no
    filter.

    Raises:
        SapbertError: If a value is none of the choices.
    """

    languages: Annotated[
        Texts | None,
        "languages kept, the preferred first: en,es; ENG,SPA. [all; of rrf ENG]",
    ] = None
    sources: Annotated[Texts, "sources kept, e.g. MSH,SNOMEDCT_US. [all]"] = ()
    source_rank: Annotated[
        Texts, "sources whose names and definitions are preferred, best first."
    ] = ()
    types: Annotated[
        Texts, "semantic types kept, e.g. T047,T191; Condition. [all]"
    ] = ()
    term_types: Annotated[Texts, "term types kept, e.g. PT,SY. [all]"] = ()
    exclude_term_types: Annotated[Texts, "term types left out, e.g. OAP,OP."] = ()
    suppressed: Annotated[bool, "keep suppressed rows."] = False
    trade_names: Annotated[bool, "add the names of brands to drugs."] = False
    ingredient_names: Annotated[bool, "add the names of drugs to their brands."] = False
    mapped_names: Annotated[
        bool, "add the names of concepts that are mapped to one."
    ] = False
    cui_pattern: Annotated[
        str | None,
        r"regular expression for whole ids. [C\d{7} for ids of UMLS; else any]",
    ] = None
    ids: Annotated[Ids, "own, or xref for ids of another vocabulary. [own]"] = "own"
    xref_prefix: Annotated[
        str, "prefix of the ids that xref uses, with or without _CUI. [UMLS]"
    ] = "UMLS"
    multi_xref: Annotated[
        MultiXref,
        "terms with several such ids: drop them, or add their names to all. [drop]",
    ] = "drop"
    scopes: Annotated[Sequence[Scope], "synonyms kept, e.g. EXACT,RELATED. [EXACT]"] = (
        "EXACT",
    )
    synonym_property: Annotated[
        Texts, "properties whose values are names too, e.g. fma:synonym, or IRIs."
    ] = ()
    obsolete: Annotated[bool, "keep obsolete terms."] = False
    type: Annotated[str | None, "semantic type of all concepts, e.g. T047."] = None
    columns: Annotated[
        str | None,
        "which column is what: id=Code,name=Preferred; also synonyms=…, type=…, "
        "codes.ICD10CM=icd. [by their names]",
    ] = None
    separator: Annotated[
        str | None, "between several synonyms or codes in a cell. [| or ;]"
    ] = None
    delimiter: Annotated[
        str | None, "between the fields of a row: tab, ; or any character. [detected]"
    ] = None
    comment: Annotated[
        str, "what lines begin with that are no rows. [#, above the first row]"
    ] = ""
    least_confidence: Annotated[
        float, "least confidence of a mapping that has one, 0 = all. [0.5]"
    ] = LEAST_CONFIDENCE
    encoding: Annotated[str, "encoding of a text file, e.g. cp1252. [utf-8]"] = "utf-8"

    def __post_init__(self) -> None:
        object.__setattr__(self, "scopes", [scope.upper() for scope in self.scopes])
        if self.languages is not None:
            languages = [*map(language_code, self.languages)]
            object.__setattr__(self, "languages", languages)
        if self.delimiter is not None:
            object.__setattr__(self, "delimiter", name_delimiter(self.delimiter))
        for name, (_, kind, choices) in READ_OPTIONS.items():
            value = getattr(self, name)
            if kind == "number":
                check_range(name.replace("_", "-"), value, 0, 1)
            for text in (value if kind == "list" else [value]) if choices else ():
                if text not in get_args(choices):
                    option, known = name.replace("_", "-"), ", ".join(get_args(choices))
                    raise SapbertError(
                        "E331",
                        f"Expected `--{option}` to be one of {known}, but got "
                        f"{text!r}.",
                    )


def read_declarations() -> dict[str, ReadOption]:
    """Return what is declared of each option of `ReadOptions`."""
    hints = get_type_hints(ReadOptions, include_extras=True)
    options = {}
    for each in fields(ReadOptions):
        declared, doc = get_args(hints[each.name])
        is_list = "Sequence" in str(declared)
        kinds = {bool: "flag", float: "number"}
        kind = "list" if is_list else kinds.get(declared, "text")
        item = get_args(declared)[0] if is_list else declared
        choices = item if "Literal" in str(item)[:16] else None
        options[each.name] = ReadOption(doc, kind, choices)
    return options


READ_OPTIONS = read_declarations()


def compile_pattern(pattern: str) -> re.Pattern[str]:
    """Compile a regular expression for ids."""
    try:
        return re.compile(pattern)
    except re.error as error:
        raise SapbertError(
            "E331",
            f"Expected a regular expression as `--cui-pattern`, but got {pattern!r}: "
            f"{error}.",
        ) from None
