"""Words that exclude each other: who reads one of them does not accept the other.

Each group has a reason to be here: its members name different sides, degrees, causes or
amounts, and vocabularies have concepts of their own for them. Pairs of words that are
names of one concept more often than of two in open vocabularies were left out, such as
"decreased" and "low", "tetra" and "quadri", or "granulo" and "myelo";
`tests/linking/test_opposites.py` counts them.
"""

from collections.abc import Iterable
from functools import lru_cache

from .text import WORDS_KEPT, fold_english

# Groups of whole words. Within a group, each excludes each other.
WORDS = (
    # place
    "left right",
    "upper lower",
    "superior inferior",
    "anterior posterior",
    "ventral dorsal",
    "medial lateral",
    "proximal distal",
    "internal external",
    "inner outer",
    "cranial caudal",
    "central peripheral",
    "superficial deep",
    "ascending descending",
    "maxillary mandibular",
    "maxilla mandible",
    "supine prone",
    "palmar plantar",
    "unilateral bilateral",
    "dextro levo",
    # degree and amount
    "high low",
    "increased decreased",
    "increase decrease",
    "elevated decreased",
    "elevated reduced",
    "elevated low",
    "raised lowered",
    "increased reduced",
    "high reduced",
    "excess deficiency",
    "excessive deficient",
    "gain loss",
    "large small",
    "big small",
    "long short",
    "major minor",
    "mild moderate severe",
    "maximum minimum",
    "more less",
    "wide narrow",
    "thick thin",
    "strong weak",
    "many few",
    "fast slow",
    "rapid slow",
    "heavy light",
    "hot cold",
    "wet dry",
    "hard soft",
    "hyperactive underactive",
    "overactive underactive",
    "overweight underweight",
    "single multiple",
    # course and time
    "acute chronic",
    "early late",
    "juvenile adult",
    "infantile adult",
    "congenital acquired",
    "primary secondary tertiary quaternary",
    "stable unstable",
    "temporary permanent",
    "transient persistent",
    "antenatal postnatal",
    "before after",
    "begin end",
    "opening closing",
    "new old",
    "young old",
    # kind
    "benign malignant",
    "positive negative",
    "male female",
    "boy girl",
    "man woman",
    "maternal paternal",
    "mother father",
    "dominant recessive",
    "active inactive",
    "active passive",
    "open closed",
    "systolic diastolic",
    "systole diastole",
    "arterial venous",
    "artery vein",
    "motor sensory",
    "afferent efferent",
    "flexor extensor",
    "flexion extension",
    "abductor adductor",
    "abduction adduction",
    "pronation supination",
    "inspiratory expiratory",
    "inspiration expiration",
    "inhalation exhalation",
    "agonist antagonist",
    "inhibitor activator",
    "inhibition activation",
    "donor recipient",
    "sensitive resistant",
    "natural artificial",
    "living dead",
    "alive dead",
    "true false",
    "presence absence",
    "present absent",
    "full empty",
    "clear cloudy",
    "visible invisible",
    "relaxed tense",
    "symmetric asymmetric",
    "with without",
    "yes no",
    "sympathetic parasympathetic",
    "sighted blind",
    "monozygotic dizygotic",
    "obstructive nonobstructive",
    "convex concave",
    "valgus varus",
    "valga vara",
    "lordosis kyphosis",
    "myopia hyperopia",
    "miosis mydriasis",
    "diarrhea constipation",
    "insomnia hypersomnia",
    "acidosis alkalosis",
    "acidotic alkalotic",
    "acidemia alkalemia",
    "mania depression",
)  # fmt: skip
# Beginnings of words: one of a group excludes the same word with another of it.
BEGINNINGS = (
    "hyper hypo normo",
    "macro micro normo",
    "tachy brady",
    "endo exo ecto",
    "intra extra inter",
    "pre post",
    "ante post",
    "supra infra sub",
    "super sub",
    "poly oligo mono",
    "mono di tri tetra penta hexa",
    "uni bi tri",
    "hemi para tetra mono",
    "hemi para quadri mono",
    "homo hetero",
    "iso aniso",
    "iso hetero",
    "eu dys",
    "over under",
    "ab ad",
    "em im",
    "ex in",
    "ex im",
    "leuko erythro thrombo lympho",
    "neutro eosino baso",
    "lipo glyco",
    # not opposites, but other parts of the body
    "adeno angio arthro cardio chole chondro cysto dermato encephalo entero "
    "gastro hepato laryngo myelo myo nephro neuro osteo oto pharyngo phlebo pneumo "
    "procto pyelo rhino spleno spondylo thyro tracheo urethro",
    "anti pro",
    "maxi mini",
    "dextro levo",
    "ortho meta para",
    "cis trans",
    "auto allo xeno",
    "alpha beta gamma delta",
)  # fmt: skip
# Beginnings that negate the word that follows.
NEGATIONS = ("non", "anti", "un", "in", "im", "ir", "il", "an", "dis", "de", "dys")
# Endings of words, in the same way.
ENDINGS = (
    "penia cytose philia",  # folded: "cytosis"
    "ectomy ostomy otomy plasty scopy",
    "genic lytic",
)
NEGATING_WORDS = frozenset(("no", "not", "non", "without", "never"))
SHORTEST_STEM = 3  # letters that two opposites share


def list_others(groups: Iterable[Iterable[str]]) -> dict[str, frozenset[str]]:
    """Return the other members of the groups of each member."""
    others: dict[str, set[str]] = {}
    for group in groups:
        members = {*group}
        for member in members:
            others.setdefault(member, set()).update(members - {member})
    return {member: frozenset(some) for member, some in others.items()}


OF_WORDS = list_others(map(fold_english, group.split()) for group in WORDS)
OF_BEGINNINGS = list_others(group.split() for group in BEGINNINGS)
OF_ENDINGS = list_others(group.split() for group in ENDINGS)


@lru_cache(maxsize=WORDS_KEPT)
def list_opposites(word: str) -> frozenset[str]:
    """Return the words that exclude a folded word; most of them do not exist.

    Where a single letter makes the difference ("typical", "atypical"), it may have been
    left out or added by mistake: see `list_doubtful_opposites`.
    """
    found = {*OF_WORDS.get(word, ())}
    for part, others in OF_BEGINNINGS.items():
        stem = word.removeprefix(part)
        if stem != word and len(stem) >= SHORTEST_STEM:
            found |= {other + stem for other in others}
    for part, others in OF_ENDINGS.items():
        stem = word.removesuffix(part)
        if stem != word and len(stem) >= SHORTEST_STEM:
            found |= {stem + other for other in others}
    for part in NEGATIONS:
        stem = word.removeprefix(part)
        if stem != word and len(stem) > SHORTEST_STEM:
            found.add(stem)
        if len(word) > SHORTEST_STEM:
            found.add(part + word)
    return frozenset(found - {word})


def list_doubtful_opposites(word: str) -> tuple[str, ...]:
    """Return opposites that count only if the word is no misspelled other word."""
    stem = word.removeprefix("a")
    longer = (f"a{word}",) if len(word) > SHORTEST_STEM else ()
    return longer if stem == word or len(stem) <= SHORTEST_STEM else (stem, *longer)
