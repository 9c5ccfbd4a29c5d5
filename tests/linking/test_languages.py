import pytest

from spacy_sapbert.linking.languages import choose_languages, language_code


@pytest.mark.parametrize(
    ("lang", "known", "expected"),
    [
        ("en", ["ENG", "SPA", "FRE"], ("ENG",)),
        ("es", ["ENG", "SPA", "FRE"], ("ENG", "SPA")),
        ("es", ["en", "es", "fr"], ("en", "es")),
        ("is", ["ENG", "SPA"], ("ENG",)),
        ("xx", ["ENG", "SPA"], ()),
        ("", ["ENG", "SPA"], ()),
        ("en", ["ENG"], ()),
        ("es", ["ENG", "SPA"], ()),
        ("en", ["SPA"], ()),  # nothing would be left
        ("en", [], ()),
    ],
)
def test_choose_languages(lang: str, known: list[str], expected: tuple[str]) -> None:
    assert choose_languages(lang, known) == expected


@pytest.mark.parametrize(
    ("language", "code"),
    [
        ("en", "ENG"),
        ("en-US", "ENG"),
        ("de_DE", "GER"),
        ("ENG", "ENG"),
        (" es ", "SPA"),
        ("deu", "GER"),
        ("Spanish", "SPA"),
        ("fra", "FRE"),
        ("swe", "SWE"),
        ("xx", "XX"),
        ("", ""),
    ],
)
def test_language_code_is_that_of_umls(language: str, code: str) -> None:
    assert language_code(language) == code
