"""What a knowledge base decides: what it links, what it must not link, and how surely.

Each row of `ROWS` measures a few figures by the public functions alone, so that two
versions of the package can be compared: write the figures of one with `--write`, and
give the file to the other as `--against`. The lists of pairs and words are in `lists`.
"""

import json
import os
import re
import shutil
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import combinations
from pathlib import Path
from random import Random
from typing import Annotated, Any, NamedTuple

import numpy as np
import spacy
import typer

from benchmarks.harness import machine_line, print_table, run_cli
from benchmarks.order import (
    GOLD,
    SETS,
    Documents,
    judge,
    link_preprocessed,
    read_documents,
    read_names,
)
from spacy_sapbert.errors import check_choice
from spacy_sapbert.evaluation.gold_mentions import make_resolver
from spacy_sapbert.evaluation.rankers import kb_lookup
from spacy_sapbert.io.terminal import msg
from spacy_sapbert.kb.edits.change import add_concepts
from spacy_sapbert.kb.knowledge_base import KnowledgeBase, load_kb
from spacy_sapbert.kb.learned_order.noise import mistype
from spacy_sapbert.kb.teaching.teach import teach_documents
from spacy_sapbert.linking.difference import compare_texts
from spacy_sapbert.linking.link import Linked
from spacy_sapbert.linking.options import LinkOptions
from spacy_sapbert.linking.text import MOST_NUMERAL, name_keys, roman
from spacy_sapbert.mapping.lookup import EXACT, Query, map_queries
from spacy_sapbert.verification.verdicts import RIGHT, WRONG, Verifier
from spacy_sapbert.vocabularies.concepts import Concept
from spacy_sapbert.vocabularies.reader_table import read_vocabulary
from training.corpora.biosyn import KnownConcepts, preprocess_documents

LISTS = Path(__file__).with_name("lists")
SEED = 11
SURE = (0.5, 0.9)  # probabilities of links that should not be
LEVELS = (0.3, 0.5, 0.8)  # probabilities from which on a mention is linked
OF_A_PAIR = 8  # names in which one word is replaced by the other of a pair
WORDS_EACH = 300  # words of diseases, and as many others
SHORTEST_WORD = 5  # letters
MISTYPED = 1_500  # names
NUMERALS = 300  # names of each kind whose numeral is rewritten
PAIRS = 200  # of ordinary words
BINS, FEWEST_IN_BIN = 10, 50
TIMED = 200  # mentions
DISEASES = frozenset(("T047", "T191", "T048", "T037", "T033"))  # semantic types
WARD = (
    "car park;hospital;blue car;nurse;doctor;bed;ward;patient;window;lunch;visitor;"
    "telephone;discharge letter;shoes;morning;car;dog;garden;football;computer;"
    "holiday;daughter;coffee;church;insurance;wheelchair;signature;toilet;newspaper;"
    "weather"
)
KINDS_OF_EQUAL = ["order", "number", "writing"]
NUMERAL = re.compile(r"\b(?:[IVX]+|[1-9]\d?)\b")
ROMAN = {roman(n).upper(): n for n in range(1, MOST_NUMERAL + 1)}


class Figure(NamedTuple):
    """A number of cases, or another one; `cases` are those that should not be."""

    name: str
    number: float
    total: float | None = None  # None = `number` is the figure
    cases: Sequence[str] = ()

    @property
    def value(self) -> float:
        if self.total is None:
            return self.number
        return self.number / self.total if self.total else float("nan")


