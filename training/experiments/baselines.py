"""Knowledge base + gold mentions → the accuracy of what is simpler than an encoder."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import typer

from spacy_sapbert.evaluation.accuracy import Answer, Ranker
from spacy_sapbert.evaluation.evaluate import describe_settings
from spacy_sapbert.evaluation.gold_mentions import (
    Resolve,
    fold_text,
    make_resolver,
    read_aliases,
    read_mentions,
    read_pairs,
)
from spacy_sapbert.evaluation.rankers import kb_lookup, kb_ranker
from spacy_sapbert.evaluation.score_mentions import (
    EvaluationSettings,
    rank_mentions,
    score_mentions,
    select_mentions,
)
from spacy_sapbert.formats.corpus import corpus_digest
from spacy_sapbert.io.plugins import require
from spacy_sapbert.io.terminal import msg
from spacy_sapbert.io.writing import check_outputs, write_json
from spacy_sapbert.kb.knowledge_base import load_kb
from training.data.dictionary import (
    Dictionary,
    best_answers,
    list_answers,
    read_dictionary,
)
from training.data.options import AliasFile, Force, Quiet

MANY_NAMES = 10_000  # from here on rare 3-grams are dropped, as scispaCy does
BATCH_SIZE = 64  # limits the memory for the cosines with a million names
TRAINING_SCORE = 2.0  # above every cosine


def evaluate_baseline(
    kb: Annotated[str, typer.Argument(help="Knowledge base whose names are used.")],
    mentions: Annotated[list[Path], typer.Argument(help="As for `evaluate`.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="results.json to write.")
    ],
    baseline: Annotated[
        Literal["exact", "tfidf", "back-off"],
        typer.Option(
            help="exact = equal but for case and white space; tfidf = 3-grams, an "
            "upper bound for scispaCy's linker; back-off = the mentions of --train, "
            "then the knowledge base.",
        ),
    ],
    train: Annotated[
        list[Path], typer.Option(help="Training mentions; may be repeated.")
    ] = [],  # noqa: B006
    seen: Annotated[
        list[Path], typer.Option(help="As for `evaluate`; may be repeated.")
    ] = [],  # noqa: B006
    aliases: AliasFile = None,
    k: Annotated[int, typer.Option("-k", "--k", min=1)] = 5,
    bars_join_parts: Annotated[bool, typer.Option("--bars-join-parts")] = False,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """`results-table` prints the results beside those of `spacy sapbert evaluate`.

    Example: python -m training evaluate-baseline models/kb corpus/dev.tsv --baseline
    tfidf -o results/tfidf.json
    """
    check_outputs(output, force=force)
    ks = (1, k) if k > 1 else (1,)
    settings = EvaluationSettings(ks, bars_join_parts=bars_join_parts)
    known = read_aliases(aliases) if aliases else {}
    pairs = read_pairs(seen, known, bars_join_parts=bars_join_parts) if seen else None
    selected = [(path, *select_mentions(path, settings)) for path in mentions]
    opened = load_kb(kb)
    dictionary = read_dictionary(opened.concepts())
    if baseline == "exact":
        rank = exact_lookup(dictionary, known)
    elif baseline == "tfidf":
        rank = tfidf_ranker(dictionary, known, k=k)
    else:
        resolve = make_resolver(kb_lookup(opened), known)
        found = read_training_mentions(train, resolve, bars_join_parts=bars_join_parts)
        rank = back_off_ranker(kb_ranker(opened, known, k=k), found)
    texts = (gold.mention for _, golds, _ in selected for gold in golds)
    answers = rank_mentions(rank, texts, progress=not quiet)
    lookup = dictionary.lookup
    files: list[dict[str, Any]] = [
        {
            "file": path.name,
            "sha256": corpus_digest(path),
            **counts,
            **score_mentions(golds, answers, lookup, known, settings, seen=pairs),
        }
        for path, golds, counts in selected
    ]
    described = describe_settings(settings)
    results = {"baseline": baseline, "settings": described, "files": files}
    write_json(output, results)
    if not quiet:
        msg.good(f"Wrote {output}")


def exact_lookup(dictionary: Dictionary, aliases: dict[str, str]) -> Ranker:
    """Return a ranker that finds mentions that equal a name, with score 1."""

    def rank(mentions: Sequence[str]) -> list[list[Answer]]:
        rows = [dictionary.names.get(dictionary.fold(text)) for text in mentions]
        return [
            [] if row is None else list_answers([row], [1.0], dictionary, aliases)
            for row in rows
        ]

    return rank


def tfidf_ranker(
    dictionary: Dictionary,
    aliases: dict[str, str],
    *,
    k: int,
    min_df: int | None = None,
) -> Ranker:
    """Return a ranker by cosines of character 3-grams above 0, as in scispaCy.

    scispaCy searches with an approximate index and drops scores below 0.7. This search
    is exact and drops nothing, so its accuracy is an upper bound. 3-grams of fewer
    names than `min_df` are ignored; None = 10 as in scispaCy, or 1 for fewer than
    `MANY_NAMES` names.

    Source: scispacy/candidate_generation.py, create_tfidf_ann_index.
    """
    text = require("sklearn.feature_extraction.text", "scikit-learn")
    if min_df is None:
        min_df = 10 if len(dictionary.names) >= MANY_NAMES else 1
    vectorizer = text.TfidfVectorizer(
        analyzer="char_wb", ngram_range=(3, 3), min_df=min_df, dtype=np.float32
    )
    matrix = vectorizer.fit_transform(dictionary.names)  # (rows, 3-grams)
    transposed = matrix.T.tocsr()

    def rank(mentions: Sequence[str]) -> list[list[Answer]]:
        results: list[list[Answer]] = []
        for start in range(0, len(mentions), BATCH_SIZE):
            texts = mentions[start : start + BATCH_SIZE]
            cosines = (vectorizer.transform(texts) @ transposed).tocsr()
            for number in range(len(texts)):
                begin, end = cosines.indptr[number : number + 2]
                rows, scores = cosines.indices[begin:end], cosines.data[begin:end]
                results.append(best_answers(rows, scores, dictionary, aliases, k=k))
        return results

    return rank


def read_training_mentions(
    paths: Iterable[Path], resolve: Resolve, *, bars_join_parts: bool = False
) -> dict[str, list[str]]:
    """Return the sorted concepts of each folded mention, without composites."""
    known: dict[str, set[str]] = defaultdict(set)
    for path in paths:
        for gold in read_mentions(path, bars_join_parts=bars_join_parts):
            if len(gold.parts) == 1 and (concepts := resolve(gold)[0]):
                known[fold_text(gold.mention)] |= concepts
    return {text: sorted(concepts) for text, concepts in known.items()}


def back_off_ranker(rank: Ranker, known: dict[str, list[str]]) -> Ranker:
    """Return a ranker that looks mentions up in the training mentions first.

    Several concepts of one text tie. The answers of `rank` follow.

    Source: Basaldella et al. (2020), COMETA: dictionary back-off.
    """
    rows = {text: -number for number, text in enumerate(known, start=1)}

    def rank_known(mentions: Sequence[str]) -> list[list[Answer]]:
        results: list[list[Answer]] = []
        for mention, answers in zip(mentions, rank(mentions), strict=True):
            text = fold_text(mention)
            first = [
                Answer(rows[text], cui, TRAINING_SCORE) for cui in known.get(text, ())
            ]
            results.append([*first, *answers])
        return results

    return rank_known
