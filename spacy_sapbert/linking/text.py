"""How names, mentions and texts are cleaned and split into folded words.

A text is split into pieces (words, numbers, and signs that tell things apart), and each
piece is folded: without case, accents, possessive and plural, in American spelling,
with numerals as digits and Greek letters by name. `difference` compares folded texts.

Rules of a language touch only names of that language; see `rules_of`.
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from hashlib import blake2b
from html import unescape
from typing import Literal, NamedTuple
from unicodedata import normalize

import regex

Rules = Literal["english", "german", "romance", "other"]

WORDS_KEPT = 10_000  # folded words, up to 1.4 KB each
SHORTEST_PLURAL = 4  # letters
SHORTEST_BRITISH = 5  # letters; "hem" is not "haem"
MOST_NUMERAL = 39  # of those in Roman digits
MAX_ABBREVIATION, LONGEST_ACRONYM = 4, 6  # letters
CHARACTERS_A_WORD = 3  # of a script without blanks

# The signs of typesetters and word processors, as they are typed.
DASHES = "\u2010-\u2015\u2212\ufe58\ufe63\uff0d"
NON = "non"
# Before a word, they may be a part of it: "pre eclampsia" is "preeclampsia".
PREFIXES = (
    "pre|post|anti|peri|intra|extra|sub|supra|inter|hyper|hypo|poly|multi|micro|macro|"
    "pseudo|semi|retro|ultra|neo|endo|trans|para|hemi"
)
QUOTES = "\u2018\u2019\u201a\u201b\u02bc\u0060\u00b4\u2032"
PRIMES = f"'\"{QUOTES}\u2033"
INVISIBLE = "\u00ad\u200b-\u200f\u2060\ufeff"
TYPED = {
    **dict.fromkeys([*map(chr, range(0x2010, 0x2016)), *"\u2212\ufe58\ufe63"], "-"),
    **dict.fromkeys(QUOTES, "'"),
    **dict.fromkeys("\u201c\u201d\u201e\u201f\u00ab\u00bb\u2033", '"'),
    **dict.fromkeys(["\u00ad", *map(chr, range(0x200B, 0x2010)), "\u2060\ufeff"], ""),
}
TYPING = str.maketrans({key: value for keys, value in TYPED.items() for key in keys})
LATIN = str.maketrans({"ø": "o", "ł": "l", "đ": "d", "æ": "ae", "œ": "oe", "ı": "i"})
ACCENTS = regex.compile("[\u0300-\u036f]+")
# Scripts whose words have no blanks between: Thai, Lao, Myanmar, Khmer, kana, Chinese
UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
)
UNSPACED_CHARACTER = regex.compile(f"[{UNSPACED}]")
CARDINALS = (
    "one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen twenty"
)
ORDINALS = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth "
    "thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth "
    "twentieth"
)
NUMBER_WORDS, ORDINAL_WORDS = CARDINALS.split(), ORDINALS.split()
TENS = {"twenty": 20, "thirty": 30}
NUMBERS = {
    **{word: number for number, word in enumerate(NUMBER_WORDS, 1)},
    **{word: number for number, word in enumerate(ORDINAL_WORDS, 1)},
    **{"thirty": 30, "thirtieth": 30},
    **{
        f"{ten} {word}": start + number
        for ten, start in TENS.items()
        for words in (NUMBER_WORDS[:9], ORDINAL_WORDS[:9])
        for number, word in enumerate(words, 1)
    },
}
COMPOUND = r"(?:twenty|thirty)[- ](?:{})(?!\p{{L}})".format(
    "|".join([*NUMBER_WORDS[:9], *ORDINAL_WORDS[:9]])
)
# "HER2+" and "HER2-", but neither "T- and B-cell" nor "pre- natal"; "(+)-catechin";
# "-2.5" behind a blank
SIGN = (
    r"(?<=\w)\+(?!\w)|(?<=\()[-+\u2212](?=\)-)|(?<![^\s(])[-+\u2212]"
    r"(?=\d+(?:\.\d|\s?(?:%|\u00b0|deg|diopt|mm\b|d\b)))"
    r"|(?:(?<=excess )|(?<=temperature )|(?<=score )|(?<=charge ))[-+\u2212](?=\d)"
    r"|(?:(?<=(?-i:[A-Z0-9]))|(?<=(?-i:Rh))|(?<=(?-i:Ag)))[-\u2212]"
    r"(?=$|[)\].;:,/]|[^\S\n]+(?!(?:and|or|und|oder|y|et)\b))"
)
# "<2500", ">= 5", "2 %"
COMPARATOR = r"[<>=\u2264\u2265]=?(?=\s?\.?\d)|(?<=\d)\s?%"
SIGNS = {
    **{"+": "positive", "-": "negative", "\u2212": "negative"},
    **{"<=": "\u2264", ">=": "\u2265", "==": "=", "percent": "%", "per cent": "%"},
    **{sign: sign for sign in "<>=\u2264\u2265%"},
}
# "5,000", "0.05", "11.2"; "2,4" are two numbers
NUMBER = r"\d{1,3}(?:,\d{3})+(?![,\d])|\d+(?:\.\d+)*|(?<![\w.])\.\d+"
WORD_SIGNS = rf"\p{{L}}\p{{M}}{INVISIBLE}"


def compile_pieces(prefix: str, joint: str) -> regex.Pattern[str]:
    """Return what matches a number, a number as words, Greek letters, or a word.

    Invisible signs do not end a word, a possessive belongs to it, `prefix` is what may
    stand before it, and `joint` what else within it. A prime belongs to its number or
    letter.
    """
    other_script = rf"\p{{Greek}}--[{UNSPACED}\u00b5]"
    number = NUMBER.replace(r"\d", r"\p{N}").replace(r"\w", r"\p{L}\p{N}")
    prime = rf"[{PRIMES}]{{1,3}}(?=[-,{DASHES}]|\p{{L}}\p{{M}}*\p{{L}}|\s(?:utr|end)\b)"
    return regex.compile(
        rf"(?V1)(?:{number})(?:(?:st|nd|rd|th)(?!\p{{L}})|{prime})?"
        rf"|(?<!\p{{L}}){COMPOUND}"
        rf"|[{UNSPACED}]\p{{M}}*"
        r"|[\p{Greek}\u00b5][\p{Greek}\p{M}]*"
        rf"|(?<!\p{{L}})\p{{L}}\p{{M}}*[{PRIMES}](?=-|\s\p{{L}})"
        rf"|{prefix}[\p{{L}}--{other_script}]"
        rf"(?:[{WORD_SIGNS}--{other_script}]{joint})*(?:['{QUOTES}]s(?!\p{{L}}))?"
        rf"|{SIGN}|{COMPARATOR}",
        regex.IGNORECASE,
    )


def compile_ascii(prefix: str, joint: str) -> re.Pattern[str]:
    """Return what matches the same in a text of ASCII, in a fifth of the time."""
    compound = COMPOUND.replace(r"\p{L}", "[a-z]")
    number = NUMBER.replace(r"[\w.]", "[a-z0-9.]")
    prime = r"""['"`]{1,3}(?=[-,]|[a-z]{2}|\s(?:utr|end)\b)"""
    return re.compile(
        rf"(?:{number})(?:(?:st|nd|rd|th)(?![a-z])|{prime})?|(?<![a-z]){compound}"
        r"|(?<![a-z])[a-z]['\"`](?=-|\s[a-z])"
        rf"|{prefix}[a-z](?:[a-z]{joint})*(?:['`]s(?![a-z]))?|{SIGN}|{COMPARATOR}",
        re.IGNORECASE | re.ASCII,  # else "\x1f" is a blank, which it is not above
    )


# Without and with parts of a word that a hyphen joins: "sacro-iliitis" is one word, and
# so are "hyper-\ntension", "pre eclampsia" and the first letters of "Hb A1c".
BREAK = r"(?:[ \t]*\n[ \t]*)?"
APART = r"(?:(?<![^\W\d_])(?:(?:{})[ \t]+(?={}{{4}})|{}{{2}}[ ](?={}\d)))?"
PIECES = (
    compile_pieces("", ""),
    compile_pieces(
        APART.format(PREFIXES, *[r"\p{L}"] * 3),
        rf"|[-{DASHES}]{BREAK}(?=\p{{L}}{{2}})"
        rf"|(?<=(?<!\p{{L}})\p{{L}})[-{DASHES}](?=\p{{L}})",
    ),
)
ASCII_PIECES = (
    compile_ascii("", ""),
    compile_ascii(
        APART.format(PREFIXES, *["[a-z]"] * 3),
        f"|-{BREAK}(?=[a-z]{{2}})|(?<=(?<![a-z])[a-z])-(?=[a-z])",
    ),
)
# What may be a piece in ASCII that is not letters alone
NOT_PLAIN = re.compile(
    r"[^a-zA-Z ,()/;:.\[\]-]|(?<![a-zA-Z])-|-(?![a-zA-Z])|(?i:twenty|thirty)[- ]"
)
PLAIN_WORD = re.compile("[a-zA-Z]+")
JOINT = regex.compile(rf"\s*[-{DASHES}]?\s*")  # between a prefix and a word
# What shows that a word goes on behind a place, or came before it: a character of a
# word, an apostrophe and one, a hyphen and a digit ("COVID-19", but not "5-HT")
HIDDEN, WORD_SIGN = rf"[{INVISIBLE}]*", r"[\p{L}\p{N}\p{M}]"
WORD_GOES_ON = regex.compile(
    rf"(?!['{QUOTES}]s(?!{WORD_SIGN})){HIDDEN}"
    rf"(?:['{QUOTES}]?{HIDDEN}{WORD_SIGN}|[-{DASHES}]{HIDDEN}\p{{N}})"
)
WORD_CAME = regex.compile(
    rf"(?<={WORD_SIGN}{HIDDEN}(?:['{QUOTES}]{HIDDEN})?)"
    rf"|(?<={WORD_SIGN}{HIDDEN}[-{DASHES}]{HIDDEN})(?=\p{{N}})"
)
LIST_NUMBER = regex.compile(r"(?m)(?<=^[ \t]*\d{1,2})")
PREPOSITIONS = "to from by of in on at with without after before due following not no"
LINKING_WORDS = frozenset(PREPOSITIONS.split())
PRIME = regex.compile(rf"[{PRIMES}]")
NOT_IN_A_WORD = regex.compile(r"[-\s]+")
POSSESSIVE = regex.compile(rf"['{QUOTES}]s$", regex.IGNORECASE)
LETTERS = (
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu ksi omicron "
    "pi rho sigma sigma tau upsilon phi chi psi omega"
)
GREEK = dict(zip("αβγδεζηθικλμνξοπρσςτυφχψω", LETTERS.split(), strict=True))
GREEK_NAMES = frozenset(GREEK.values())
# Semantic tags of SNOMED CT and of others that write them in the same way
TAG = regex.compile(
    r"\s*\((?:disorder|finding|procedure|body structure|morphologic abnormality|"
    r"substance|product|medicinal product|clinical drug|organism|observable entity|"
    r"regime/therapy|situation|event|qualifier value|physical object|specimen|"
    r"cell structure|cell|person|occupation|social concept|assessment scale|"
    r"attribute|environment|ethnic group|record artifact|diagnosis|disease|"
    r"trastorno|hallazgo|procedimiento|estructura corporal)\)\s*$",
    regex.IGNORECASE,
)
# "&#39;", "&nbsp;": characters as HTML writes them
ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][\da-fA-F]{1,6}|[a-zA-Z][a-zA-Z\d]{1,30});")
BRACKETS = {"(": ")", "[": "]", "{": "}", '"': '"', "'": "'"}
OPENING_ENDS = " \t\r\n,;:.!?*•·|/_"
CLOSING_ENDS = " \t\r\n,;:.!?*|/_"