class Setting:
    """The knowledge base that is measured, and the data."""

    def __init__(self, kb: Path, data: Path) -> None:
        self.folder, self.data = kb, data
        self.kb = load_kb(kb)

    @cached_property
    def names(self) -> dict[str, list[str]]:
        """All names by concept."""
        return {cui: self.kb[cui].aliases for cui in sorted(self.kb)}

    @cached_property
    def every_name(self) -> list[tuple[str, str]]:
        """Each name and its concept, in an order that is as good as random."""
        pairs = [(name, cui) for cui, some in self.names.items() for name in some]
        Random(SEED).shuffle(pairs)
        return pairs

    @cached_property
    def owners(self) -> dict[str, set[str]]:
        """The concepts by the names in lower case."""
        found: dict[str, set[str]] = defaultdict(set)
        for name, cui in self.every_name:
            found[name.lower()].add(cui)
        return found

    @cached_property
    def keys(self) -> frozenset[int]:
        """The keys of all names."""
        pairs = self.every_name
        return frozenset(k for name, _ in pairs for k in name_keys(name, "english"))

    def is_known(self, name: str) -> bool:
        """Return whether a text has the words of a name."""
        return not self.keys.isdisjoint(name_keys(name, "english"))


def is_same(name: str, other: str) -> bool:
    """Return whether two texts count as one name."""
    return compare_texts(name, other).same


def probability(linked: Linked) -> float:
    """Return the probability of the first candidate; 0 if there is none."""
    first = linked.candidates[0]["probability"] if linked.candidates else None
    return first or 0.0


def show(text: str, linked: Linked, meant: str = "") -> str:
    """Return one line about a link."""
    if not linked.candidates:
        return f"{text} → NIL ({linked.note})"
    first = linked.candidates[0]
    state = "" if linked.cui else f" NIL ({linked.note})"
    wanted = f", meant {meant}" if meant else ""
    return (
        f"{text} →{state} {first['name']} [{first['cui']}] by {first['alias']!r}: "
        f"{first['score']:.3f}, p {probability(linked):.3f}{wanted}"
    )


def read_list(name: str) -> list[list[str]]:
    """Return the cells of the lines of a list; `#` begins a comment."""
    lines = (LISTS / name).read_text("utf8").splitlines()
    cells = [line.split("\t") for line in lines if line and line[0] != "#"]
    return [[re.sub(r"\\n", "\n", re.sub(r"\\t", "\t", c)) for c in x] for x in cells]


def measure_linked(
    kb: KnowledgeBase, texts: Sequence[str], name: str
) -> Iterator[Figure]:
    """Yield how many of some texts, which no concept has, are linked."""
    links = zip(texts, kb.link(texts), strict=True)
    yield from count_links([*links], name)


def count_links(
    links: Sequence[tuple[Any, ...]], name: str, total: int = 0
) -> Iterator[Figure]:
    """Yield how many links should not be, of text, link and name, and how sure."""
    total = total or len(links)
    wrong = [each for each in links if each[1].cui]
    wrong.sort(key=lambda each: -probability(each[1]))
    yield Figure(f"{name}, linked", len(wrong), total, [show(*each) for each in wrong])
    for least in SURE:
        sure = [show(*each) for each in wrong if probability(each[1]) >= least]
        yield Figure(f"… at p ≥ {least}", len(sure), total, sure)


def measure_added(
    folder: Path, pairs: Sequence[Sequence[str]]
) -> Iterator[tuple[str, str, str, Linked, str, str]]:
    """Yield name, mention, id, link, verdict and status of mapping for each pair.

    The first text of each pair is added to a copy as a concept, the second is linked.
    """
    with tempfile.TemporaryDirectory() as copies:
        shutil.copytree(folder, copy := Path(copies) / "kb")
        ids = {
            name: f"ADDED:{number:04}"
            for number, name in enumerate(dict.fromkeys(pair[0] for pair in pairs))
        }
        kb = add_concepts(load_kb(copy), [Concept(c, [n]) for n, c in ids.items()])
        mentions = [pair[1] for pair in pairs]
        cuis = [ids[pair[0]] for pair in pairs]
        links = kb.link(mentions)
        verdicts = Verifier(kb).verify(mentions, cuis)
        mapped = map_queries(kb, [Query(m) for m in mentions], LinkOptions())
        for pair, cui, link, verdict, found in zip(
            pairs, cuis, links, verdicts, mapped, strict=True
        ):
            status = found.status if found.cui == cui else ""
            yield pair[0], pair[1], cui, link, verdict.verdict, status


