"""A made-up vocabulary of about 1,000 names in four languages; no real one has them.

It has what makes linking hard: numerals, opposites, sides, single letters, ambiguous
abbreviations, accents, compounds, words that two languages share, and families in which
one concept is missing (`LACKING`).
"""

import random
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from spacy_sapbert.kb.learned_order.noise import disturb_names
from spacy_sapbert.linking.text import roman
from spacy_sapbert.vocabularies.concepts import Concept

LANGUAGES = ("ENG", "SPA", "GER", "FRE")
ODD = ["dolor", "Herz", "ward round", "xyzzy", "(ear pains).", "CLI", "ALI", "?", ""]


class Term(NamedTuple):
    """A word in four languages; of an organ, as it follows or precedes a condition."""

    english: str
    spanish: str
    german: str
    french: str


ORGANS = [
    Term("heart", "del corazón", "Herz", "du cœur"),
    Term("lung", "del pulmón", "Lungen", "du poumon"),
    Term("liver", "del hígado", "Leber", "du foie"),
    Term("kidney", "del riñón", "Nieren", "du rein"),
    Term("stomach", "del estómago", "Magen", "de l'estomac"),
    Term("brain", "del cerebro", "Hirn", "du cerveau"),
    Term("skin", "de la piel", "Haut", "de la peau"),
    Term("bone", "del hueso", "Knochen", "de l'os"),
    Term("eye", "del ojo", "Augen", "de l'œil"),
    Term("ear", "del oído", "Ohren", "de l'oreille"),
    Term("thyroid", "del tiroides", "Schilddrüsen", "de la thyroïde"),
    Term("bladder", "de la vejiga", "Blasen", "de la vessie"),
    Term("spleen", "del bazo", "Milz", "de la rate"),
    Term("pancreas", "del páncreas", "Pankreas", "du pancréas"),
    Term("throat", "de la garganta", "Hals", "de la gorge"),
]
CONDITIONS = {
    Term("inflammation", "inflamación", "entzündung", "inflammation"): "T047",
    Term("tumor", "tumor", "tumor", "tumeur"): "T191",
    Term("cancer", "cáncer", "krebs", "cancer"): "T191",
    Term("injury", "lesión", "verletzung", "lésion"): "T037",
    Term("pain", "dolor", "schmerz", "douleur"): "T184",
    Term("removal", "extirpación", "entfernung", "ablation"): "T061",
}
COURSES = [
    Term("acute", "aguda", "akute", "aiguë"),
    Term("chronic", "crónica", "chronische", "chronique"),
]
SIDES = [
    Term("left", "izquierdo", "linke", "gauche"),
    Term("right", "derecho", "rechte", "droit"),
]
PAIRED = ("lung", "kidney", "eye", "ear")
ANALYTES = (
    *("zinc", "cupr", "ferr", "lith", "bor", "selen", "cobalt", "nickel", "mangan"),
    *("iod", "fluor", "brom"),
)
DRUGS = ("velmoride", "tolanine", "adaxone", "brisomab", "corvilol", "denapril")
DOSES = (5, 10, 20, 50)
TYPES = 30  # of the Velmor syndrome
MISSING_TYPE = 23
LETTERS = "ABDE"  # of the Tolan fever

# Mention → the beginning of the ids of its family, none of which it means
LACKING = {
    f"Velmor syndrome type {roman(MISSING_TYPE).upper()}": "VEL",
    f"Velmor syndrome, type {MISSING_TYPE}": "VEL",
    "Tolan fever C": "TOL",
    "tolan fever type c": "TOL",
    "chronic bladder inflammation": "INF-bladder-acute",
    "inflammation of the bladder, chronic": "INF-bladder-acute",
    "right ear pain": "SIDE-ear",
    "pains in the right ear": "SIDE-ear",
    "hypozincemia": "LAB-zinc",
    "hypozincaemia": "LAB-zinc",
    "tolanine 15 mg tablet": "DRUG-tolanine-",
    "nonmalignant Adair tumor": "ADA",
}


class Drafts:
    """Collects names of concepts with their languages and sources.

    Names in other languages, and concepts without a name, are left out.
    """

    def __init__(self, languages: Sequence[str]) -> None:
        self.concepts: dict[str, Concept] = {}
        self.languages = languages

    def add(
        self,
        cui: str,
        names: Mapping[str, Sequence[str]],
        kind: str = "T047",
        *,
        source: str = "ATLAS",
    ) -> None:
        """Add names by language; those in other languages are of the source GLOBE."""
        for language in [each for each in names if each in self.languages]:
            concept = self.concepts.setdefault(cui, Concept(cui, [], types=[kind]))
            for name in names[language]:
                if name not in concept.aliases:
                    concept.aliases.append(name)
                place = concept.aliases.index(name)
                own = source if language == "ENG" else "GLOBE"
                for places, value in (
                    (concept.languages, language),
                    (concept.sources, own),
                ):
                    if place not in places.setdefault(value, []):
                        places[value].append(place)


def translate(*names: str) -> dict[str, list[str]]:
    """Return one name for each language."""
    return {lang: [name] for lang, name in zip(LANGUAGES, names, strict=True)}


