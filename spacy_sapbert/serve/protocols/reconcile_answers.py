"""What a reconciliation service answers: manifest, candidates and properties."""

import asyncio
import json
from collections.abc import Iterable, Mapping
from itertools import accumulate
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.concurrency import run_in_threadpool

from ...errors import SapbertError
from ...io.version import __version__
from ...kb.database import is_encodable
from ...kb.knowledge_base import KnowledgeBase
from ...linking.candidates import Candidate
from ...linking.certainty import judge_link
from ...linking.link import Linked
from ...linking.options import LinkOptions, change_options
from ...mapping.lookup import find_coded
from ...mapping.terms import FOR_PEOPLE, is_term, list_dropped
from ...vocabularies.concepts import Concept
from ..problems import INVALID, status_of
from ..requests import check_texts
from ..search import count_types, name_type
from ..service import Service

SCHEMA = "http://www.w3.org/2004/02/skos/core"
FEW, MOST = 5, 100  # candidates of a query
MOST_TYPES = 20  # that the manifest has
ANY_TYPE = {"id": "concept", "name": "Any concept"}
NAMES, PARENTS = "names", "parents"
CODE = "code:"  # prefix of the property with the codes of a vocabulary
SOURCES, TYPES = "source", "types"
FIELDS = {SOURCES: "sources", TYPES: "types"}  # of a filter, by property
PROPERTIES = {
    "name": "Name",
    "definition": "Definition",
    TYPES: "Semantic types",
    NAMES: "All names",
    PARENTS: "Parents",
    SOURCES: "Vocabulary",
}
MOST_VALUES = 100  # of a property of a query


class QueryProperty(BaseModel):
    """A property that narrows a query.

    Attributes:
        v: A value or several, of which one must be right: texts, numbers, or entities.
    """

    pid: str
    v: Any

    @property
    def values(self) -> list[str]:
        """The values as texts."""
        values = self.v if isinstance(self.v, list) else [self.v]
        texts = [str(v.get("id", "") if isinstance(v, dict) else v) for v in values]
        return [text for text in map(str.strip, texts) if text and is_encodable(text)]


class ReconcileQuery(BaseModel):
    """A query of a batch; other fields are not used."""

    model_config = ConfigDict(strict=True)

    query: str
    type: str | Annotated[list[str], Field(max_length=MOST_VALUES)] | None = None
    limit: Annotated[float | None, Field(allow_inf_nan=False)] = None
    properties: Annotated[list[QueryProperty], Field(max_length=MOST_VALUES)] = []

    @property
    def types(self) -> list[str]:
        """The allowed semantic types; empty = all."""
        found = [self.type] if isinstance(self.type, str) else self.type or []
        types = {type for type in found if type}
        return [] if ANY_TYPE["id"] in types else sorted(types)

    @property
    def k(self) -> int:
        """The number of candidates."""
        return FEW if self.limit is None else int(min(max(self.limit, 1), MOST))


class ExtendProperty(BaseModel):
    """A property to fetch."""

    id: str


class ExtendQuery(BaseModel):
    """Ids of concepts, and properties to fetch."""

    ids: list[str]
    properties: list[ExtendProperty]


def describe_types(types: Iterable[str]) -> list[dict[str, str]]:
    """Return semantic types as the protocol has them."""
    return [{"id": type, "name": name_type(type)} for type in types]


def list_properties(kb: KnowledgeBase) -> list[dict[str, str]]:
    """Return ids and names of all properties."""
    codes = {
        f"{CODE}{source}": f"Code: {source}" for source in kb.store.sources_of_codes
    }
    return [{"id": id, "name": name} for id, name in (PROPERTIES | codes).items()]


def describe_service(kb: KnowledgeBase, base: str) -> dict[str, Any]:
    """Return the manifest."""
    types = [*count_types(kb)][: MOST_TYPES - 1]
    preview = f"{base}/reconcile/preview?id={{{{id}}}}"

    def path(name: str) -> dict[str, str]:
        return {"service_url": base, "service_path": f"/reconcile/{name}"}

    return {
        "versions": ["0.2"],
        "name": f"spacy-sapbert: {', '.join(kb.manifest.sources) or 'knowledge base'}",
        "identifierSpace": f"{base}/concepts/",
        "schemaSpace": SCHEMA,
        "serviceVersion": __version__,
        "defaultTypes": [ANY_TYPE, *describe_types(types)],
        "view": {"url": f"{base}/#look/{{{{id}}}}"},
        "preview": {"url": preview, "width": 480, "height": 320},
        "suggest": {
            name: path(f"suggest/{name}") for name in ("entity", "type", "property")
        },
        "extend": {"propose_properties": path("properties"), "property_settings": []},
    }


def is_match(text: str, linked: Linked) -> bool:
    """Return whether the first candidate is sure: what /column shows as linked."""
    certainty = judge_link(text, linked.cui, linked.candidates, note=linked.note)
    if certainty != "sure" or not is_term(text):
        return False
    dropped = list_dropped(text, linked.candidates[0]["alias"])
    return {part.kind for part in dropped}.isdisjoint(FOR_PEOPLE)


def describe_candidate(
    concept: Mapping[str, Any], description: str, score: float, *, match: bool
) -> dict[str, Any]:
    """Return a candidate of a query; the score is one of 100.

    OpenRefine preselects the type that most candidates of the first rows have. With a
    semantic type the other rows would lose their concepts, so that all have one.
    """
    return {
        "id": concept["cui"],
        "name": concept["name"],
        "description": description,
        "score": score,
        "match": match,
        "type": [ANY_TYPE, *describe_types(concept["types"])],
    }


