"""Filters: limit concepts and names by type, source, language and id."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from ..errors import Errors, SapbertError
from .languages import ENGLISH, may_be_english

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


@dataclass(frozen=True)
class Filter:
    """Limits concepts and names; an empty field allows everything.

    types (tuple[str, ...]): Semantic types of a concept, or groups of `GROUPS`;
        `UNTYPED` = without a type.
    sources (tuple[str, ...]): Vocabularies of a name.
    languages (tuple[str, ...]): Languages of a name.
    allow (tuple[str, ...]): Ids of the only allowed concepts.
    deny (tuple[str, ...]): Ids of concepts that are not allowed.
    defined (bool): Only concepts with a definition.
    label_types (tuple[str, ...]): Types or groups for the label of an entity; set by
        the linker.
    document_language (str): Language of the document, e.g. "es": names in other
        languages do not count, see `choose_languages`; set by the linker.
    """

    types: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    defined: bool = False
    label_types: tuple[str, ...] = ()
    document_language: str = ""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.default == () and not isinstance(value, tuple):
                clean = check_texts(f"filter.{field.name}", value)
                object.__setattr__(self, field.name, clean)

    def __bool__(self) -> bool:
        return any(getattr(self, field.name) for field in fields(self))

    @property
    def may_be_english(self) -> bool:
        """Whether names in English count for a document that may be in English."""
        some = map(str.lower, self.languages)
        return may_be_english(self.document_language) and (
            not self.languages or not ENGLISH.isdisjoint(some)
        )


def make_filter(data: "Mapping[str, Any] | Filter | None") -> Filter:
    """Return the filter of a config, a call or a command line.

    data (Mapping[str, Any] | Filter | None): Lists of texts by the names of the fields,
        and `defined`; None = everything is allowed.
    RETURNS (Filter): Each list sorted and without repetitions, so that equivalent
        filters are equal.
    RAISES (SapbertError): If a field is unknown or not a list of texts.
    """
    known = [f.name for f in fields(Filter) if f.name not in SET_BY_LINKER]
    if isinstance(data, Filter):
        # Its fields may be lists, or wrong.
        values = {name: getattr(data, name) for name in [*known, "label_types"]}
        return replace(data, **{n: check_field(n, v) for n, v in values.items()})
    if not isinstance(data, (Mapping, type(None))):
        raise SapbertError(Errors.E330.format(known=known, got=type(data).__name__))
    if unknown := [key for key in data or {} if key not in known]:
        raise SapbertError(Errors.E330.format(known=known, got=repr(unknown[0])))
    return Filter(**{name: check_field(name, v) for name, v in (data or {}).items()})


def check_field(name: str, value: Any) -> Any:
    """Return the value of a field of `Filter`, checked."""
    if name != "defined":
        return check_texts(f"filter.{name}", value)
    if not isinstance(value, bool):
        raise SapbertError(
            Errors.E335.format(setting="filter.defined", known=[False, True], got=value)
        )
    return value


def check_texts(setting: str, values: Any) -> tuple[str, ...]:
    """Return a setting, which must be a list of texts, distinct and sorted."""
    listed = isinstance(values, (list, tuple, set, frozenset))
    if not listed or any(not isinstance(value, str) or not value for value in values):
        raise SapbertError(Errors.E331.format(setting=setting))
    return tuple(sorted(set(values)))


def expand_types(types: Iterable[str]) -> set[str]:
    """Return types and groups together with the types of each group.

    Other vocabularies may have types with the name of a group, or with blanks.
    """
    found = {*types}
    for name in found & GROUPS.keys():
        found |= {*GROUPS[name].split(" ")}
    return found