def measure_differences(setting: Setting) -> Iterator[Figure]:
    """Names that differ in what a reader of them would not accept."""
    pairs = read_list("differences.tsv")
    turned = [pair[::-1] for pair in pairs if len(pair) == 2]
    cases: dict[str, list[str]] = {"linked": [], "right": [], "exact": [], "tried": []}
    for some in (pairs, turned):
        for name, mention, cui, link, verdict, status in measure_added(
            setting.folder, some
        ):
            line = f"{mention} | {name}"
            if link.cui == cui:
                cases["linked"].append(f"{line} (p {probability(link):.3f})")
            if verdict == RIGHT:
                cases["right"].append(line)
            if status == EXACT:
                cases["exact"].append(line)
            cases["tried"].append(line)
    total = len(cases.pop("tried"))
    for kind, lines in cases.items():
        yield Figure(f"differ, but {kind}", len(lines), total, lines)


def measure_symbols(setting: Setting) -> Iterator[Figure]:
    """Symbols of genes with their own ids, and with those of genes of like symbols."""
    symbols = [line[0] for line in read_list("symbols.txt")]
    kb_ids = {symbol: f"ADDED:{symbol}" for symbol in symbols}
    with tempfile.TemporaryDirectory() as copies:
        shutil.copytree(setting.folder, copy := Path(copies) / "kb")
        concepts = [Concept(id, [symbol]) for symbol, id in kb_ids.items()]
        verifier = Verifier(add_concepts(load_kb(copy), concepts))
        own = verifier.verify(symbols, [*kb_ids.values()])
        others = [*symbols[1:], symbols[0]]
        wrong = verifier.verify(symbols, [kb_ids[other] for other in others])
    for name, expected, verdicts, ids in (
        ("its own id", RIGHT, own, symbols),
        ("the id of another gene", WRONG, wrong, others),
    ):
        cases = [
            f"{symbol} with the id of {id}: {v.verdict}, {v.why}"
            for symbol, id, v in zip(symbols, ids, verdicts, strict=True)
            if v.verdict != expected
        ]
        right = len(symbols) - len(cases)
        yield Figure(f"{name} is {expected}", right, len(symbols), cases)


def measure_same(setting: Setting) -> Iterator[Figure]:
    """Two ways to write one name."""
    pairs = [
        pair
        for pair in read_list("same.tsv")
        if setting.owners.keys().isdisjoint(map(str.lower, pair))
    ]
    missed, total = list[str](), 0
    for some in (pairs, [pair[::-1] for pair in pairs]):
        for name, mention, cui, link, _, _ in measure_added(setting.folder, some):
            total += 1
            found = [c for c in link.candidates if c["cui"] == cui and c["score"] == 1]
            if not link.cui or not found:
                missed.append(show(f"{mention!r} | {name!r}", link))
    yield Figure("the same name, linked at 1.0", total - len(missed), total, missed)


def list_equal(data: Path) -> Iterator[tuple[str, str, str]]:
    """Yield how two names differ that count as one, of concepts that share none.

    One pair of names for each pair of concepts.
    """
    groups: dict[int, dict[tuple[str, str], None]] = defaultdict(dict)
    own: dict[str, set[str]] = {}
    for concept in read_names(data, SETS["bc5cdr-chemical"]):
        own[concept.cui] = {name.lower() for name in concept.aliases}
        for name in concept.aliases:
            for key in name_keys(name, "english"):
                groups[key][name, concept.cui] = None
    found: dict[tuple[str, ...], dict[str, tuple[str, str]]] = defaultdict(dict)
    for names in groups.values():
        for (name, cui), (other, its) in combinations(names, 2):
            if cui == its or not own[cui].isdisjoint(own[its]):
                continue
            if is_same(name, other):
                kinds = found[tuple(sorted((cui, its)))]
                kinds.setdefault(find_kind(name, other), (name, other))
    for kinds in found.values():
        kind = min(kinds, key=KINDS_OF_EQUAL.index)
        yield kind, *kinds[kind]


