"""What was added to a knowledge base and removed from it since it was built."""

import json
from pathlib import Path
from typing import Any

from ..vocabularies.concepts import Concept, read_concepts
from .indexes.registry import load_index
from .layers import Layer

CONCEPTS_FILE = "concepts.jsonl"
REMOVED_FILE = "removed.json"

Removed = dict[str, set[str]]  # names by concept; an empty set is the whole concept


def overlay_folder(folder: Path, meta: dict[str, Any]) -> Path | None:
    """Find what was added to a knowledge base.

    folder (Path): Of the knowledge base.
    meta (dict[str, Any]): Its meta.json.
    RETURNS (Path | None): The folder of the overlay, if there is one.
    """
    overlay = meta.get("overlay")
    return None if overlay is None else folder / overlay["folder"]


def read_removed(folder: Path, meta: dict[str, Any]) -> Removed:
    """Read what is gone from what was built.

    folder (Path): Of the knowledge base, verified.
    meta (dict[str, Any]): Its meta.json.
    RETURNS (Removed): By concept; an empty set is the whole concept.
    """
    path = overlay_folder(folder, meta)
    if path is None:
        return {}
    data = json.loads((path / REMOVED_FILE).read_text("utf8"))
    return {cui: set(aliases) for cui, aliases in data.items()}


def open_overlay(folder: Path, meta: dict[str, Any], *, first: int) -> Layer | None:
    """Open what was added to a knowledge base.

    folder (Path): Of the knowledge base, verified.
    meta (dict[str, Any]): Its meta.json.
    first (int): The number that its row 0 gets.
    RETURNS (Layer | None): Its concepts, if there are any.
    """
    path = overlay_folder(folder, meta)
    if path is None or not meta["overlay"]["rows"]:
        return None
    rows, width = meta["overlay"]["rows"], meta["encoder"]["width"]
    index = load_index(path, backend="exact", settings={}, rows=rows, width=width)
    return Layer(path, lambda: index, first=first, rows=rows, removed={})


def read_overlay(folder: Path, meta: dict[str, Any]) -> tuple[list[Concept], Removed]:
    """Read what was added and removed, as people gave it.

    folder (Path): Of the knowledge base, verified.
    meta (dict[str, Any]): Its meta.json.
    RETURNS (tuple[list[Concept], Removed]): Both empty where there is no overlay.
    """
    path = overlay_folder(folder, meta)
    if path is None:
        return [], {}
    return list(read_concepts(path / CONCEPTS_FILE)), read_removed(folder, meta)
