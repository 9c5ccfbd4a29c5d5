"""Texts and the ids that somebody gave them → whether each id is the right one.

ids        the concepts that have an id             .ids
measure    the claimed concept against all others   .chances
better     what the text is linked to               kb.search
judge      one verdict, and one sentence why        here
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ..kb.contradiction import find_contradiction
from ..kb.ids import FoundId, find_id, read_term
from ..kb.knowledge_base import KnowledgeBase
from ..kb.naming import Named
from ..kb.nearest import bound
from ..linking.candidates import SORT_DIGITS, Candidate
from ..linking.decisions import Decision
from ..linking.difference import compare_texts
from ..linking.features import EXCLUDED, POOL_ROWS, FoundName, pool_concepts
from ..linking.filters import Filter
from ..linking.link import check_mentions
from ..linking.probability import DIGITS
from ..linking.ranking import has_text
from ..linking.schwartz_hearst import find_long_forms, is_short_form
from ..linking.text import read_mention
from ..mapping.decisions import list_unsaid
from ..mapping.terms import MEANING
from .chances import (
    Chances,
    compare_cosines,
    compute_chances,
    is_apart,
    list_values,
)

RIGHT, NEAR, WRONG, RETIRED = "right", "near", "wrong", "retired"
UNKNOWN, UNSURE = "unknown", "unsure"
VERDICTS = {
    RIGHT: "the text means the concept",
    NEAR: "it means a parent, child or sibling, or the code is broader or narrower",
    WRONG: "it means something else",
    RETIRED: "it means the concept for which the id was retired",
    UNKNOWN: "there is no such id",
    UNSURE: "a person must decide",
}
# Chosen on train documents: 5 % of right ids may be called wrong, 1 % of unrelated
# ones not, and some 12 % of near concepts right.
LIKELY = 0.63  # least probability of a right id
UNRELATED, UNLIKELY = 0.9, 0.05  # below one of them an id is wrong
OF_NAME, OF_OTHER_NAME = 0.99, 0.3  # probability if the text is a name
# and at most, if it is the name of another concept alone: may it mean this one too?
OF_ANOTHER, PERHAPS = 0.02, 0.5
# If the link to the claimed concept has a lower probability, the right concept may be
# missing, and the claimed one is only the nearest. Chosen on dev documents.
LACKING = 0.1
# That of the model counts as so many annotated mentions. Chosen on train documents of
# one corpus for a knowledge base that was taught the other.
PRIOR = 2
ANY = Filter()
PAIRS_AT_ONCE = 256
BACKGROUND = 2_000  # rows whose names are unrelated to nearly every text
CONCEPTS_KEPT = 2_000  # about 12 KB each


@dataclass(frozen=True)
class Verdict:
    """Whether an id is the right one for a text.

    Attributes:
        verdict: One of `VERDICTS`.
        probability: That the claimed concept is right, of all; None without a concept.
        cui: The claimed concept; of a retired id, the one that replaced it.
        relation: Of the claimed concept to the better one: "parent", "child",
            "sibling"; or of the code to the concept: "broader", "narrower".
        better: What the text is linked to, if that is another concept and likelier.
        better_probability: Of the link; None if the knowledge base has none.
        why: One sentence.
        meant: Ids that may be meant in place of an unknown one.
        label: The verdict on the id for the label; None without a label.
        label_text: The verdict on the concept of the label for the text.
    """

    verdict: str
    probability: float | None = None
    cui: str | None = None
    name: str | None = None
    relation: str | None = None
    better: str | None = None
    better_name: str | None = None
    better_probability: float | None = None
    why: str = ""
    meant: tuple[str, ...] = ()
    label: str | None = None
    label_text: str | None = None


class Measured(NamedTuple):
    """A claim, compared with all other concepts."""

    chances: Chances
    named: bool = False  # the text is a name of the concept, or its id or code
    coded: bool = False  # the text is its id or code
    decision: Decision | None = None  # what people decided for the text
    excluded: bool = False  # another numeral, an opposite, …
    lacking: bool = False  # it is the nearest, but the right one may be missing


class Claim(NamedTuple):
    """A text, as `read_mention` returns it, and a concept."""

    text: str
    cui: str


class Verifier:
    """Finds out whether ids are the right ones for texts, by a knowledge base.

    Examples:
        >>> verifier = Verifier(load_kb("models/sample/kb"))
        >>> pairs = ["heart attack"] * 2, ["C0027051", "C0018681"]
        >>> right, wrong = verifier.verify(*pairs)
        >>> right.verdict, wrong.verdict, wrong.better
        ('right', 'wrong', 'C0027051')
    """

    def __init__(self, kb: KnowledgeBase) -> None:
        self.kb, self.store = kb, kb.store
        self.find_id = lru_cache(CONCEPTS_KEPT)(lambda id: find_id(kb.store, id))
        rows = np.array(sorted(self.store.rows_by_key(BACKGROUND)), dtype=np.int64)
        self.background = kb.vectors(rows)
        self.names_of = lru_cache(CONCEPTS_KEPT)(self.read_names)

    def read_names(self, cui: str) -> tuple[list[Any], np.ndarray]:
        """Return the entries of a concept, and the vectors of their rows."""
        entries = self.store.entries_of(cui)
        rows = np.array([entry.row for entry in entries], dtype=np.int64)
        return entries, self.kb.vectors(rows)

    def verify(
        self,
        texts: Sequence[str],
        ids: Sequence[str],
        *,
        labels: Sequence[str] | None = None,
        contexts: Sequence[str] | None = None,
    ) -> list[Verdict]:
        """Find out whether ids are the right ones for texts.

        Args:
            texts: Each one term, as for `KnowledgeBase.link`.
            ids: The id that somebody gave to each: of a concept, retired, or a code.
            labels: The names that stand beside the ids; they are verified too.
            contexts: The document of each text, whose abbreviations are expanded.

        Returns:
            The verdict on each pair, in their order.
        """
        check_mentions(texts, ids, labels, contexts)
        given = [*map(read_mention, texts)]
        if contexts is not None:
            given = [*map(expand, given, contexts)]
        verdicts = self.judge_all([*zip(given, ids, strict=True)])
        verdicts = [*map(self.check_meaning, texts, verdicts)]
        if labels is None:
            return verdicts
        read = [*map(read_mention, labels)]
        of_labels = self.judge_all([*zip(read, ids, strict=True)])
        linked = self.link([label for label in read if has_text(label)])
        meanings = [linked[x].cui or "" if has_text(x) else "" for x in read]
        of_texts = self.judge_all([*zip(given, meanings, strict=True)])
        return [
            replace(
                verdict,
                label=of_label.verdict,
                label_text=RIGHT
                if compare_texts(text, label).same
                else of_text.verdict
                if meaning
                else UNSURE,
            )
            if has_text(label)
            else verdict
            for text, label, meaning, verdict, of_label, of_text in zip(
                given, read, meanings, verdicts, of_labels, of_texts, strict=True
            )
        ]

    def check_meaning(self, text: str, verdict: Verdict) -> Verdict:
        """Call no id right if the text says something else: "h/o MI" is not MI.

        Except if people decided that the text means it.
        """
        if verdict.verdict not in (RIGHT, RETIRED) or verdict.cui is None:
            return verdict
        unsaid = list_unsaid(self.kb, text, verdict.cui)
        others = [str(part) for part in unsaid if part.kind in MEANING]
        if not others or self.kb.searcher.find_decisions([text])[0] is not None:
            return verdict
        why = f"The text says something else than {verdict.name}: {'; '.join(others)}."
        return replace(verdict, verdict=UNSURE, why=why)

    def link(self, texts: Sequence[str]) -> Mapping[str, Any]:
        distinct = [*dict.fromkeys(texts)]
        return dict(zip(distinct, self.kb.link(distinct, k=1), strict=True))

    def judge_all(self, pairs: Sequence[tuple[str, str]]) -> list[Verdict]:
        judged: dict[tuple[str, str], Verdict] = {}
        distinct = [*dict.fromkeys(pairs)]
        for start in range(0, len(distinct), PAIRS_AT_ONCE):
            judged |= self.judge_batch(distinct[start : start + PAIRS_AT_ONCE])
        return [judged[pair] for pair in pairs]

    def judge_batch(
        self, pairs: Sequence[tuple[str, str]]
    ) -> dict[tuple[str, str], Verdict]:
        found = {id: self.find_id(id) for _, id in pairs}
        claims = {
            Claim(text, cui)
            for text, id in pairs
            if has_text(text)
            for cui in found[id].cuis
        }
        measured = self.measure(sorted(claims))
        # Of several concepts with a code, the likeliest is claimed.
        best: dict[tuple[str, str], Claim] = {}
        for text, id in pairs:
            some = [Claim(text, cui) for cui in found[id].cuis if has_text(text)]
            if some:
                best[text, id] = max(some, key=lambda c: measured[c].chances.right)
        linked = self.link([c.text for c in best.values() if not is_sure(measured[c])])
        cuis = {cui for each in found.values() for cui in each.cuis}
        names = self.store.names_of_cuis(cuis)
        verdicts: dict[tuple[str, str], Verdict] = {}
        for text, id in pairs:
            claim = best.get((text, id))
            if claim is None:
                verdicts[text, id] = judge_missing(found[id])
                continue
            its = measured[claim]
            if text in linked and not (its.named or its.decision):
                its = doubt_nearest(its, claim, linked[text].candidates)
            verdict = Verdict(
                UNSURE,
                its.chances.right,
                claim.cui,
                names.get(claim.cui),
                found[id].relation or None,
            )
            if its.chances.right < LIKELY and text in linked and linked[text].accepted:
                first = linked[text].accepted[0]
                chance = first["probability"]
                likelier = chance is None or chance > its.chances.right
                if first["cui"] != claim.cui and likelier:
                    (relation,) = self.store.relate(first["cui"], [claim.cui])
                    verdict = replace(
                        verdict,
                        relation=verdict.relation or relation,
                        better=first["cui"],
                        better_name=first["name"],
                        better_probability=chance,
                    )
            verdicts[text, id] = judge(verdict, its, found[id])
        return verdicts

    def measure(self, claims: Sequence[Claim]) -> dict[Claim, Measured]:
        """Compare each claimed concept with all others, for distinct claims."""
        searcher = self.kb.searcher
        texts = [*dict.fromkeys(claim.text for claim in claims)]
        if not texts:
            return {}
        named = searcher.names.find_named(texts, "")
        counts = dict(zip(texts, searcher.count_annotations(texts), strict=True))
        decisions = dict(zip(texts, searcher.find_decisions(texts), strict=True))
        numbers = self.store.numbers_of_cuis(claim.cui for claim in claims)
        coded = {text: read_term(self.store, text) for text in texts}
        measured: dict[Claim, Measured] = {}
        for claim in claims:
            names, its = named[claim.text], coded[claim.text]
            if claim.cui in its.cuis and not its.relation:
                meant = {*self.store.numbers_of_cuis(its.cuis).values()}
                if its.is_code:  # which may look like a name of another concept
                    meant |= {each.name.concept for each in names}
                chances = Chances(OF_NAME / len(meant), 1.0)
                measured[claim] = Measured(chances, named=True, coded=True)
                continue
            preferred = self.list_preferred(names)
            chance = find_name_chance(names, numbers[claim.cui], preferred)
            if chance:
                measured[claim] = Measured(Chances(chance, 1.0), named=True)
        left = [claim for claim in claims if claim not in measured]
        missing = Measured(Chances(0.0, 0.0))
        measured |= dict.fromkeys(left, missing)
        for claim, values, excluded in self.compare(left):
            chances = Chances(0.0, 0.0)
            if not excluded:
                others = bool(named[claim.text])
                chances = compute_chances(values, named=others)
                if others:
                    aliases = [entry.alias for entry in self.names_of(claim.cui)[0]]
                    apart = is_apart(claim.text, aliases)
                    most = OF_ANOTHER if apart else PERHAPS
                    chances = chances._replace(right=min(chances.right, most))
                if self.is_contradicted(claim):
                    chances = chances._replace(right=min(chances.right, PERHAPS))
            measured[claim] = Measured(chances, excluded=excluded)
        return {
            claim: each._replace(
                chances=add_counts(each.chances, counts, claim, decisions[claim.text]),
                decision=decisions[claim.text],
            )
            for claim, each in measured.items()
        }

    def is_contradicted(self, claim: Claim) -> bool:
        """Return whether a text has another word in the place of one of the concept."""
        (number,) = self.store.numbers_of_cuis([claim.cui]).values()
        words = self.kb.searcher.agreement
        return find_contradiction(words, claim.text, number, ANY) is not None

    def list_preferred(self, named: Sequence[Named]) -> set[int]:
        """Return the concepts whose preferred name a text is, if it is one of several.

        A concept has its preferred name first.
        """
        concepts = {each.name.concept for each in named}
        if len(concepts) < 2:
            return concepts
        aliases = {(each.name.concept, each.name.alias) for each in named}
        return {
            concept
            for concept in concepts
            if (concept, self.store.names_of_concept(concept)[0][0]) in aliases
        }

    def compare(
        self, claims: Sequence[Claim]
    ) -> Iterator[tuple[Claim, dict[str, float], bool]]:
        """Compare texts with the concepts claimed for them, and with those near them.

        Yields what the models weigh, and whether the text excludes the concept; nothing
        for a text without a vector and a concept without names that have one.
        """
        searcher = self.kb.searcher
        texts = [*dict.fromkeys(claim.text for claim in claims)]
        if not texts:
            return
        embedded = self.kb.embed(texts)
        rows, cosines = self.kb.search(embedded.vectors, POOL_ROWS)
        cosines = bound(cosines).round(SORT_DIGITS)
        entries = self.kb.entries(np.unique(rows[rows >= 0]).tolist())
        unrelated = embedded.vectors @ self.background.T
        numbers = {text: number for number, text in enumerate(texts)}
        usable = embedded.usable
        for claim in claims:
            number = numbers[claim.text]
            of_claimed, vectors = self.names_of(claim.cui)
            if not usable[number] or not of_claimed:
                continue
            near = zip(rows[number].tolist(), cosines[number].tolist(), strict=True)
            found = [
                FoundName(c, 0.0, e) for row, c in near for e in entries.get(row, ())
            ]
            pool = pool_concepts(found, searcher.find_provenance)
            of_names = bound(vectors @ embedded.vectors[number]).round(SORT_DIGITS)
            if claim.cui not in pool.near:
                pairs = zip(of_names.tolist(), of_claimed, strict=True)
                own = [FoundName(cosine, 0.0, entry) for cosine, entry in pairs]
                added = pool_concepts(own, searcher.find_provenance)
                pool = pool._replace(near={**pool.near, **added.near})
            features = searcher.agreement.features([claim.text], [pool], ANY)
            place = pool.cuis.index(claim.cui)
            similarity = compare_cosines(of_names, unrelated[number])
            names = [entry.alias for entry in of_claimed]
            values = list_values(claim.text, place, features, similarity, names)
            yield claim, values, bool(features[EXCLUDED][place])


def expand(text: str, context: str) -> str:
    """Return the long form of an abbreviation that its context defines, or the text."""
    return find_long_forms(context).get(text, text) if is_short_form(text) else text


def is_sure(measured: Measured) -> bool:
    """Return whether no link is needed to judge a claim."""
    if measured.chances.right < LIKELY:
        return False
    return measured.named or measured.decision is not None


def doubt_nearest(
    measured: Measured, claim: Claim, candidates: Sequence[Candidate]
) -> Measured:
    """Doubt a claim whose concept is the first candidate but is not likely."""
    first = candidates[0] if candidates else None
    if first is None or first["cui"] != claim.cui or measured.excluded:
        return measured
    probability = first["probability"]
    if probability is None or probability >= LACKING:
        return measured
    right = min(measured.chances.right, PERHAPS)
    lacking = measured.chances.right >= LIKELY
    chances = measured.chances._replace(right=right)
    return measured._replace(chances=chances, lacking=lacking)


def find_name_chance(
    named: Sequence[Named], concept: int, preferred: Collection[int] = ()
) -> float:
    """Return the chance of a concept of which a text is a name; 0 if it is not one.

    Args:
        preferred: The concepts whose preferred name it is: they come before others.
    """
    alike = {each.name.concept: 0 for each in named}
    for each in named:
        alike[each.name.concept] = max(alike[each.name.concept], each.closeness)
    if concept not in alike:
        return 0.0
    most = max(alike.values())
    best = {number for number, value in alike.items() if value == most}
    best = best.intersection(preferred) or best
    return OF_NAME / len(best) if concept in best else OF_OTHER_NAME


def add_counts(
    chances: Chances,
    counts: Mapping[str, Mapping[str, int]],
    claim: Claim,
    decision: Decision | None = None,
) -> Chances:
    """Return the chances after annotations, beside `PRIOR` mentions of the model.

    What people decided leaves nothing to the model.
    """
    if decision is not None:
        share = decision.documents / decision.total
        right = share if decision.cui == claim.cui else 1 - share
        return Chances(round(right, DIGITS), chances.related)
    of_text = counts[claim.text]
    if not of_text:
        return chances
    total = sum(of_text.values())
    count = of_text.get(claim.cui, 0)
    right = round((count + PRIOR * chances.right) / (total + PRIOR), DIGITS)
    return Chances(right, 1.0 if count else chances.related)


def judge_missing(found: FoundId) -> Verdict:
    """Return the verdict on a text without words, or on an id without a concept."""
    if found.cuis:
        return Verdict(UNSURE, cui=found.cuis[0], why="There is no text to compare.")
    why = "The knowledge base has no such id."
    if found.damaged:
        why = "Its last digit does not fit the others: an id of SNOMED CT is mistyped."
    if found.hint:
        why += f" {found.hint}."
    return Verdict(UNKNOWN, meant=found.meant, why=why)


def judge(verdict: Verdict, measured: Measured, found: FoundId) -> Verdict:
    """Return the verdict on a claim, of which all other fields are known."""
    right, related = measured.chances
    name, better, relation = verdict.name, verdict.better_name, verdict.relation
    instead = f", rather {better}" if better else ""
    wrong = related < UNRELATED or right < UNLIKELY
    if right >= LIKELY:
        if found.relation:
            how = NEAR, f"The code is {found.relation} than {name}."
        elif found.replaced:
            how = RETIRED, f"The id was retired; {name} is now {verdict.cui}."
        elif measured.decision is not None:
            how = RIGHT, f"People decided that the text means {name}."
        elif measured.named:
            what = "an id" if measured.coded else "a name"
            how = RIGHT, f"The text is {what} of {name}."
        else:
            how = RIGHT, f"No other concept is as near as {name}."
    elif relation:
        of = better if better and not found.relation else "the text"
        how = NEAR, f"{name} is a {relation} of {of}."
        if found.relation:
            how = NEAR, f"The code is {relation} than {name}{instead}."
    elif measured.decision is not None:
        means = f"means {better}" if better else "has no concept"
        how = WRONG, f"People decided that the text {means}."
    elif measured.excluded:
        how = WRONG, f"Another number, letter, side or word excludes {name}{instead}."
    elif measured.lacking:
        why = f"{name} is the nearest concept, but the right one may be missing."
        how = UNSURE, why
    elif wrong:
        how = WRONG, f"The text does not mean {name}{instead}."
    else:
        how = UNSURE, f"The text may mean {name}{instead}."
    return replace(verdict, verdict=how[0], why=how[1])
