"""What a reconciliation service answers: manifest, candidates and properties."""

import asyncio
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ...errors import SapbertError
from ...io.version import __version__
from ...kb.database import is_encodable
from ...kb.knowledge_base import KnowledgeBase
from ...linking.link import Linked
from ...vocabularies.concepts import Concept
from ..problems import status_of
from ..requests import check_texts
from ..search import count_types, name_type
from ..service import MentionResult, Service

VERSIONS = ["0.2"]
SCHEMA = "http://www.w3.org/2004/02/skos/core"
FEW, MOST = 5, 100  # candidates of a query
MOST_TYPES = 20  # that are suggested
PREVIEW = {"width": 480, "height": 320}
PROPERTIES = {"name": "Name", "definition": "Definition", "types": "Semantic types"}
NAMES, PARENTS = "names", "parents"
CODE = "code:"  # prefix of the property with the codes of a vocabulary


class ReconcileQuery(BaseModel):
    """A query of a batch; other fields and `properties` are not used."""

    model_config = ConfigDict(strict=True)

    query: str
    type: str | list[str] | None = None
    limit: Annotated[float | None, Field(allow_inf_nan=False)] = None

    @property
    def types(self) -> list[str]:
        """The allowed semantic types; empty = all."""
        found = [self.type] if isinstance(self.type, str) else self.type or []
        return sorted({type for type in found if type})

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


def describe_service(kb: KnowledgeBase, base: str) -> dict[str, Any]:
    """Return the manifest."""
    types = [*count_types(kb)][:MOST_TYPES]
    return {
        "versions": VERSIONS,
        "name": f"spacy-sapbert: {', '.join(kb.manifest.sources) or 'knowledge base'}",
        "identifierSpace": f"{base}/concepts/",
        "schemaSpace": SCHEMA,
        "serviceVersion": __version__,
        "defaultTypes": [describe_type(type) for type in types],
        "view": {"url": f"{base}/reconcile/preview?id={{{{id}}}}"},
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


def is_match(kb: KnowledgeBase, linked: Linked) -> bool:
    """Return whether the first candidate is right, as far as can be known.

    The mention is linked to it, no other concept has its score, and the score reaches a
    threshold that was calibrated or taught; without one the mention must be a name.
    """
    if not linked.accepted or linked.accepted[0]["tie"] is not None:
        return False
    calibrated = kb.manifest.calibration is not None or kb.manifest.has_ranker
    return calibrated or linked.accepted[0]["score"] == 1.0


def describe_candidates(kb: KnowledgeBase, linked: Linked) -> list[dict[str, Any]]:
    """Return the candidates of a query; the score is that of 100."""
    match = is_match(kb, linked)
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
                "type": [describe_type(type) for type in one["types"]],
                "features": features,
            }
        )
    return found


async def reconcile(service: Service, batch: Mapping[str, Any]) -> dict[str, Any]:
    """Answer a batch: each key has a result, which is empty if its query is invalid.

    Raises:
        SapbertError: If the batch is too large, or the queue is full.
    """
    groups: dict[tuple[tuple[str, ...], int], dict[str, str]] = {}
    for key, value in batch.items():
        try:
            query = ReconcileQuery.model_validate(value)
        except ValidationError:
            continue
        if is_encodable(query.query):
            group = groups.setdefault((tuple(query.types), query.k), {})
            group[key] = query.query
    texts = [text for group in groups.values() for text in group.values()]
    check_texts(texts, service.limits, "queries")
    kb = service.kb

    async def link(types: tuple[str, ...], k: int, group: dict[str, str]) -> None:
        settings: dict[str, Any] = {"k": k}
        if types:
            settings["filter"] = {"types": [*types]}
        try:
            found = await service.link_mentions([*group.values()], settings)
        except SapbertError as error:
            if status_of(error) != 422:
                raise
            return  # an unknown type
        results: list[MentionResult] = found
        for key, result in zip(group, results, strict=True):
            answers[key] = {"result": describe_candidates(kb, result.linked)}

    answers: dict[str, Any] = {key: {"result": []} for key in batch}
    await asyncio.gather(*(link(*key, group) for key, group in groups.items()))
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
        }.get(property, [])
    return [{"str": value} for value in values]


def list_properties(kb: KnowledgeBase) -> dict[str, str]:
    """Return the names of all properties by their ids."""
    codes = {f"{CODE}{s}": f"Code: {s}" for s in kb.store.sources_of_codes()}
    return {**PROPERTIES, NAMES: "All names", PARENTS: "Parents", **codes}


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
