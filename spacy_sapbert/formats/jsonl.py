"""JSONL: one document a line, plain JSON, offsets in characters of the text."""

import json
from typing import IO, Any, Dict, Iterable, Optional

from spacy.tokens import Doc

from .entities import ATTRIBUTE_NAMES, AttributeNames, NamedDoc, describe_entities


def doc_to_json(
    number: Any,
    doc: Doc,
    *,
    spans_key: Optional[str] = None,
    include_text: bool = True,
    names: AttributeNames = ATTRIBUTE_NAMES,
) -> Dict[str, Any]:
    """Describe a document and its entities.

    number (Any): Id of the document, text or number.
    doc (Doc): The document.
    spans_key (Optional[str]): A span group; None = the entities.
    include_text (bool): Give the text of the document and of the mentions.
    names (AttributeNames): The custom attributes of the linker.
    RETURNS (Dict[str, Any]): `id`, `text` and `entities`, plain JSON types.
    """
    entities = describe_entities(doc, spans_key=spans_key, names=names)
    if include_text:
        return {"id": number, "text": doc.text, "entities": entities}
    for entity in entities:
        del entity["text"]
    return {"id": number, "entities": entities}


def write_docs(
    docs: Iterable[NamedDoc],
    file: IO[bytes],
    *,
    spans_key: Optional[str] = None,
    include_text: bool = True,
    names: AttributeNames = ATTRIBUTE_NAMES,
) -> None:
    """Write linked documents as JSONL; see `formats.Writer`."""
    for number, doc in docs:
        data = doc_to_json(
            number, doc, spans_key=spans_key, include_text=include_text, names=names
        )
        line = json.dumps(data, ensure_ascii=False, allow_nan=False)
        file.write(line.encode("utf8") + b"\n")