def list_scores(candidates: Iterable[Candidate]) -> list[float]:
    """Return the scores of candidates, of 100, none of them higher than one before.

    The first has its probability, the others have their cosine. The learned order is
    not that of the cosines, but clients sort by the score, as the protocol has it.
    """
    scores = (
        one["score"] if one["probability"] is None else one["probability"]
        for one in candidates
    )
    return [round(100 * score, 2) for score in accumulate(scores, min)]


def describe_found(text: str, linked: Linked) -> list[dict[str, Any]]:
    """Return the candidates of a query."""
    match = is_match(text, linked)
    scores = list_scores(linked.candidates)
    return [
        describe_candidate(
            one,
            one["alias"] if one["alias"] != one["name"] else "",
            scores[place],
            match=match and place == 0,
        )
        for place, one in enumerate(linked.candidates)
    ]


Filter = dict[str, list[str]]  # the fields of a filter that are set


def make_filter(kb: KnowledgeBase, query: ReconcileQuery) -> Filter | None:
    """Return the filter of a query; None if no concept can be right.

    Properties that do not narrow, such as names, are not used.
    """
    filter: Filter = {"types": query.types} if query.types else {}
    for narrowing in query.properties:
        if not (values := narrowing.values):
            continue
        if narrowing.pid in FIELDS:
            filter[FIELDS[narrowing.pid]] = sorted({*values})
        elif narrowing.pid.startswith(CODE):
            source = narrowing.pid.removeprefix(CODE)
            coded = {cui for value in values for cui in kb.cuis(source, value)}
            filter["allow"] = sorted(coded.intersection(filter.get("allow", coded)))
            if not filter["allow"]:
                return None
    return filter


def describe_coded(
    kb: KnowledgeBase, query: ReconcileQuery, options: LinkOptions
) -> list[dict[str, Any]]:
    """Return the candidates of a query that is an id or a code, as a column has them.

    They stand alone. A query that is neither has none, nor has one whose filter is
    wrong.
    """
    try:
        found = find_coded(kb, query.query, options, options.filter)
    except SapbertError as error:
        if status_of(error) != INVALID:
            raise
        return []  # an unknown type
    if found is None:
        return []
    match = found.cui is not None
    return [
        describe_candidate(one, one["alias"], 100.0, match=match)
        for one in found.candidates
    ]


async def reconcile(service: Service, batch: Mapping[str, Any]) -> dict[str, Any]:
    """Answer a batch: each key has a result, which is empty if its query is invalid.

    Raises:
        SapbertError: If the batch is too large, or the queue is full.
    """
    kb = service.kb
    answers: dict[str, Any] = {key: {"result": []} for key in batch}
    queries: dict[str, ReconcileQuery] = {}
    for key, value in batch.items():
        try:
            query = ReconcileQuery.model_validate(value)
        except ValidationError:
            continue
        if is_encodable(query.query):
            queries[key] = query
    check_texts([one.query for one in queries.values()], service.limits, "queries")

    def prepare() -> dict[str, list[str]]:
        """Answer the queries that are ids, and group the others by their filter."""
        groups: dict[str, list[str]] = {}
        for key, query in queries.items():
            if (filter := make_filter(kb, query)) is None:
                continue
            settings = {"filter": filter} if filter else {}
            options = change_options(service.options, settings)
            if coded := describe_coded(kb, query, options):
                answers[key] = {"result": coded[: query.k]}
            else:
                groups.setdefault(json.dumps(settings, sort_keys=True), []).append(key)
        return groups

    async def link(group: str, keys: list[str]) -> None:
        settings = {"k": max(queries[key].k for key in keys), **json.loads(group)}
        texts = [queries[key].query for key in keys]
        try:
            results = await service.link_mentions(texts, settings)
        except SapbertError as error:
            if status_of(error) != INVALID:
                raise
            return  # an unknown type
        for key, text, result in zip(keys, texts, results, strict=True):
            found = describe_found(text, result.linked)
            answers[key] = {"result": found[: queries[key].k]}

    groups = await run_in_threadpool(prepare)
    # Queries with the same filter are linked together, with the most candidates.
    await asyncio.gather(*(link(*group) for group in groups.items()))
    return answers


def list_values(kb: KnowledgeBase, concept: Concept, property: str) -> list[Any]:
    """Return the values of a property of a concept."""
    if property == PARENTS:
        parents = [kb.concept(parent) for parent in concept.parents]
        return [{"id": one.cui, "name": one.name} for one in parents if one]
    values = {
        "name": [concept.name],
        "definition": [concept.definition] if concept.definition else [],
        TYPES: concept.types,
        NAMES: concept.aliases,
        SOURCES: sorted(concept.sources),
        **{f"{CODE}{source}": codes for source, codes in concept.codes.items()},
    }
    return [{"str": value} for value in values.get(property, [])]


def extend(kb: KnowledgeBase, query: ExtendQuery) -> dict[str, Any]:
    """Return the values of properties of concepts."""
    known = {one["id"]: one["name"] for one in list_properties(kb)}
    wanted = [one.id for one in query.properties]
    rows: dict[str, Any] = {}
    for id in query.ids:
        concept = kb.concept(id) if is_encodable(id) else None
        rows[id] = {
            name: list_values(kb, concept, name) if concept else [] for name in wanted
        }
    meta = [{"id": name, "name": known.get(name, name)} for name in wanted]
    return {"meta": meta, "rows": rows}