def find_kind(name: str, other: str) -> str:
    """Return how two names differ, roughly."""
    mine, its = (re.findall(r"[^\W\d_]+|\d+", x.lower()) for x in (name, other))
    mine, its = ([word.removesuffix("s") for word in x] for x in (mine, its))
    if mine != its and sorted(mine) == sorted(its):
        return "order"
    numbers = [[w for w in x if w.isdigit() or w.upper() in ROMAN] for x in (mine, its)]
    return "number" if numbers[0] != numbers[1] else "writing"


def measure_mesh(setting: Setting) -> Iterator[Figure]:
    """Concepts of MeSH and MEDIC that count as one; read them by hand."""
    found: dict[str, list[str]] = {kind: [] for kind in KINDS_OF_EQUAL}
    for kind, name, other in list_equal(setting.data):
        found[kind].append(f"{name} | {other}")
    for kind, lines in found.items():
        Random(SEED).shuffle(lines)
        yield Figure(f"two concepts, one name by {kind}", len(lines), None, lines)


def measure_substitutions(setting: Setting) -> Iterator[Figure]:
    """Names in which another word stands in the place of one."""
    replaced: dict[str, list[str]] = defaultdict(list)
    for one, other in read_list("substitutions.tsv"):
        replaced[one].append(other)
        replaced[other].append(one)
    made: dict[tuple[str, str], int] = defaultdict(int)
    texts: dict[str, tuple[str, str]] = {}
    for name, cui in setting.every_name:
        words = name.lower().split()
        if not 2 <= len(words) <= 4:
            continue
        for place, word in enumerate(words):
            for other in replaced.get(word.strip(",()"), ()):
                new = word.replace(word.strip(",()"), other)
                text = " ".join([*words[:place], new, *words[place + 1 :]])
                if made[word, other] < OF_A_PAIR and not setting.is_known(text):
                    made[word, other] += 1
                    texts.setdefault(text, (cui, name))
    links = setting.kb.link([*texts])
    every = [
        (text, link, name, cui)
        for (text, (cui, name)), link in zip(texts.items(), links, strict=True)
    ]
    wrong = [each[:3] for each in every if each[1].cui == each[3]]
    yield from count_links(wrong, "a word replaced, the original", len(texts))
    yield from count_links([each[:3] for each in every], "… any concept")


def measure_words(setting: Setting) -> Iterator[Figure]:
    """Names of one word of other vocabularies, which this one has not."""
    known = {
        key
        for name, _ in setting.every_name
        for word in re.findall(r"[^\W\d_]+", name)
        for key in name_keys(word, "english")
    }
    found: dict[str, set[str]] = {"diseases": set(), "others": set()}
    both: dict[str, dict[str, Any]] = {
        "open-rrf": {},
        "mesh-rrf": {"cui_pattern": SETS["bc5cdr-chemical"].ids},
    }
    for folder, options in both.items():
        for concept in read_vocabulary(setting.data / folder, "rrf", **options):
            places = {*concept.languages.get("ENG", ())}
            names = [
                n
                for place, n in enumerate(concept.aliases)
                if place in places or not concept.languages
            ]
            if any(map(setting.is_known, names)):
                continue
            for name in names:
                new = len(name) >= SHORTEST_WORD and name.isascii() and name.isalpha()
                # Of symbols of genes and of drugs no sense can be made.
                new = new and not name.isupper()
                if new and known.isdisjoint(name_keys(name, "english")):
                    kind = "others"
                    if DISEASES.intersection(concept.types):
                        kind = "diseases"
                    found[kind].add(name.lower())
    found["others"] -= found["diseases"]
    for kind, words in found.items():
        some = Random(SEED).sample(sorted(words), min(WORDS_EACH, len(words)))
        yield from measure_linked(setting.kb, some, f"words that it lacks, {kind}")


def measure_abbreviations(setting: Setting) -> Iterator[Figure]:
    """Abbreviations that are no name."""
    known = {name for name, _ in setting.every_name}
    texts = [line[0] for line in read_list("abbreviations.txt") if line[0] not in known]
    yield from measure_linked(setting.kb, texts, "abbreviations that it lacks")
    others = [text for text in texts if text.lower() not in setting.owners]
    yield from measure_linked(setting.kb, others, "that it lacks in any case")


