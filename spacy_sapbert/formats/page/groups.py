"""Semantic groups and types on a page: their names and colours."""

from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from ...linking.filters import GROUPS


class Group(NamedTuple):
    """How a semantic group is shown.

    `key` is the class of its elements. `hue` is in degrees of OKLCH; None = grey.
    """

    key: str
    name: str
    hue: int | None


# Groups that are frequent in clinical texts have hues far apart.
SHOWN: dict[str, Group] = {
    code: Group(code.lower(), name, hue)
    for code, name, hue in (
        ("ACTI", "Activities and behaviors", 225),
        ("ANAT", "Anatomy", 150),
        ("CHEM", "Chemicals and drugs", 255),
        ("CONC", "Concepts and ideas", 285),
        ("DEVI", "Devices", 55),
        ("DISO", "Disorders", 25),
        ("GENE", "Genes and molecular sequences", 345),
        ("GEOG", "Geographic areas", 170),
        ("LIVB", "Living beings", 85),
        ("OBJC", "Objects", 70),
        ("OCCU", "Occupations", 100),
        ("ORGA", "Organizations", 330),
        ("PHEN", "Phenomena", 120),
        ("PHYS", "Physiology", 200),
        ("PROC", "Procedures", 310),
    )
}
OTHER = Group("other", "Other or no type", None)
NO_CONCEPT = Group("nil", "No concept (NIL)", None)
BY_TYPE = {
    type: SHOWN[code] for code, types in GROUPS.items() for type in types.split(" ")
}


def choose_group(types: Iterable[str]) -> Group:
    """Return the group of the first type that has one; a type may also be a group."""
    groups = (SHOWN.get(type) or BY_TYPE.get(type) for type in types)
    return next(filter(None, groups), OTHER)


@cache
def read_type_names() -> dict[str, str]:
    """Read the names of the semantic types, from the file SemGroups of the UMLS."""
    text = (files(__package__) / "type_names.tsv").read_text("utf8")
    return dict(line.split("\t") for line in text.splitlines())


def name_type(type: str) -> str:
    """Return how a semantic type or group is shown to people; others as they are."""
    group = SHOWN.get(type)
    return group.name if group else read_type_names().get(type, type)


def group_styles(within: str = "") -> str:
    """Return CSS with the hue of each group; `within` selects what is around."""
    return "".join(
        f"{within}.{group.key} {{ --hue: {group.hue}; --chroma: 0.12; }}\n"
        for group in SHOWN.values()
    )