# British (or older) parts of words → American ones. Both sides are folded, so that it
# does no harm to replace a part where it should stay.
SPELLINGS = (
    ("ae", "e"), ("oe", "e"), ("leuc", "leuk"), ("sulph", "sulf"), ("fibre", "fiber"),
    ("centre", "center"), ("litre", "liter"), ("metre", "meter"), ("titre", "titer"),
    ("tumour", "tumor"), ("colour", "color"), ("behaviour", "behavior"),
    ("labour", "labor"), ("odour", "odor"), ("humour", "humor"), ("vapour", "vapor"),
    ("favour", "favor"), ("rigour", "rigor"), ("isation", "ization"), ("lys", "lyz"),
    ("aluminium", "aluminum"), ("grey", "gray"), ("mould", "mold"),
    ("defence", "defense"), ("ageing", "aging"), ("goitre", "goiter"),
    ("plough", "plow"), ("paralyse", "paralyze"),
    ("calibre", "caliber"), ("sabre", "saber"), ("theatre", "theater"),
)  # fmt: skip
AMERICAN = dict(SPELLINGS)
# Plurals of English and Latin that no ending shows
PLURALS = """
disk disc, manoeuvre maneuver, children child, teeth tooth, feet foot, men man, women
woman, mice mouse, lice louse, geese goose, people person, knives knife, lives life,
calves calf, halves half, leaves leaf, emboli embolus, calculi calculus, nevi nevus,
naevi nevus, thrombi thrombus, bronchi bronchus, fungi fungus, bacilli bacillus, cocci
coccus, foci focus, loci locus, nuclei nucleus, nucleoli nucleolus, radii radius,
stimuli stimulus, uteri uterus, humeri humerus, tori torus, sulci sulcus, gyri gyrus,
villi villus, alveoli alveolus, glomeruli glomerulus, ductuli ductulus, tophi tophus,
digiti digitus, rami ramus, fundi fundus, tali talus, mali malleus, meniscuses meniscus,
menisci meniscus, abaci abacus, annuli annulus, tubuli tubulus, ureteri ureter,
diverticula diverticulum, septa septum, bacteria bacterium, ganglia ganglion, criteria
criterion, phenomena phenomenon, ova ovum, sera serum, atria atrium, hila hilum, labia
labium, crania cranium, sterna sternum, ossicula ossiculum, acetabula acetabulum,
mediastina mediastinum, perinea perineum, ilea ileum, duodena duodenum, epithelia
epithelium, endothelia endothelium, myocardia myocardium, flagella flagellum, mycelia
mycelium, sporangia sporangium, symposia symposium, strata stratum, frenula frenulum,
vela velum, infundibula infundibulum, spermatozoa spermatozoon, protozoa protozoon,
foramina foramen, lumina lumen, stamina stamen, genera genus, viscera viscus, ulcera
ulcus, indices index, cortices cortex, cervices cervix, apices apex, appendices
appendix, matrices matrix, vertices vertex, varices varix, helices helix, calices calyx,
calyces calyx, fornices fornix, phalanges phalanx, larynges larynx, pharynges pharynx,
meninges meninx, irides iris, femora femur, corpora corpus, tempora tempus, genua genu,
cornua cornu, dentes dens, pontes pons, testes testis, penes penis, pubes pubis, axes
axis, pelves pelvis, epididymides epididymis, crises crisis, fistulae fistula
"""
SINGULAR = dict(pair.split() for pair in PLURALS.replace("\n", " ").split(","))
EPITHETS = frozenset(("pneumoniae", "tonsillae"))  # of organisms: no plurals
BRITISH = regex.compile("|".join(AMERICAN))
IZE = regex.compile("is(e|ed|es|ing|er)$")
ELIDED = regex.compile(
    rf"\b(?:[dlcjmnst]|qu|dell|all|nell|sull|dall)['{QUOTES}](?=\p{{L}})",
    regex.IGNORECASE,
)
# Language of names, as UMLS or spaCy writes it → the rules for its words
ROMANCE = "spa es fre fr fra por pt ita it cat ca glg gl rum ro ron"
RULES: dict[str, Rules] = {
    **dict.fromkeys(("eng", "en"), "english"),
    **dict.fromkeys(("ger", "de", "deu", "dut", "nl", "nld"), "german"),
    **dict.fromkeys(ROMANCE.split(), "romance"),
}
GERMAN_ENDINGS = ("ern", "en", "em", "er", "es", "e", "n", "s")
SHORTEST_STEM = 4  # letters


