"""Linked documents for annotation tools: doccano and Label Studio import them.

A document that could not be linked is left out: people cannot annotate it.
"""

import json
from collections.abc import Iterable
from typing import IO, Any

from ..entities import LinkedDoc, needs_text
from ..gold import LABEL


def write_doccano(
    docs: Iterable[LinkedDoc], file: IO[bytes], *, include_text: bool = True
) -> None:
    """Write lines to import as JSONL into a project for sequence labelling.

    A span has no place for an id. doccano keeps other fields of a line, and exports
    them: `links` has the offsets, the id, the name and the probability of each mention.
    """
    if not include_text:
        raise needs_text(format="doccano")
    for doc in docs:
        if doc.error:
            continue
        links = [
            [e["start"], e["end"], e["cui"], e["name"], e["probability"]]
            for e in doc.entities
            if e["cui"] is not None
        ]
        labels = [[e["start"], e["end"], e["label"] or LABEL] for e in doc.entities]
        data: dict[str, Any] = {"id": doc.id, "text": doc.text, "label": labels}
        line = json.dumps({**data, "links": links}, ensure_ascii=False)
        file.write(line.encode() + b"\n")


def write_label_studio(
    docs: Iterable[LinkedDoc], file: IO[bytes], *, include_text: bool = True
) -> None:
    """Write a list of tasks to import, each with a prediction.

    The labelling interface needs `<Labels name="label" toName="text">` and, for the id,
    `<TextArea name="cui" toName="text" perRegion="true"/>`. Scores are probabilities,
    that of a task the lowest, so that the least certain tasks can come first.
    """
    if not include_text:
        raise needs_text(format="labelstudio")
    between = b"[\n"
    for doc in docs:
        if doc.error:
            continue
        result: list[dict[str, Any]] = []
        for number, entity in enumerate(doc.entities, 1):
            place = {"start": entity["start"], "end": entity["end"]}
            region = {"id": str(number), "to_name": "text"}
            covered = doc.text[entity["start"] : entity["end"]]
            labels = {"text": covered, "labels": [entity["label"] or LABEL]}
            score = entity["probability"]
            named = {"from_name": "label", "type": "labels"}
            scored = {} if score is None else {"score": score}
            result.append({**region, **named, "value": {**place, **labels}, **scored})
            if entity["cui"] is not None:
                named = {"from_name": "cui", "type": "textarea"}
                value = {**place, "text": [entity["cui"]]}
                result.append({**region, **named, "value": value})
        model: dict[str, Any] = {"model_version": "spacy-sapbert", "result": result}
        if scores := [item["score"] for item in result if "score" in item]:
            model["score"] = min(scores)
        task = {"data": {"text": doc.text, "id": doc.id}, "predictions": [model]}
        file.write(between + json.dumps(task, ensure_ascii=False).encode())
        between = b",\n"
    file.write((b"" if between == b",\n" else between) + b"\n]\n")
