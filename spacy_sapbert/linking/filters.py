"""Filters: limit concepts and names by type, source, language and id."""

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from pydantic import Field

from .languages import ENGLISH
from .settings_base import Settings, SortedTexts, unknown_setting

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


class Filter(Settings):
    """Limits concepts and names; an empty field allows everything, and all must hold.

    Lists of texts become sorted tuples, so that equivalent filters are equal.

    Examples:
        >>> Filter(types=["DISO"]).to_config()
        {'types': ['DISO']}
    """

    prefix: ClassVar[str] = "filter."

    types: SortedTexts = Field(
        default=(),
        description="concepts with one of these semantic types, or of the types of a "
        f"group; `{UNTYPED}` = concepts without types",
    )
    sources: SortedTexts = Field(
        default=(), description="names from one of these vocabularies"
    )
    languages: SortedTexts = Field(
        default=(), description="names in one of these languages"
    )
    allow: SortedTexts = Field(
        default=(), description="only the concepts with these ids"
    )
    deny: SortedTexts = Field(
        default=(), description="concepts with other ids than these"
    )
    defined: bool = Field(default=False, description="only concepts with a definition")
    label_types: SortedTexts = Field(
        default=(),
        description="types or groups of the label of an entity; set by the linker",
    )
    document_language: str = Field(
        default="",
        description='language of the document, e.g. "es": names in other languages do '
        "not count, see `choose_languages`; set by the linker",
    )

    def __hash__(self) -> int:
        # A filter with many ids is part of many keys, so they are only counted.
        few = (self.types, self.sources, self.languages, self.label_types)
        return hash((*few, self.document_language, len(self.allow), len(self.deny)))

    def __bool__(self) -> bool:
        return any(value for _, value in self)

    def to_config(self) -> dict[str, Any]:
        """Return the fields that limit something, as a config has them."""
        return {
            name: [*value] if isinstance(value, tuple) else value
            for name, value in self
            if value and name in FILTER_FIELDS
        }

    @property
    def is_english(self) -> bool:
        """Whether it is for documents in English."""
        return self.document_language.lower() in ENGLISH


FILTER_FIELDS = {
    name: field
    for name, field in Filter.model_fields.items()
    if name not in SET_BY_LINKER
}


def make_filter(data: "Mapping[str, Any] | Filter | None") -> Filter:
    """Return the filter of a config, a call or a command line; None = allow all."""
    if isinstance(data, Filter):
        return data
    if not isinstance(data, (Mapping, type(None))):
        raise unknown_setting(name=type(data).__name__, known=FILTER_FIELDS)
    for name in data or {}:
        if name not in FILTER_FIELDS:
            raise unknown_setting(name=f"filter.{name}", known=FILTER_FIELDS)
    return Filter(**data or {})


def expand_types(types: Iterable[str]) -> set[str]:
    """Return types and groups together with the types of each group.

    Other vocabularies may have types with the name of a group, or with blanks.
    """
    expanded = {*types}
    for name in expanded & GROUPS.keys():
        expanded |= {*GROUPS[name].split(" ")}
    return expanded