def measure_ordinary(setting: Setting) -> Iterator[Figure]:
    """Words of a ward."""
    words = WARD.split(";")
    pairs = [f"{one} {other}" for one, other in combinations(words, 2)]
    pairs = Random(SEED).sample(pairs, PAIRS)
    yield from measure_linked(setting.kb, words, "words of a ward")
    yield from measure_linked(setting.kb, pairs, "two words of a ward")


def measure_numerals(setting: Setting) -> Iterator[Figure]:
    """Names with one numeral, written in the other digits: these are right."""
    for to_roman in (False, True):
        texts: dict[str, str] = {}
        for name, _ in setting.every_name:
            found = NUMERAL.findall(name)
            if len(found) != 1 or found[0].isdigit() != to_roman:
                continue
            number = int(found[0]) if to_roman else ROMAN.get(found[0], 0)
            # "X-linked" and "XX" are of chromosomes.
            if 2 <= number <= 19 and found[0] != "X" and len(texts) < NUMERALS:
                other = roman(number).upper() if to_roman else str(number)
                texts[NUMERAL.sub(other, name)] = name
        links = setting.kb.link([*texts])
        wrong = [
            show(text, link, name)
            for (text, name), link in zip(texts.items(), links, strict=True)
            if link.cui not in setting.owners[name.lower()]
        ]
        kind = "as Roman numerals" if to_roman else "as digits"
        yield Figure(
            f"{kind}, linked right", len(texts) - len(wrong), len(texts), wrong
        )


def measure_typos(setting: Setting) -> Iterator[Figure]:
    """Names with typing errors."""
    random = Random(SEED)
    names = [
        (name, cui)
        for name, cui in setting.every_name
        if len(name) >= SHORTEST_WORD and len(setting.owners[name.lower()]) == 1
    ][:MISTYPED]
    for count in (1, 2, 3):
        noise = mistype(count)
        texts = [(noise(name, random), name, cui) for name, cui in names]
        texts = [each for each in texts if each[0] != each[1]]
        links = setting.kb.link([text for text, _, _ in texts])
        later, missed = list[str](), list[str]()
        for (text, name, cui), link in zip(texts, links, strict=True):
            first = link.candidates[0]["cui"] if link.candidates else ""
            later += [show(text, link, name)] * (first != cui)
            missed += [show(text, link, name)] * (link.cui != cui)
        total = len(texts)
        errors = f"{count} typing error{'s' * (count > 1)}"
        yield Figure(f"{errors}, first answer", total - len(later), total, later)
        yield Figure("… linked right", total - len(missed), total, missed)


class Answer(NamedTuple):
    """The link of a mention in a document."""

    text: str
    meant: frozenset[str]  # empty = no concept
    cui: str | None
    first: str | None
    probability: float
    barred: bool  # whether it is excluded, whatever its probability

    @property
    def right(self) -> bool:
        return self.first in self.meant


def read_answers(kb: Path, documents: Documents) -> Iterator[Answer]:
    """Link annotated mentions through the pipeline, which reads short forms."""
    resolve = make_resolver(kb_lookup(load_kb(kb)), {})
    nlp = spacy.blank("en")
    nlp.add_pipe("sapbert_abbreviations")
    nlp.add_pipe("sapbert_linker", config={"kb": str(kb), "spans_key": GOLD})

    def make_docs() -> Iterator[tuple[Any, list[Any]]]:
        for document in documents:
            doc = nlp.make_doc(document.text)
            golds = [
                (span, mention)
                for mention in document.mentions
                if (
                    span := doc.char_span(
                        mention.start, mention.end, alignment_mode="expand"
                    )
                )
            ]
            doc.spans[GOLD] = [span for span, _ in golds]
            yield doc, [mention for _, mention in golds]

    for doc, golds in nlp.pipe(make_docs(), as_tuples=True):
        for span, gold in zip(doc.spans[GOLD], golds, strict=True):
            first = span._.candidates[0] if span._.candidates else None
            yield Answer(
                gold.mention,
                frozenset().union(*resolve(gold)),
                span._.cui,
                first["cui"] if first else None,
                (first["probability"] or 0.0) if first else 0.0,
                span._.link_note not in (None, "below_threshold", "truncated"),
            )


