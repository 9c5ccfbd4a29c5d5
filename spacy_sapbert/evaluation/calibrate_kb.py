"""kb/ + annotated mentions → the first answer to each, and a calibration of them."""

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from tqdm import tqdm

from .. import __version__
from ..errors import Errors, SapbertError
from ..kb.knowledge_base import KnowledgeBase
from ..system.reading import file_digest
from .calibration import calibrate_answers, measure_calibration
from .gold_mentions import GoldMention, check_names, make_resolver, read_mentions
from .thresholds import Criterion, Judged, make_judged, number_groups

MENTIONS_AT_ONCE = 256


class AnnotatedFile(NamedTuple):
    """A file of annotated mentions, read.

    path (Path): The file.
    golds (list[GoldMention]): Its mentions, also those without an id.
    """

    path: Path
    golds: list[GoldMention]


def read_files(
    paths: Sequence[Path], *, bars_join_parts: bool = False, limit: int = 0
) -> list[AnnotatedFile]:
    """Read files of annotated mentions.

    paths (Sequence[Path]): The files, each of another name.
    bars_join_parts (bool): See `split_ids`.
    limit (int): Read the first mentions of a file only; 0 = all.
    RETURNS (list[AnnotatedFile]): One for each.
    RAISES (SapbertError): If a file is not usable.
    """
    check_names(paths)
    return [
        AnnotatedFile(
            path,
            list(
                islice(
                    read_mentions(path, bars_join_parts=bars_join_parts), limit or None
                )
            ),
        )
        for path in paths
    ]


def answer_first(
    kb: KnowledgeBase, mentions: Sequence[str], *, progress: bool = False
) -> dict[str, dict[str, Any]]:
    """Link mentions as the linker does, each distinct text once.

    kb (KnowledgeBase): The knowledge base. Its threshold does not matter.
    mentions (Sequence[str]): The texts.
    progress (bool): Show a bar.
    RETURNS (dict[str, dict[str, Any]]): The best candidate of each text that has any.
    """
    texts = list(dict.fromkeys(mentions))
    best: dict[str, dict[str, Any]] = {}
    with tqdm(total=len(texts), unit=" mentions", disable=not progress) as bar:
        for start in range(0, len(texts), MENTIONS_AT_ONCE):
            batch = texts[start : start + MENTIONS_AT_ONCE]
            for text, linked in zip(batch, kb.link(batch, k=1), strict=True):
                if linked.candidates:
                    best[text] = linked.candidates[0]
            bar.update(len(batch))
    return best


def judge_first(
    kb: KnowledgeBase,
    files: Sequence[AnnotatedFile],
    aliases: dict[str, str],
    *,
    progress: bool = False,
) -> Judged:
    """Hold the first answer to each mention against what people decided.

    It is right if it is a gold concept of every part of the mention; a composite is
    linked as one text, so that hardly any answer to one is right. A mention is a true
    NIL if it has no id, or the knowledge base has a concept for none of its ids.

    kb (KnowledgeBase): The knowledge base.
    files (Sequence[AnnotatedFile]): The mentions.
    aliases (dict[str, str]): From `read_aliases`.
    progress (bool): Show a bar.
    RETURNS (Judged): The first answers, by ascending cosine.
    """

    def lookup(cui: str) -> str | None:
        concept = kb.concept(cui)
        return None if concept is None else concept.cui

    golds = [gold for file in files for gold in file.golds]
    best = answer_first(kb, [gold.mention for gold in golds], progress=progress)
    resolve = make_resolver(lookup, aliases)
    scores: list[float | None] = []
    right: list[bool] = []
    known: list[bool] = []
    for gold in golds:
        parts, answer = resolve(gold), best.get(gold.mention)
        cui = None if answer is None else aliases.get(answer["cui"], answer["cui"])
        scores.append(None if answer is None else answer["score"])
        right.append(bool(parts) and all(cui in part for part in parts))
        known.append(any(parts))
    documents = [
        (file.path.name, gold.doc) if gold.doc else None
        for file in files
        for gold in file.golds
    ]
    return make_judged(scores, right, known, number_groups(documents))


def describe_files(files: Sequence[AnnotatedFile]) -> dict[str, Any]:
    """Name files of annotated mentions, without where they lie.

    files (Sequence[AnnotatedFile]): The files.
    RETURNS (dict[str, Any]): Name and sha256 of each, and how many documents they name.
    """
    documents = {
        (file.path, gold.doc) for file in files for gold in file.golds if gold.doc
    }
    return {
        "documents": len(documents),
        "files": [
            {"file": file.path.name, "sha256": file_digest(file.path)} for file in files
        ],
    }


def calibrate_kb(
    kb: KnowledgeBase,
    files: Sequence[AnnotatedFile],
    criterion: Criterion,
    *,
    aliases: dict[str, str] | None = None,
    settings: dict[str, Any] | None = None,
    progress: bool = False,
) -> dict[str, Any]:
    """Find the threshold of a knowledge base, and the evidence for it.

    kb (KnowledgeBase): The knowledge base; nothing is written to it.
    files (Sequence[AnnotatedFile]): The mentions.
    criterion (Criterion): By what the threshold is chosen.
    aliases (dict[str, str] | None): From `read_aliases`.
    settings (dict[str, Any] | None): How the files were read, to be written down.
    progress (bool): Show a bar.
    RETURNS (dict[str, Any]): What meta.json keeps as `calibration`.
    RAISES (SapbertError): See `calibrate_answers`.
    """
    judged = judge_first(kb, files, aliases or {}, progress=progress)
    level = f"={criterion.level:g}" if criterion.level else ""
    return {
        "criterion": f"{criterion.name}{level}",
        **describe_files(files),
        "settings": settings or {},
        **calibrate_answers(judged, criterion),
        "date": datetime.now(UTC).date().isoformat(),
        "package_version": __version__,
    }


def check_kb(
    kb: KnowledgeBase,
    files: Sequence[AnnotatedFile],
    *,
    aliases: dict[str, str] | None = None,
    settings: dict[str, Any] | None = None,
    progress: bool = False,
) -> dict[str, Any]:
    """Try the calibration of a knowledge base on other mentions.

    kb (KnowledgeBase): The knowledge base; nothing is written to it.
    files (Sequence[AnnotatedFile]): The mentions.
    aliases (dict[str, str] | None): From `read_aliases`.
    settings (dict[str, Any] | None): How the files were read, to be written down.
    progress (bool): Show a bar.
    RETURNS (dict[str, Any]): As `calibrate_kb`, but of what the knowledge base has.
    RAISES (SapbertError): If it is not calibrated; see also `measure_calibration`.
    """
    calibration = kb.meta.get("calibration")
    if calibration is None:
        raise SapbertError(Errors.E587.format(path=kb.folder))
    judged = judge_first(kb, files, aliases or {}, progress=progress)
    return {
        "criterion": calibration["criterion"],
        **describe_files(files),
        "settings": settings or {},
        **measure_calibration(judged, calibration),
    }
