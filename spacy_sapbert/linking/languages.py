"""The languages of names that fit the language of a document."""

from collections.abc import Iterable

ENGLISH = {"eng", "en"}
# Language of a pipeline → the same in UMLS. UMLS writes bibliographic codes of
# ISO 639-2, and its own for Croatian.
CODES: dict[str, str] = {
    "ar": "ara",
    "cs": "cze",
    "da": "dan",
    "de": "ger",
    "el": "gre",
    "es": "spa",
    "et": "est",
    "eu": "baq",
    "fi": "fin",
    "fr": "fre",
    "he": "heb",
    "hr": "scr",
    "hu": "hun",
    "it": "ita",
    "ja": "jpn",
    "ko": "kor",
    "lv": "lav",
    "nb": "nor",
    "nl": "dut",
    "pl": "pol",
    "pt": "por",
    "ru": "rus",
    "sv": "swe",
    "tr": "tur",
    "uk": "ukr",
    "zh": "chi",
}


def choose_languages(lang: str, known: Iterable[str]) -> tuple[str, ...]:
    """Return the languages whose names a mention in a document may have.

    They are the language of the document and English, in which vocabularies have most
    of their names.

    Args:
        lang: Language of the document as spaCy writes it, e.g. "es"; "xx" or "" =
            unknown.
        known: Languages of the names, e.g. "SPA".

    Returns:
        Those of `known`, sorted; empty if there is nothing to leave out, or if nothing
        would be left.
    """
    known = {*known}
    if lang in ("", "xx"):
        return ()
    fitting = ENGLISH | {lang.lower(), CODES.get(lang.lower(), lang.lower())}
    chosen = {language for language in known if language.lower() in fitting}
    return () if chosen == known else tuple(sorted(chosen))
