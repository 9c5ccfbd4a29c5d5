"""The resources of FHIR R4 that describe a knowledge base and the service.

SOURCE: https://hl7.org/fhir/R4/terminology-module.html
"""

from typing import Any

from ...io.version import __version__
from ...kb.knowledge_base import KnowledgeBase
from .fhir_codes import CodeSystem, count_codes, list_systems
from .fhir_operations import EXPAND, OPERATIONS, PROPERTIES

SEARCHED = ("CodeSystem", "ValueSet")


def describe_system(kb: KnowledgeBase, system: CodeSystem) -> dict[str, Any]:
    """Return a code system as a resource, without its codes."""
    return {
        "resourceType": "CodeSystem",
        "id": system.id,
        "url": system.url,
        "name": system.name,
        "status": "active",
        "content": "not-present",
        "caseSensitive": True,
        "valueSet": system.value_set,
        "hierarchyMeaning": "is-a",
        "count": count_codes(kb, system),
        "property": [
            {"code": code, "description": text, "type": kind}
            for code, text in PROPERTIES.items()
            for kind in [
                {"definition": "string", "inactive": "boolean"}.get(code, "code")
            ]
        ],
    }


def describe_value_set(system: CodeSystem) -> dict[str, Any]:
    """Return the value set of a code system as a resource."""
    return {
        "resourceType": "ValueSet",
        "id": system.id,
        "url": system.value_set,
        "name": system.name,
        "status": "active",
        "compose": {"include": [{"system": system.url}]},
    }


def make_bundle(base: str, resources: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what a search found.

    Args:
        base: The address of FHIR in this service.
    """
    entries = [
        {
            "fullUrl": f"{base}/{one['resourceType']}/{one['id']}",
            "resource": one,
            "search": {"mode": "match"},
        }
        for one in resources
    ]
    bundle = {"resourceType": "Bundle", "type": "searchset", "total": len(entries)}
    return {**bundle, **({"entry": entries} if entries else {})}


def describe_instance(kind: str, now: str) -> dict[str, Any]:
    """Return what the two statements of capabilities begin with."""
    return {
        "resourceType": kind,
        "status": "active",
        "date": now,
        "kind": "instance",
        "software": {"name": "spacy-sapbert", "version": __version__},
        "implementation": {"description": "The codes of one knowledge base."},
    }


def describe_capabilities(now: str) -> dict[str, Any]:
    """Return what of FHIR the service has."""
    resources = []
    for kind in ("CodeSystem", "ConceptMap", "ValueSet"):
        definition = f"http://hl7.org/fhir/OperationDefinition/{kind}-"
        operations = [
            {"name": one.name, "definition": f"{definition}{one.name}"}
            for one in OPERATIONS
            if one.resource == kind
        ]
        resource: dict[str, Any] = {"type": kind}
        if kind in SEARCHED:
            resource["interaction"] = [{"code": "read"}, {"code": "search-type"}]
            resource["searchParam"] = [{"name": "url", "type": "uri"}]
        resources.append({**resource, "operation": operations})
    return {
        **describe_instance("CapabilityStatement", now),
        "fhirVersion": "4.0.1",
        "format": ["json"],
        "rest": [{"mode": "server", "resource": resources}],
    }


def describe_terminology(kb: KnowledgeBase, now: str) -> dict[str, Any]:
    """Return the code systems of the knowledge base, and how they can be expanded."""
    properties = [*PROPERTIES]
    return {
        **describe_instance("TerminologyCapabilities", now),
        "codeSystem": [
            {
                "uri": system.url,
                "version": [
                    {"isDefault": True, "compositional": False, "property": properties}
                ],
                "subsumption": True,
            }
            for system in list_systems(kb)
        ],
        "expansion": {
            "hierarchical": False,
            "paging": True,
            "incomplete": False,
            "parameter": [{"name": name} for name in EXPAND.takes],
            "textFilter": "The codes of the concepts that a search finds, best first.",
        },
        "codeSearch": "all",
        "validateCode": {"translations": False},
        "translation": {"needsMap": False},
    }
