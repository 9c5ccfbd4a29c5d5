"""The languages of names that fit the language of a document."""

from collections.abc import Collection, Iterable
from functools import lru_cache

ENGLISH = {"eng", "en"}
UNKNOWN = ("", "xx")  # languages of a pipeline
# Language of a pipeline → the same in UMLS. UMLS writes bibliographic codes of
# ISO 639-2, and its own for Croatian.
CODES_OF_UMLS = (
    "ar:ara cs:cze da:dan de:ger el:gre es:spa et:est eu:baq fi:fin fr:fre he:heb "
    "hr:scr hu:hun it:ita ja:jpn ko:kor lv:lav nb:nor nl:dut pl:pol pt:por ru:rus "
    "sv:swe tr:tur uk:ukr zh:chi"
)
CODES: dict[str, str] = dict(pair.split(":") for pair in CODES_OF_UMLS.split())
# Other codes of the same languages (ISO 639-2/T and -3), and their names in English
OTHER_CODES = (
    "ces:cze deu:ger ell:gre eus:baq fra:fre hrv:scr zho:chi nld:dut nob:nor no:nor "
    "nn:nor nno:nor ron:rum ro:rum slk:slo sk:slo "
    "english:eng arabic:ara basque:baq chinese:chi croatian:scr czech:cze danish:dan "
    "dutch:dut estonian:est finnish:fin french:fre german:ger greek:gre hebrew:heb "
    "hungarian:hun italian:ita japanese:jpn korean:kor latvian:lav norwegian:nor "
    "polish:pol portuguese:por russian:rus spanish:spa swedish:swe turkish:tur "
    "ukrainian:ukr"
)
UMLS_CODES = (
    CODES | {"en": "eng"} | dict(pair.split(":") for pair in OTHER_CODES.split())
)


@lru_cache(maxsize=1000)
def language_code(language: str) -> str:
    """Return a language as UMLS writes it: "en", "en-US" and "English" → "ENG"."""
    primary = language.strip().replace("_", "-").partition("-")[0].lower()
    return UMLS_CODES.get(primary, primary).upper()


def choose_languages(lang: str, known: Iterable[str]) -> tuple[str, ...]:
    """Return the languages of names that a mention in a document may have, sorted.

    They are `lang` and English, in which vocabularies have most of their names. Empty
    if there is nothing to leave out, if nothing would be left, or if `lang` (as spaCy
    writes it) is unknown: "xx" or "".
    """
    known = {*known}
    if lang in UNKNOWN:
        return ()
    fitting = ENGLISH | codes_of(lang)
    chosen = {language for language in known if language.lower() in fitting}
    return () if chosen == known else tuple(sorted(chosen))


def lacks_language(lang: str, known: Collection[str]) -> bool:
    """Return whether names have languages, and none has that of a document."""
    codes = ENGLISH if lang.lower() in ENGLISH else codes_of(lang)
    names = {language.lower() for language in known}
    return bool(known) and lang not in UNKNOWN and codes.isdisjoint(names)


def codes_of(lang: str) -> set[str]:
    return {lang.lower(), CODES.get(lang.lower(), lang.lower())}
