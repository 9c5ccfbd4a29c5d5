"""XL-BEL: lines `id||mention`, or `id||mention||context`, the ids first."""

from collections.abc import Iterator
from pathlib import Path

from spacy_sapbert.evaluation.gold_mentions import BARS, looks_like_ids
from spacy_sapbert.formats.gold import NOWHERE, place_mention, split_ids
from spacy_sapbert.system.reading import read_lines
from training.corpora.registry import GoldDocument, GoldSpan
from training.errors import Errors, SapbertError

OPEN, CLOSE = "<tgt>", "</tgt>"


def read_xlbel(path: Path) -> Iterator[GoldDocument]:
    """Read mentions from Wikipedia, one on a line, with their sentences if present.

    path (Path): The file, plain or `.gz`. Several ids with `|` between them are
        alternatives. In a context the mention is between `<tgt>` and `</tgt>`, which
        are removed.
    YIELDS (GoldDocument): Each line; its id is the number of the line.
    RAISES (SapbertError): With file and line, at the first bad line.
    SOURCE: Liu et al. (2021), Learning Domain-Specialised Representations for
        Cross-Lingual Biomedical Entity Linking.
    """
    for number, line in read_lines(path):
        if not line.strip():
            continue
        ids, *rest = line.split(BARS, 2)  # a context may have bars
        if not rest or (looks_like_ids(rest[0]) and not looks_like_ids(ids)):
            raise SapbertError(Errors.E715.format(path=path, line=number))
        mention, text, offsets = rest[0].strip(), "", NOWHERE
        if not mention:
            raise SapbertError(Errors.E704.format(path=path, line=number))
        if len(rest) > 1:
            context = rest[1]
            before, _, marked = context.partition(OPEN)
            inside, _, after = marked.partition(CLOSE)
            if context.count(OPEN) != 1 or marked.count(CLOSE) != 1 or CLOSE in before:
                raise SapbertError(Errors.E716.format(path=path, line=number))
            text = before + inside + after
            place = len(before), len(before) + len(inside)
            start, end, _ = place_mention(path, number, text, place, mention)
            offsets = start, end
        span = GoldSpan(*offsets, "", mention, split_ids(ids), number)
        yield GoldDocument(str(number), text, [span])