def read_entities(data: Path) -> Documents:
    """Read the documents of BC5CDR dev with diseases and chemicals."""
    gold = SETS["bc5cdr-disease"]._replace(label="")
    return [*read_documents(data / gold.dev, gold)]


def measure_documents(setting: Setting) -> Iterator[Figure]:
    """Diseases and chemicals as entities, with a vocabulary of diseases."""
    documents = read_entities(setting.data)
    yield from measure_answers([*read_answers(setting.folder, documents)])


def measure_taught(setting: Setting) -> Iterator[Figure]:
    """The same after teaching diseases, of this corpus and another."""
    train = [
        document
        for name in ("ncbi", "bc5cdr-disease")
        for document in read_documents(setting.data / SETS[name].train, SETS[name])
    ]
    with tempfile.TemporaryDirectory() as copies:
        shutil.copytree(setting.folder, copy := Path(copies) / "kb")
        kb, _ = teach_documents(load_kb(copy), train)
        yield from measure_answers([*read_answers(copy, read_entities(setting.data))])
        yield from measure_protocol(kb, setting)


def measure_answers(answers: Sequence[Answer]) -> Iterator[Figure]:
    """Yield how good the links and the probabilities of mentions are."""
    known = np.array([bool(a.meant) for a in answers])
    right = np.array([a.right for a in answers])
    chances = np.array([0.0 if a.barred else a.probability for a in answers])
    default = np.array([a.cui is not None for a in answers])
    yield Figure("mentions with a concept", int(known.sum()), len(known))
    cases = [
        f"{a.text} → {a.cui} p {a.probability:.3f}, meant {'|'.join(a.meant) or 'NIL'}"
        for a in answers
        if a.cui and not a.right
    ]
    linked = {"by default": default} | {f"at p ≥ {t}": chances >= t for t in LEVELS}
    for how, chosen in linked.items():
        hits = int((right & chosen).sum())
        yield Figure(f"precision of links {how}", hits, int(chosen.sum()), cases)
        yield Figure(f"recall of links {how}", hits, int(known.sum()))
        nil = int((~chosen & ~known).sum())
        yield Figure(f"NIL recall {how}", nil, int((~known).sum()))
        cases = []
    order = np.argsort(-chances, kind="stable")
    f1 = 2 * np.cumsum(right[order]) / (np.arange(1, len(order) + 1) + known.sum())
    best = int(f1.argmax())
    yield Figure("best F1", round(float(f1[best]), 4))
    yield Figure("… at p ≥", round(float(chances[order[best]]), 3))
    yield Figure("first answers", int(right[known].sum()), int(known.sum()))
    gap, lines = 0.0, list[str]()
    chances = np.array([a.probability for a in answers])
    places = np.minimum((chances * BINS).astype(int), BINS - 1)
    for number in range(BINS):
        of_bin = places == number
        if not of_bin.any():
            continue
        mean, rate = float(chances[of_bin].mean()), float(right[of_bin].mean())
        if of_bin.sum() >= FEWEST_IN_BIN:
            gap = max(gap, abs(mean - rate))
        low, high = number / BINS, (number + 1) / BINS
        lines.append(f"{low}–{high}: {of_bin.sum():,}, p {mean:.3f}, right {rate:.3f}")
    yield Figure("largest gap of a bin", round(gap, 4), None, lines)


def measure_first(setting: Setting) -> Iterator[Figure]:
    """First answers with the names as they are; `benchmarks.order` has the protocol."""
    yield from measure_protocol(setting.kb, setting)


