"""Filters: limit concepts and names by type, source, language and id."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

from ..errors import SapbertError
from .declared import Option, SortedTexts, check_fields, declare
from .languages import ENGLISH

# The semantic groups of UMLS and the types in each.
# SOURCE: McCray et al. (2001), Aggregating UMLS semantic types for reducing conceptual
# complexity; the last types of CHEM and LIVB are those that UMLS has since retired.
GROUPS: dict[str, str] = {
    "ACTI": "T051 T052 T053 T054 T055 T056 T057 T064 T066",
    "ANAT": "T017 T018 T021 T022 T023 T024 T025 T026 T029 T030 T031",
    "CHEM": "T103 T104 T109 T114 T116 T120 T121 T122 T123 T125 T126 T127 T129 T130 "
    "T131 T192 T195 T196 T197 T200 T110 T111 T115 T118 T119 T124",
    "CONC": "T077 T078 T079 T080 T081 T082 T089 T102 T169 T170 T171 T185",
    "DEVI": "T074 T075 T203",
    "DISO": "T019 T020 T033 T037 T046 T047 T048 T049 T050 T184 T190 T191",
    "GENE": "T028 T085 T086 T087 T088",
    "GEOG": "T083",
    "LIVB": "T001 T002 T004 T005 T007 T008 T010 T011 T012 T013 T014 T015 T016 T096 "
    "T097 T098 T099 T100 T101 T194 T204 T003 T006",
    "OBJC": "T071 T072 T073 T167 T168",
    "OCCU": "T090 T091",
    "ORGA": "T092 T093 T094 T095",
    "PHEN": "T034 T038 T067 T068 T069 T070",
    "PHYS": "T032 T039 T040 T041 T042 T043 T044 T045 T201",
    "PROC": "T058 T059 T060 T061 T062 T063 T065",
}

UNTYPED = "untyped"  # stands for concepts without a type
SET_BY_LINKER = ("label_types", "document_language")


@dataclass(frozen=True, eq=False)
class Filter:
    """Limits concepts and names; an empty field allows everything, and all must hold.

    Lists of texts become sorted tuples, so that equivalent filters are equal.

    Examples:
        >>> Filter(types=["DISO"]).to_config()
        {'types': ['DISO']}
    """

    types: Annotated[
        SortedTexts,
        Option(
            "concepts with one of these semantic types, or of the types of a group; "
            f"`{UNTYPED}` = concepts without types"
        ),
    ] = ()
    sources: Annotated[SortedTexts, Option("names from one of these vocabularies")] = ()
    languages: Annotated[SortedTexts, Option("names in one of these languages")] = ()
    allow: Annotated[SortedTexts, Option("only the concepts with these ids")] = ()
    deny: Annotated[SortedTexts, Option("concepts with other ids than these")] = ()
    defined: Annotated[bool, Option("only concepts with a definition")] = False
    label_types: Annotated[
        SortedTexts,
        Option("types or groups of the label of an entity; set by the linker"),
    ] = ()
    document_language: Annotated[
        str,
        Option(
            'language of the document, e.g. "es": names in other languages do not '
            "count, see `choose_languages`; set by the linker"
        ),
    ] = ""

    def __post_init__(self) -> None:
        check_fields(self, "filter.")

    @cached_property
    def values(self) -> tuple[Any, ...]:
        """The values of all fields."""
        return tuple(getattr(self, name) for name in declare(Filter))

    @cached_property
    def hash(self) -> int:
        """The hash, computed once: a filter with many ids is part of many keys."""
        return hash(self.values)

    def __hash__(self) -> int:
        return self.hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Filter) and self.values == other.values

    def __reduce__(self) -> tuple[Any, ...]:
        return Filter, self.values  # without the hash, which differs between processes

    def __bool__(self) -> bool:
        return any(self.values)

    def to_config(self) -> dict[str, Any]:
        """Return the fields that limit something, as a config has them."""
        return {
            name: [*value] if isinstance(value, tuple) else value
            for name, value in zip(declare(Filter), self.values, strict=True)
            if value and name not in SET_BY_LINKER
        }

    @property
    def is_english(self) -> bool:
        """Whether it is for documents in English."""
        return self.document_language.lower() in ENGLISH


FILTER_FIELDS = {
    name: field for name, field in declare(Filter).items() if name not in SET_BY_LINKER
}


def make_filter(data: "Mapping[str, Any] | Filter | None") -> Filter:
    """Return the filter of a config, a call or a command line.

    Args:
        data: Values by the names of the fields; None = everything is allowed.

    Raises:
        SapbertError: If a field is unknown or a value is not possible.
    """
    if isinstance(data, Filter):
        return data
    known = [*FILTER_FIELDS]
    if not isinstance(data, (Mapping, type(None))):
        got = type(data).__name__
        raise SapbertError(
            "E330",
            f"Expected a filter of {known}, but got {got}. Correct the setting "
            "`filter`.",
        )
    if unknown := [key for key in data or {} if key not in known]:
        got = repr(unknown[0])
        raise SapbertError(
            "E330",
            f"Expected a filter of {known}, but got {got}. Correct the setting "
            "`filter`.",
        )
    return Filter(**data or {})


def expand_types(types: Iterable[str]) -> set[str]:
    """Return types and groups together with the types of each group.

    Other vocabularies may have types with the name of a group, or with blanks.
    """
    expanded = {*types}
    for name in expanded & GROUPS.keys():
        expanded |= {*GROUPS[name].split(" ")}
    return expanded
