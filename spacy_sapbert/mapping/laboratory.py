"""Units and specimens of laboratory tests: which concepts those of a row exclude.

"Glucose [Mass/volume] in Serum or Plasma" and "Glucose:MCnc:Pt:Ser/Plas:Qn" have the
property mass/volume and the specimens serum and plasma. A result in mmol/L, or in
urine, is of another test.
"""

import re
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from ..linking.quantities import read_unit
from ..linking.text import fold_letters

if TYPE_CHECKING:
    from ..kb.knowledge_base import KnowledgeBase

# SOURCE: LOINC Users' Guide, properties, as long common names and the axes write them.
# Properties of one line have the same units.
PROPERTIES = """
mass/volume: mass/volume, mcnc, mass concentration
amount/volume: moles/volume, scnc, substance concentration
activity/volume: enzymatic activity/volume, catalytic activity/volume, units/volume, \
ccnc, catalytic concentration, acnc, arbitrary concentration
number/volume: #/volume, ncnc, number concentration, number concentration (count/vol)
fraction: pure mass fraction, mass fraction, # fraction, pure number fraction, \
volume fraction, mole fraction, mfr, nfr, vfr, sfr, number fraction
mass/mass: mass/mass, mass ratio, mcnt, mrto
amount/amount: moles/moles, molar ratio, srto
amount/mass: moles/mass, scnt
mass/amount: mass/moles, ratio
mass/time: mass/time, mrat, mass rate
amount/time: moles/time, srat, substance rate
volume/time: volume rate, vrat
volume/time/area: volume rate/area, vol rate/area, arvrat
volume: volume, vol, entitic volume, entvol
mass: mass, entitic mass, entmass, entmeanmass
length/time: length/time, velocity, vel
time: time
number/area: #/area, naric
osmolality: osmolality, osmol
pressure: partial pressure, ppres, pres
presence: presence, threshold, prthr, presence or threshold
titer: titer, titr
"""
PROPERTY = {
    word.strip(): line.partition(":")[0]
    for line in PROPERTIES.strip().splitlines()
    for word in line.partition(":")[2].split(",")
}
# The dimension of a unit → the properties that have it
OF_DIMENSION = {
    "percent": ("fraction",),
    "equivalents/volume": ("amount/volume",),
    "osmoles/mass": ("osmolality",),
    "osmoles/volume": ("osmolality",),
    "mass/mass": ("mass/mass", "fraction"),
    "mass/amount": ("mass/amount", "mass/mass"),
    "amount/amount": ("amount/amount", "fraction"),
    "volume/volume": ("fraction",),
}
# "G/L" is giga or gram
OF_TEXT = {
    **dict.fromkeys(["gpt/l", "tpt/l", "t/l", "tera/l", "giga/l"], "number/volume"),
    "s": "time",
}
GRAM_OR_GIGA = "G/L"
SPECIMENS = """
serum: serum, ser, s
plasma: plasma, plas, p, platelet poor plasma, ppp
blood: blood, bld, b, whole blood, wb, venous blood, bldv, capillary blood, bldc, \
cord blood, bldco
arterial blood: arterial blood, blda, arterial
red blood cells: red blood cells, rbc, erythrocytes
urine: urine, ur, u, random urine, spot urine, 24 hour urine, 24 h urine, 24h urine, \
24hr urine, 24 hr urine, urine sediment
csf: cerebral spinal fluid, cerebrospinal fluid, csf, spinal fluid
stool: stool, feces, faeces, st
saliva: saliva, sal
sputum: sputum, spt
sweat: sweat, swt
semen: semen, sem
body fluid: body fluid, body fld, fluid
pleural fluid: pleural fluid, plr fld, pleural fld
peritoneal fluid: peritoneal fluid, periton fld, ascites, ascitic fluid
synovial fluid: synovial fluid, synv fld, joint fluid
amniotic fluid: amniotic fluid, amnio fld
bone marrow: bone marrow, marrow
tissue: tissue
"""
SPECIMEN = {
    word.strip(): line.partition(":")[0]
    for line in SPECIMENS.strip().splitlines()
    for word in line.partition(":")[2].split(",")
}
# What is drawn with a needle: "blood" of a hospital is often serum
DRAWN = frozenset({"blood", "serum", "plasma", "arterial blood"})
FITS = {
    "serum": frozenset({"serum", "plasma"}),
    "plasma": frozenset({"serum", "plasma"}),
    "blood": DRAWN,
    "arterial blood": frozenset({"arterial blood", "blood"}),
    "body fluid": frozenset(
        {"body fluid", "pleural fluid", "peritoneal fluid", "synovial fluid"}
    ),
}
WHOLE = ("whole blood", "wb")  # no serum
IN_BRACKETS = re.compile(r"\[([^\[\]]+)\]")
OF_SPECIMEN = re.compile(
    r"\b(?:in|of) ([^:\[\]]+?)(?: by .*| --.*| \(.*)?$", re.IGNORECASE
)
BETWEEN = re.compile(r"\s*(?:/|,|\+|\bor\b|\band\b)\s*")
AXES = 5  # of a fully specified name, or six
MAY_BE_TEST = re.compile(r"\[|:.*:|/100 ").search
NAMES_AT_ONCE = 10_000