def roman(number: int) -> str:
    """Return a number up to `MOST_NUMERAL` in Roman digits, in lower case."""
    ones = ("", "i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix")
    return "x" * (number // 10) + ones[number % 10]


ROMAN = {roman(number): str(number) for number in range(1, MOST_NUMERAL + 1)}
# "IIb" is "2b". In lower case, "ia" and "via" may be words.
# "IB" and "ib" are so after "type", else abbreviations.
ROMAN_LETTER = regex.compile(
    r"(?P<roman>[IVX]{2,5}|[IVX](?=[a-e]))(?P<letter>[a-eA-E])"
)
SHORT_ROMAN_LETTER = regex.compile(r"([ivx])([a-e])", regex.IGNORECASE)
# Behind these words, or one with such an ending, a letter or "IV" is a numeral.
OF_KINDS = (
    "type subtype stage grade class group factor phase nerve disease syndrome disorder "
    "deficiency complex collagen angiotensin topoisomerase variant category level"
)
KINDS = frozenset(OF_KINDS.split())
KIND_ENDINGS = ("ose", "emia", "uria", "idosi")
# Of them, "X" is a numeral behind few: "chromosome X", "Bcl-X", "X-ray" are none.
OF_TENS = frozenset(("type", "factor", "nerve", "stage", "class", "group", "grade"))
NUMERALS_AT_END = frozenset(("I", "V", "IV"))
AT_END = regex.compile(r"\s*(?:[,;.)]|$)")
SHORTEST_NUMBERED = 5  # letters of a word before one of them
MAY_BE_ROMAN = frozenset("ivxIVX")  # the first letter
AMBIGUOUS = frozenset(("i", "v", "x", "iv", "xx", "xxx"))
LOWER_ROMAN_LETTER = regex.compile(
    r"(?!vi[ade]$)(?P<roman>[ivx]{2,5})(?P<letter>[a-e])"
)


def singular_abbreviation(short: str) -> str:
    """Remove the "s" of "RCCs", a plural in capitals, if two characters are left."""
    bare = short[:-1]
    return bare if short.endswith("s") and bare.isupper() and bare[1:] else short


def rules_of(languages: Iterable[str]) -> Rules:
    """Return the rules for names in some languages; English if it may be English."""
    found = {RULES.get(language.lower(), "other") for language in languages}
    if not found or "english" in found:
        return "english"
    return min(found)


def clean_text(text: str) -> str:
    """Return a text in compatible characters, with typed signs and single blanks.

    A word that a line breaks at a hyphen keeps the hyphen alone.
    """
    if "\n" in text:
        text = BROKEN.sub("-", text)
    if not text.isascii():
        text = normalize("NFKC", text.translate(TYPING))
        # A lone surrogate can be neither stored nor tokenised.
        text = text.encode("utf8", "replace").decode("utf8")
    return " ".join(text.split())


def read_entities(text: str) -> tuple[str, list[int] | None]:
    """Return a text without entities of HTML: "Crohn&#39;s" → "Crohn's".

    Also returns the place of each of its characters, and of its end, in the text that
    was given; None = nothing was replaced.
    """
    entities = [*ENTITY.finditer(text)] if "&" in text else []
    if not entities:
        return text, None
    read, done = "", 0
    places: list[int] = []
    for entity in entities:
        character = unescape(entity.group())
        if character != entity.group():
            read += text[done : entity.start()] + character
            places += range(done, entity.start())
            places += [entity.start()] * len(character)
            done = entity.end()
    places += range(done, len(text) + 1)
    return read + text[done:], places


def read_mention(mention: str) -> str:
    """Return what a mention says, without signs and brackets around it, or a tag.

    "(Heart attack)." → "Heart attack"; "Heart attack (disorder)" → "Heart attack".
    """
    mention, _ = read_entities(mention)
    text = clean_text(mention)
    while text:
        inner = TAG.sub("", text.lstrip(OPENING_ENDS).rstrip(CLOSING_ENDS))
        closing = BRACKETS.get(inner[:1])
        if closing and inner.endswith(closing) and closing not in inner[1:-1]:
            inner = inner[1:-1]
        if inner == text:
            return text
        text = inner
    return clean_text(mention)


def name_form(text: str) -> str:
    """Return the words of a text, folded by no rules of a language, with blanks."""
    return " ".join(piece.word for piece in split_pieces(text, "other"))


def fold_letters(text: str) -> str:
    """Return a clean text in lower case, without accents."""
    return fold_clean(clean_text(text))


def fold_clean(text: str) -> str:
    """Return what `clean_text` returned in lower case, without accents."""
    text = text.lower()
    if text.isascii():
        return text
    text = ACCENTS.sub("", normalize("NFKD", text)).translate(LATIN)
    return normalize("NFC", text)


class Piece(NamedTuple):
    """A folded word or number of a text, and its place in characters."""

    word: str
    start: int
    end: int


def split_text(
    text: str, rules: Rules, *, joined: bool = False
) -> tuple[list[str], list[int], list[int]]:
    """Split a text as `split_pieces`; return words, starts and ends."""
    elided = [m.span() for m in ELIDED.finditer(text)] if rules == "romance" else []
    words: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    for match in choose_pieces(text, joined=joined).finditer(text):
        start, end = match.span()
        if elided and any(first <= start < last for first, last in elided):
            continue
        piece = match.group()
        folded = fold_piece(piece, rules)
        if piece[0] in MAY_BE_ROMAN and len(folded[0]) < 4:
            folded = read_numeral(text, start, end, words) or folded
        if len(folded) > 1:  # a Roman numeral and a letter
            words += folded
            starts += (start, end - 1)
            ends += (end - 1, end)
            continue
        if not piece.isalpha() and (mark := POSSESSIVE.search(piece)):
            end = start + mark.start()
        words.append(folded[0])
        starts.append(start)
        ends.append(end)
    if rules == "english" and NON in words:
        join_non(text, words, starts, ends)
    return words, starts, ends


def choose_pieces(text: str, *, joined: bool) -> re.Pattern[str] | regex.Pattern[str]:
    """Return the fastest of the patterns that match the same in a text."""
    if not text.isascii():
        return PIECES[joined]
    if joined or NOT_PLAIN.search(text):
        return ASCII_PIECES[joined]
    return PLAIN_WORD  # in most names


def read_numeral(
    text: str, start: int, end: int, before: Sequence[str]
) -> tuple[str, ...]:
    """Return what "V" or "IB" is behind some words: a numeral and maybe a letter.

    "IV antibiotics", "Bcl-X" and "alpha V" have none. Empty = it is no numeral.
    """
    piece, last = text[start:end], before[-1] if before else ""
    if last not in KINDS and not last.endswith(KIND_ENDINGS):
        # "Xeroderma pigmentosum V", "Myopathy, myofibrillar, IV"
        is_last = AT_END.match(text, end) and text[start - 1 : start] == " "
        is_word = len(last) >= SHORTEST_NUMBERED and last.isalpha()
        if is_last and is_word and last not in GREEK_NAMES and piece in NUMERALS_AT_END:
            return (ROMAN[piece.lower()],)
        return ()
    if short := SHORT_ROMAN_LETTER.fullmatch(piece):
        is_kind = last in KINDS
        return (ROMAN[short[1].lower()], short[2].lower()) if is_kind else ()
    word = piece.lower()
    if word not in AMBIGUOUS or (word == "x" and last not in OF_TENS):
        return ()
    return (ROMAN[word],)


def join_non(text: str, words: list[str], starts: list[int], ends: list[int]) -> None:
    """Join "non" with the word after it: "non papillary" is "nonpapillary"."""
    for number in reversed(range(len(words) - 1)):
        start, end = starts[number + 1], ends[number + 1]
        word = text[start:end]
        is_word = len(word) > 1 and words[number + 1].isalpha() and word.isalpha()
        near = JOINT.fullmatch(text, ends[number], start)
        if words[number] == NON and is_word and near:
            words[number : number + 2] = fold_piece(NON + word, "english")
            del starts[number + 1], ends[number]


def split_pieces(text: str, rules: Rules, *, joined: bool = False) -> list[Piece]:
    """Split a text into folded words and numbers; other signs are left out.

    "type IIb" has the pieces "type", "2" and "b", as "type 2b" and "type 2 B". If
    `joined`, parts of a word with a hyphen between are one word.
    """
    return [*map(Piece, *split_text(text, rules, joined=joined))]


def list_words(text: str, rules: Rules) -> list[str]:
    """Return the folded words of a text, without the English article "a"."""
    words, starts, _ = split_text(text, rules)
    return drop_articles(text, words, starts) if rules == "english" else words


def drop_articles(text: str, words: list[str], starts: Sequence[int]) -> list[str]:
    """Return the words of an English text without the article "a"."""
    if "a" not in words[:-1]:
        return words
    last = len(words) - 1
    return [
        word
        for number, word in enumerate(words)
        if word != "a"
        or number == last
        or text[starts[number]] == "A"
        or text[max(0, starts[number] - 1) : starts[number]].strip()
    ]


@lru_cache(maxsize=WORDS_KEPT)
def fold_piece(piece: str, rules: Rules) -> tuple[str, ...]:
    """Return the folded words of a piece: one, or a numeral and a letter."""
    mixed = piece[:1] in "IVXivx" and (
        ROMAN_LETTER.fullmatch(piece) or LOWER_ROMAN_LETTER.fullmatch(piece)
    )
    if mixed and mixed["roman"].lower() in ROMAN:
        return ROMAN[mixed["roman"].lower()], mixed["letter"].lower()
    if piece in SIGNS:
        return (SIGNS[piece],)
    bare = singular_abbreviation(piece) if rules == "english" else piece
    if bare != piece and bare.lower() not in ROMAN:  # "UTIs", but no "IVs"
        piece = bare
    word = fold_letters(piece if piece.isalpha() else POSSESSIVE.sub("", piece))
    if rules == "english" and (value := NUMBERS.get(word.replace("-", " "))):
        return (str(value),)
    if len(word) < 9 and (sign := SIGNS.get(word.strip())):
        return (sign,)
    if not word.isalpha():
        word = NOT_IN_A_WORD.sub("", word)
    if word[:1].isdigit() or word[:1] == ".":
        return (fold_number(word),)
    if len(word) == 1 and word in GREEK:
        return (GREEK[word],)
    if word in ROMAN and word not in AMBIGUOUS:
        return (ROMAN[word],)
    if rules == "english":
        return (fold_english(word),)
    if rules == "german":
        return (fold_german(word),)
    if rules == "romance":
        return (fold_romance(word),)
    return (word,)


def fold_number(number: str) -> str:
    """Return a number as a value: "0.50" → "0.5", "5,000" → "5000", "2nd" → "2"."""
    digits = number.rstrip("stndrh").replace(",", "")
    primes = "'" * (len(digits) - len(digits := PRIME.sub("", digits)))
    if digits.count(".") == 1:
        digits = digits.rstrip("0").rstrip(".")
    whole, *parts = digits.split(".")
    return ".".join([whole.lstrip("0") or "0", *parts]) + primes


def is_number(word: str) -> bool:
    """Return whether a folded word is a number."""
    return word[:1].isdigit()


def fold_english(word: str) -> str:
    """Return an English word in the singular, in American spelling."""
    word = SINGULAR.get(word, word)
    if len(word) >= SHORTEST_PLURAL:
        word = fold_plural(word)
        word = SINGULAR.get(word, word)
    if len(word) >= SHORTEST_BRITISH:
        word = BRITISH.sub(lambda part: AMERICAN[part.group()], word)
        word = IZE.sub(r"iz\1", word)
    return word


def fold_plural(word: str) -> str:
    """Return what the singular and the plural of an English word have in common.

    "metastasis" and "metastases" → "metastase"; "virus" and "viruses" → "virus".
    """
    size = len(word)
    if word.endswith("ies") and size > 4:
        return f"{word[:-3]}y"
    if word.endswith("mata"):
        return word[:-2]
    if word.endswith("ae") and size > 4 and word not in EPITHETS:
        return word[:-1]
    if word.endswith("sis") and size > 5:
        return f"{word[:-2]}e"
    if word.endswith(("sses", "shes", "ches", "xes", "zes")):
        return word[:-2]
    if word.endswith("uses") and size > 6:
        return word[:-2]
    if word[-1] == "s" and word[-2] not in "sui":
        return word[:-1]
    return word


def fold_german(word: str) -> str:
    """Return a German or Dutch word without its ending; umlauts are vowels."""
    for two, one in (("ae", "a"), ("oe", "o"), ("ue", "u"), ("ß", "ss")):
        word = word.replace(two, one)
    for ending in GERMAN_ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= SHORTEST_STEM:
            return word.removesuffix(ending)
    return word


def fold_romance(word: str) -> str:
    """Return what the singular and the plural of a Romance word have in common."""
    if len(word) <= SHORTEST_STEM:
        return word
    if word.endswith("aux") and word[-4] != "e":
        return f"{word[:-2]}l"
    if word.endswith("oes"):
        return f"{word[:-3]}ao"
    if word[-1] in "sx":
        word = word[:-1]
    word = word.removesuffix("e")  # "dolores", "dolor"; "artère", "artères"
    return f"{word[:-1]}c" if word[-1] == "z" else word


HYPHEN = regex.compile(rf"(?<=\p{{L}})[-{DASHES}]{BREAK}(?=\p{{L}})")
BROKEN = regex.compile(rf"(?<=\p{{L}})[-{DASHES}][ \t]*\n[ \t]*(?=\p{{L}})")
JOINABLE = regex.compile(
    rf"{HYPHEN.pattern}|\b(?:{PREFIXES})[ \t]|\b\p{{L}}{{2}}[ ]\p{{L}}\d",
    regex.IGNORECASE,
)
PREFIX_WORDS = frozenset(PREFIXES.split("|"))
IN_JOINABLE = re.compile(r"[^ -,.-/:-~]")  # a hyphen, a digit, or no ASCII
ASCII_WORD = re.compile("[a-z]+")


FOLDED_PREFIXES = frozenset(
    fold_piece(before + word, "english")[0]
    for word in PREFIX_WORDS
    for before in ("", NON)
)


def may_have_prefix(words: Iterable[str]) -> bool:
    """Return whether a text has a word that may be a part of the next one.

    `words` = its words, folded as English ones.
    """
    return not FOLDED_PREFIXES.isdisjoint(words)


def is_joinable(text: str) -> bool:
    """Return whether parts of a text may be one word: "sacro-iliitis", "pre term"."""
    if not IN_JOINABLE.search(text):
        words = ASCII_WORD.findall(text.lower())
        if PREFIX_WORDS.isdisjoint(words):  # most texts, a fifth of the time
            return False
    return JOINABLE.search(text) is not None


@lru_cache(maxsize=WORDS_KEPT)
def hash_word(word: str) -> int:
    """Return a number of 64 bits for a folded word."""
    digest = blake2b(word.encode("utf8", "replace"), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def hash_words(words: Iterable[str]) -> int:
    """Return a number of 64 bits that is equal for the same words in any order."""
    return sum(map(hash_word, words)) & 0xFFFF_FFFF_FFFF_FFFF


def name_keys(text: str, rules: Rules) -> list[int]:
    """Return the numbers by which a name is found; signed, of 64 bits.

    Texts that are the same name share one, and others hardly ever do. A name with a
    hyphen within a word has a second one without it; a text without a word has none.
    """
    keys: dict[int, None] = {}
    for joined in (False, True) if is_joinable(text) else (False,):
        if pieces := split_pieces(text, rules, joined=joined):
            keys[signed(hash_words(piece.word for piece in pieces))] = None
    return [*keys]


def signed(number: int) -> int:
    """Return an unsigned number of 64 bits as SQLite stores it."""
    return number - (1 << 64) if number >> 63 else number


def stands_alone(text: str, start: int, end: int) -> bool:
    """Return whether a part of a text stands between signs, blanks or ends.

    "COVID" does not in "COVID-19"; "Fever" does in "1Fever" at the start of a line,
    where a list may have its number.
    """
    if WORD_GOES_ON.match(text, end):
        return False
    if not WORD_CAME.match(text, start):
        return True
    return LIST_NUMBER.match(text, start) is not None and not is_abbreviation(
        text[start:end]
    )


def is_abbreviation(name: str) -> bool:
    """Return whether a name is an abbreviation: "AIDS", "MI", "mRNA".

    It has two to four letters and a capital after the first character.
    """
    letters = sum(character.isalpha() for character in name)
    return 2 <= letters <= MAX_ABBREVIATION and any(
        character.isupper() for character in name[1:]
    )


def is_acronym(name: str) -> bool:
    """Return whether a name is one short word in capitals: "SAIDS"."""
    return name.isalpha() and name.isupper() and len(name) <= LONGEST_ACRONYM


def has_length(mention: str, least: int) -> bool:
    """Return whether a mention has so many characters.

    A character of a script without blanks counts as three.
    """
    unspaced = len(UNSPACED_CHARACTER.findall(mention))
    return len(mention) + (CHARACTERS_A_WORD - 1) * unspaced >= least