def measure_protocol(kb: KnowledgeBase, setting: Setting) -> Iterator[Figure]:
    resolve = make_resolver(kb_lookup(kb), {})
    known = KnownConcepts(Concept(*each) for each in setting.names.items())
    for name in ("ncbi", "bc5cdr-disease"):
        gold = SETS[name]
        raw = read_documents(setting.data / gold.dev, gold)
        dev = [*preprocess_documents(raw, known)]
        right = judge(dev, link_preprocessed(kb, dev), resolve, set()).right
        yield Figure(f"{name}, first answers", int(right.sum()), len(right))


def measure_speed(setting: Setting) -> Iterator[Figure]:
    """Mentions that are no names, each alone."""
    random, noise = Random(SEED), mistype(2)
    texts = [noise(name, random) for name, _ in setting.every_name[-TIMED - 50 :]]
    setting.kb.link(texts[:50])
    times = list[float]()
    for text in texts[50:]:
        start = time.perf_counter()
        setting.kb.link([text])
        times.append(1000 * (time.perf_counter() - start))
    yield Figure(
        "milliseconds for a mention, median", round(float(np.median(times)), 2)
    )


ROWS: dict[str, Callable[[Setting], Iterator[Figure]]] = {
    "differences": measure_differences,
    "symbols": measure_symbols,
    "same": measure_same,
    "mesh_rrf": measure_mesh,
    "substitutions": measure_substitutions,
    "real_words": measure_words,
    "abbreviations": measure_abbreviations,
    "ordinary": measure_ordinary,
    "numerals": measure_numerals,
    "typos": measure_typos,
    "documents": measure_documents,
    "taught": measure_taught,
    "first_answers": measure_first,
    "speed": measure_speed,
}


def main(
    kb: Annotated[Path, typer.Argument(help="It is copied before it is changed.")],
    data: Annotated[Path, typer.Option(help="Folder with vocabularies and corpora.")],
    only: Annotated[
        list[str] | None, typer.Option(help="Of `ROWS`; repeatable.")
    ] = None,
    show: Annotated[int, typer.Option(min=0, help="Cases of each figure.")] = 0,
    write: Annotated[
        Path | None, typer.Option(help="JSON of figures and cases.")
    ] = None,
    against: Annotated[Path | None, typer.Option(help="Such a file of before.")] = None,
) -> None:
    """kb/ -> figures of what is linked, and what is not

    Example: python -m benchmarks.decisions kb --data data --only typos --show 20
    """
    for name in only or ():
        check_choice("row", [*ROWS], name)
    setting = Setting(kb, data)
    before: dict[str, Any] = json.loads(against.read_text("utf8")) if against else {}
    table, result = list[list[str]](), dict[str, Any]()
    for row in only or ROWS:
        start, last = time.perf_counter(), ""
        for figure in ROWS[row](setting):
            name = f"{last} {figure.name}" if figure.name[0] == "…" else figure.name
            last = last if figure.name[0] == "…" else figure.name
            result[f"{row}: {name}"] = {
                "count": figure.number,
                "total": figure.total,
                "value": None if np.isnan(figure.value) else round(figure.value, 4),
                "cases": figure.cases,
            }
            cells = [row, figure.name, "", f"{figure.number:g}"]
            if figure.total is not None:
                cells[2:] = [f"{figure.number:,} of {figure.total:,}"]
                cells.append(f"{figure.value:.4f}")
            if against:
                old = before.get(f"{row}: {name}", {}).get("value")
                cells.append("" if old is None else f"{old:g}")
            table.append(cells)
            for case in figure.cases[:show]:
                typer.echo(f"{row}, {name}: {case}")
        msg.text(f"{row}: {time.perf_counter() - start:.0f} s")
    threads = os.environ.get("OMP_NUM_THREADS", "all")
    msg.text(f"{machine_line()}, {threads} threads; {setting.kb.rows:,} names.")
    header = ["row", "", "number", "figure", *(["before"] if against else [])]
    print_table(header, table)
    if write:
        text = json.dumps(result, ensure_ascii=False, indent=1)
        write.write_text(f"{text}\n", "utf8")


if __name__ == "__main__":
    run_cli(main)
