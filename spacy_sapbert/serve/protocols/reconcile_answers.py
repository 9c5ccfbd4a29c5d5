"""What a reconciliation service answers: manifest, candidates and properties."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.concurrency import run_in_threadpool

from ...errors import SapbertError
from ...io.version import __version__
from ...kb.database import is_encodable
from ...kb.knowledge_base import KnowledgeBase
from ...linking.certainty import judge_link
from ...linking.link import Linked
from ...mapping.lookup import has_threshold, is_name
from ...mapping.terms import is_term
from ...vocabularies.concepts import Concept
from ..lookup import find_code
from ..problems import status_of
from ..requests import check_texts
from ..search import count_types, name_type
from ..service import MentionResult, Service

VERSIONS = ["0.2"]
SCHEMA = "http://www.w3.org/2004/02/skos/core"
FEW, MOST = 5, 100  # candidates of a query
MOST_TYPES = 20  # that are suggested
ANY_TYPE = {"id": "concept", "name": "Any concept"}
PREVIEW = {"width": 480, "height": 320}
PROPERTIES = {"name": "Name", "definition": "Definition", "types": "Semantic types"}
NAMES, PARENTS = "names", "parents"
CODE = "code:"  # prefix of the property with the codes of a vocabulary
SOURCES, TYPES = "source", "types"
FIELDS = {SOURCES: "sources", TYPES: "types"}  # of a filter, by property
MOST_VALUES = 100  # of a property of a query
Texts = Annotated[list[str], Field(max_length=MOST_VALUES)]


class PropertyValue(BaseModel):
    """A value of a property: an entity."""

    model_config = ConfigDict(strict=True)

    id: str


Value = str | float | bool | PropertyValue


class QueryProperty(BaseModel):
    """A property that narrows a query, and its values, of which one must be right."""

    model_config = ConfigDict(strict=True)

    pid: str
    v: Value | Annotated[list[Value], Field(max_length=MOST_VALUES)]

    @property
    def values(self) -> list[str]:
        """The values as texts."""
        values = self.v if isinstance(self.v, list) else [self.v]
        texts = (v.id if isinstance(v, PropertyValue) else str(v) for v in values)
        return [text.strip() for text in texts if text.strip()]


class ReconcileQuery(BaseModel):
    """A query of a batch; other fields are not used."""

    model_config = ConfigDict(strict=True)

    query: str
    type: str | Texts | None = None
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


def describe_type(type: str) -> dict[str, str]:
    """Return a semantic type as the protocol has it."""
    return {"id": type, "name": name_type(type)}


def describe_types(types: Sequence[str]) -> list[dict[str, str]]:
    """Return the types of a concept, first the one that all have.

    OpenRefine preselects the type that most candidates of the first rows have. With a
    semantic type the other rows would lose their concepts.
    """
    return [ANY_TYPE, *map(describe_type, types)]


def describe_service(kb: KnowledgeBase, base: str) -> dict[str, Any]:
    """Return the manifest."""
    types = [*count_types(kb)][: MOST_TYPES - 1]
    return {
        "versions": VERSIONS,
        "name": f"spacy-sapbert: {', '.join(kb.manifest.sources) or 'knowledge base'}",
        "identifierSpace": f"{base}/concepts/",
        "schemaSpace": SCHEMA,
        "serviceVersion": __version__,
        "defaultTypes": describe_types(types),
        "view": {"url": f"{base}/#look/{{{{id}}}}"},
        "preview": {"url": f"{base}/reconcile/preview?id={{{{id}}}}", **PREVIEW},
        "suggest": {
            name: {"service_url": base, "service_path": f"/reconcile/suggest/{name}"}
            for name in ("entity", "type", "property")
        },
        "extend": {
            "propose_properties": {
                "service_url": base,
                "service_path": "/reconcile/properties",
            },
            "property_settings": [],
        },
    }


def is_match(service: Service, text: str, linked: Linked) -> bool:
    """Return whether the first candidate is sure: what /column shows as linked."""
    cui, candidates = linked.cui, linked.candidates
    sure = judge_link(text, cui, candidates, note=linked.note) == "sure"
    return (
        sure
        and is_term(text)
        and (
            has_threshold(service.kb, service.options)
            or is_name(service.kb, text, linked)
        )
    )


def describe_candidates(
    service: Service, text: str, linked: Linked
) -> list[dict[str, Any]]:
    """Return the candidates of a query; the score is that of 100."""
    match = is_match(service, text, linked)
    found = []
    for place, one in enumerate(linked.candidates):
        features = [{"id": "cosine", "value": one["score"]}]
        if one["probability"] is not None:
            features.append({"id": "probability", "value": one["probability"]})
        found.append(
            {
                "id": one["cui"],
                "name": one["name"],
                "description": one["alias"] if one["alias"] != one["name"] else "",
                "score": round(100 * one["score"], 2),
                "match": match and place == 0,
                "type": describe_types(one["types"]),
                "features": features,
            }
        )
    return found


Filter = dict[str, list[str]]  # the fields of a filter that are set


def make_filter(kb: KnowledgeBase, query: ReconcileQuery) -> Filter | None:
    """Return the filter of a query; None if no concept can be right.

    Properties that do not narrow, such as names, are not used.
    """
    filter: Filter = {}
    if query.types:
        filter["types"] = query.types
    allowed: set[str] | None = None
    for narrowing in query.properties:
        values = [value for value in narrowing.values if is_encodable(value)]
        if not values:
            continue
        if narrowing.pid in (SOURCES, TYPES):
            filter[FIELDS[narrowing.pid]] = sorted({*values})
        elif narrowing.pid.startswith(CODE):
            source = narrowing.pid.removeprefix(CODE)
            coded = {cui for value in values for cui in kb.cuis(source, value)}
            allowed = coded if allowed is None else allowed & coded
    if allowed is not None and not allowed:
        return None
    return filter if allowed is None else {**filter, "allow": sorted(allowed)}


def describe_coded(
    kb: KnowledgeBase, query: ReconcileQuery, filter: Filter
) -> list[dict[str, Any]]:
    """Return the candidates of a query that is an id or a code, if it is one.

    Args:
        filter: Of the query; only its `types` and `allow` narrow ids.
    """
    # A term without digits is not looked up: a code such as "MI" is also a name.
    is_code = any(map(str.isdigit, query.query))
    concepts = map(kb.concept, find_code(kb, query.query) if is_code else [])
    allowed = [
        concept
        for concept in concepts
        if concept is not None
        and ("types" not in filter or {*filter["types"]} & {*concept.types})
        and ("allow" not in filter or concept.cui in filter["allow"])
    ]
    return [
        {
            "id": concept.cui,
            "name": concept.name,
            "description": query.query.strip(),
            "score": 100.0,
            "match": len(allowed) == 1,
            "type": describe_types(concept.types),
            "features": [{"id": "code", "value": True}],
        }
        for concept in allowed
    ]


def merge_candidates(
    coded: list[dict[str, Any]], linked: list[dict[str, Any]], k: int
) -> list[dict[str, Any]]:
    """Return the concepts named by id, then the others, of which none matches then."""
    ids = {one["id"] for one in coded}
    others = [one for one in linked if one["id"] not in ids]
    if coded:
        others = [{**one, "match": False} for one in others]
    return [*coded, *others][:k]


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

    def prepare() -> dict[str, tuple[Filter, list[dict[str, Any]]]]:
        filters = {key: make_filter(kb, query) for key, query in queries.items()}
        return {
            key: (filter, describe_coded(kb, queries[key], filter))
            for key, filter in filters.items()
            if filter is not None
        }

    prepared = await run_in_threadpool(prepare)
    # Queries with the same filter are linked together, with the most candidates.
    groups: dict[str, list[str]] = {}
    for key, (filter, _) in prepared.items():
        groups.setdefault(json.dumps(filter, sort_keys=True), []).append(key)

    async def link(keys: list[str]) -> None:
        filter = prepared[keys[0]][0]
        settings: dict[str, Any] = {"k": max(queries[key].k for key in keys)}
        if filter:
            settings["filter"] = filter
        texts = [queries[key].query for key in keys]
        try:
            results: list[MentionResult] = await service.link_mentions(texts, settings)
        except SapbertError as error:
            if status_of(error) != 422:
                raise
            return  # an unknown type
        for key, result in zip(keys, results, strict=True):
            found = describe_candidates(service, queries[key].query, result.linked)
            merged = merge_candidates(prepared[key][1], found, queries[key].k)
            answers[key] = {"result": merged}

    await asyncio.gather(*map(link, groups.values()))
    return answers


def list_values(kb: KnowledgeBase, concept: Concept, property: str) -> list[Any]:
    """Return the values of a property of a concept."""
    if property.startswith(CODE):
        values = concept.codes.get(property.removeprefix(CODE), [])
    elif property == PARENTS:
        parents = [kb.concept(parent) for parent in concept.parents]
        return [{"id": one.cui, "name": one.name} for one in parents if one]
    else:
        values = {
            "name": [concept.name],
            "definition": [concept.definition] if concept.definition else [],
            "types": concept.types,
            NAMES: concept.aliases,
            SOURCES: sorted(concept.sources),
        }.get(property, [])
    return [{"str": value} for value in values]


def list_properties(kb: KnowledgeBase) -> dict[str, str]:
    """Return the names of all properties by their ids."""
    codes = {f"{CODE}{s}": f"Code: {s}" for s in kb.store.sources_of_codes}
    others = {NAMES: "All names", PARENTS: "Parents", SOURCES: "Vocabulary"}
    return {**PROPERTIES, **others, **codes}


def extend(kb: KnowledgeBase, query: ExtendQuery) -> dict[str, Any]:
    """Return the values of properties of concepts."""
    known = list_properties(kb)
    wanted = [one.id for one in query.properties]
    rows: dict[str, Any] = {}
    for id in query.ids:
        concept = kb.concept(id) if is_encodable(id) else None
        rows[id] = {
            name: list_values(kb, concept, name) if concept else [] for name in wanted
        }
    meta = [{"id": name, "name": known.get(name, name)} for name in wanted]
    return {"meta": meta, "rows": rows}
