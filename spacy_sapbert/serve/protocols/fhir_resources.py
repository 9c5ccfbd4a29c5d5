"""The resources of FHIR R4 that describe a knowledge base and the service.

SOURCE: https://hl7.org/fhir/R4/terminology-module.html
"""

from typing import Any

from ...io.version import __version__
from ...kb.knowledge_base import KnowledgeBase
from .fhir_codes import list_systems
from .fhir_operations import EXPAND, OPERATIONS, PROPERTIES


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
        resources.append({"type": kind, "operation": operations})
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