def add_conditions(drafts: Drafts) -> None:
    """Add conditions of organs, acute and chronic ones, and those of one side."""
    for organ in ORGANS:
        for condition, kind in CONDITIONS.items():
            code = f"{condition.english[:3].upper()}-{organ.english}"
            names = translate(
                f"{organ.english} {condition.english}",
                f"{condition.spanish} {organ.spanish}",
                f"{organ.german}{condition.german}",
                f"{condition.french} {organ.french}",
            )
            names["ENG"].append(f"{condition.english} of the {organ.english}")
            drafts.add(code, names, kind)
            if condition.english == "inflammation":
                add_courses(drafts, code, organ, condition)
            if condition.english == "pain" and organ.english in PAIRED:
                add_sides(drafts, organ)


def add_courses(drafts: Drafts, code: str, organ: Term, condition: Term) -> None:
    for course in COURSES:
        if (course.english, organ.english) == ("chronic", "bladder"):
            continue
        names = translate(
            f"{course.english} {organ.english} {condition.english}",
            f"{condition.spanish} {course.spanish} {organ.spanish}",
            f"{course.german} {organ.german}{condition.german}",
            f"{condition.french} {course.french} {organ.french}",
        )
        initials = "".join(t.english[0] for t in (course, organ, condition)).upper()
        # Those of the lung and the liver are the same.
        names["ENG"].append(initials)
        drafts.add(f"{code}-{course.english}", names)


def add_sides(drafts: Drafts, organ: Term) -> None:
    for side in SIDES:
        if (side.english, organ.english) == ("right", "ear"):
            continue
        names = {
            "ENG": [
                f"{side.english} {organ.english} pain",
                f"pain in the {side.english} {organ.english}",
            ],
            "SPA": [f"dolor {organ.spanish} {side.spanish}"],
        }
        drafts.add(f"SIDE-{organ.english}-{side.english}", names, "T184")


def add_families(drafts: Drafts) -> None:
    """Add families whose concepts differ in a numeral, a letter or an opposite."""
    for number in range(1, TYPES + 1):
        if number != MISSING_TYPE:
            numeral = roman(number).upper()
            names = translate(
                f"Velmor syndrome type {numeral}",
                f"síndrome de Velmor tipo {numeral}",
                f"Velmor-Syndrom Typ {numeral}",
                f"syndrome de Velmor de type {numeral}",
            )
            drafts.add(f"VEL{number:02}", names)
    for letter in LETTERS:
        names = translate(
            f"Tolan fever {letter}",
            f"fiebre de Tolan {letter}",
            f"Tolan-Fieber {letter}",
            f"fièvre de Tolan {letter}",
        )
        names["ENG"].append(f"Tolan fever type {letter}")
        drafts.add(f"TOL{letter}", names)
    for analyte in ANALYTES:
        for degree in ("hyper", "hypo"):
            if (analyte, degree) == ("zinc", "hypo"):
                continue
            names = translate(
                f"{degree}{analyte}emia",
                f"{'hiper' if degree == 'hyper' else 'hipo'}{analyte}emia",
                f"{degree.capitalize()}{analyte}ämie",
                f"{degree}{analyte}émie",
            )
            drafts.add(f"LAB-{analyte}-{degree}", names, "T033")
    for drug in DRUGS:
        drafts.add(f"DRUG-{drug}", {"ENG": [drug]}, "T121", source="PHARM")
        for dose in DOSES:
            names = {
                "ENG": [f"{drug} {dose} mg tablet", f"{drug} {dose} MG Oral Tablet"]
            }
            drafts.add(f"DRUG-{drug}-{dose}", names, "T200", source="PHARM")
    drafts.add("ADA1", {"ENG": ["malignant Adair tumor"]}, "T191")


def add_others(drafts: Drafts) -> None:
    """Add names with accents, of two languages, and of no English concept."""
    drafts.add("EPO1", {"ENG": ["Müller-Sorén disease", "Müller disease"]})
    drafts.add("EPO2", {"ENG": ["Núñez' sign", "sign of Núñez"]}, "T184")
    drafts.add("EPO3", {"ENG": ["Braddock's palsy"], "GER": ["Braddock-Lähmung"]})
    drafts.add("TWO1", {"ENG": ["Velmoritis"], "GER": ["Velmoritis"]})
    drafts.add("GRE1", {"ENG": ["β-velmorase deficiency"]})
    # What has no English name is not in a knowledge base of English names.
    drafts.add("GER1", {"GER": ["Zahnkaries", "Karies der Zähne"]})
    drafts.add("GER2", {"GER": ["Wetterfühligkeit"]}, "T184")
    drafts.add("FRE1", {"FRE": ["crise de foie", "jambes lourdes"]}, "T184")
    # Written as names of English concepts, with which they share rows.
    drafts.add("FRE2", {"FRE": ["thyroid pain", "bladder tumor", "bone removal"]})
    drafts.add("SPA1", {"SPA": ["empacho", "susto de niño"]}, "T184")


def make_concepts(languages: Sequence[str] = LANGUAGES) -> list[Concept]:
    """Return the concepts with their names in some languages."""
    drafts = Drafts(languages)
    for add in (add_conditions, add_families, add_others):
        add(drafts)
    return [*drafts.concepts.values()]


def list_mentions(seed: int, noisy: int, parts: int, exact: int) -> list[str]:
    """Return so many disturbed names, parts of names and names, and some others."""
    chance = random.Random(seed)
    names = [concept.aliases[0] for concept in make_concepts(["ENG"])]
    disturbed = [text for _, text in disturb_names(chance.sample(names, noisy), chance)]
    some = [name.split()[0] for name in chance.sample(names, parts)]
    return [
        *dict.fromkeys(
            [*chance.sample(names, exact), *disturbed, *some, *LACKING, *ODD]
        )
    ]