class Test(NamedTuple):
    """What the name of a test says; "" and empty = nothing."""

    property: str = ""
    specimens: frozenset[str] = frozenset()


def read_test(name: str) -> Test:
    """Return property and specimens of a test by its name, as LOINC writes names.

    Examples:
        >>> test = read_test("Glucose [Moles/volume] in Blood")
        >>> test.property, [*test.specimens]
        ('amount/volume', ['blood'])
    """
    parts = name.split(":")
    if len(parts) >= AXES:
        found = PROPERTY.get(fold_letters(parts[1]), "")
        return Test(found, read_specimens(parts[3])) if found else Test()
    found = ""
    for text in IN_BRACKETS.findall(name):
        found = PROPERTY.get(fold_letters(text), "") or found
    if not found and re.search(r"/100 \w", name):  # "Neutrophils/100 leukocytes"
        found = "fraction"
    match = OF_SPECIMEN.search(IN_BRACKETS.sub("", name)) if found else None
    return Test(found, read_specimens(match[1]) if match else frozenset())


def read_specimens(text: str) -> frozenset[str]:
    """Return the specimens of a text: "Serum or Plasma", "Ser/Plas"; empty = none."""
    text = " ".join(fold_letters(text).replace(".", " ").split())
    if text in SPECIMEN:
        return frozenset([SPECIMEN[text]])
    return frozenset(SPECIMEN[p] for p in BETWEEN.split(text) if p in SPECIMEN)


@lru_cache(maxsize=1000)
def list_properties(unit: str) -> frozenset[str]:
    """Return the properties whose results have a unit, such as "mg/dL"; UCUM too.

    Empty if the unit is not known, or if there is none.
    """
    plain = re.sub(r"\{[^}\d]*\}", "", unit)  # of UCUM, as is "m[IU]/L"
    plain = re.sub(r"[\[\]{}]", "", plain).replace("_", " ").strip()
    if plain == GRAM_OR_GIGA:
        return frozenset({"mass/volume", "number/volume"})
    if plain.lower() in OF_TEXT:
        return frozenset({OF_TEXT[plain.lower()]})
    read = read_unit(plain)
    if read is None:
        return frozenset()
    known = {*PROPERTY.values()}
    return frozenset(
        p for p in OF_DIMENSION.get(read.dimension, (read.dimension,)) if p in known
    )


def list_fitting(specimen: str) -> frozenset[str]:
    """Return the specimens of tests that fit that of a row; empty = all do."""
    given = " ".join(fold_letters(specimen).replace(".", " ").split())
    if given in WHOLE:
        return frozenset({"blood"})
    return frozenset().union(
        *(FITS.get(each, {each}) for each in read_specimens(specimen))
    )


class Tests:
    """The tests of a knowledge base, by the preferred names of its concepts."""

    def __init__(self, kb: "KnowledgeBase") -> None:
        self.kb = kb
        self.excluded: dict[Any, tuple[str, ...]] = {}

    @cached_property
    def tests(self) -> list[tuple[str, Test]]:
        names = self.kb.store.preferred_names(NAMES_AT_ONCE)
        read = ((cui, read_test(name)) for cui, name in names if MAY_BE_TEST(name))
        return [(cui, test) for cui, test in read if test.property]

    def list_excluded(self, unit: str, specimen: str) -> tuple[str, ...]:
        """Return the ids of tests with another property or specimen than a row has.

        A test whose name does not say it is not excluded.
        """
        key = properties, fitting = list_properties(unit), list_fitting(specimen)
        if not any(key):
            return ()
        if key not in self.excluded:
            self.excluded[key] = tuple(
                cui
                for cui, test in self.tests
                if (properties and test.property not in properties)
                or (fitting and test.specimens and fitting.isdisjoint(test.specimens))
            )
        return self.excluded[key]
