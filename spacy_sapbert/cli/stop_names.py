"""`spacy sapbert stop-names`: learn which names are mostly not mentions."""

from collections.abc import Iterator
from pathlib import Path

import typer

from ..errors import check_range
from ..formats.corpus import read_corpus
from ..formats.gold import GoldDocument
from ..io.progress import show_progress
from ..io.terminal import msg
from .app import app, check_outputs
from .options import ANNOTATED_FORMAT, Force, KbName, OnError, Quiet, Skipped

MOST_LISTED = 10


@app.command("stop-names")
def stop_names(
    kb: KbName,
    annotated: list[Path] = typer.Argument(
        ..., metavar="ANNOTATED", help="Annotated files or folders."
    ),
    output: Path = typer.Option(
        ..., "--output", "-o", help="Table to write, with tabs."
    ),
    format: str | None = ANNOTATED_FORMAT,
    share: float = typer.Option(
        0.2, help="Write names that are a mention in a smaller share of the places."
    ),
    short_forms: bool = typer.Option(
        False,
        "--short-forms",
        help="Detect short forms by their long forms, as `assemble --short-forms`.",
    ),
    lang: str = typer.Option("en", help="Language of the tokenizer."),
    on_error: OnError = "fail",
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """kb/ + annotated documents -> names that are rarely mentions

    The table has the counts of each name, and the common words that are not detected
    by default. Remove lines, or add names, as you like.

    Example: spacy sapbert stop-names models/kb corpus/train.txt -o stop_names.tsv

    Then: spacy sapbert assemble models/kb models/pipeline --stop-names stop_names.tsv
    """
    from ..pipeline.mention_detector import SapbertMentions
    from ..pipeline.running import load_pipeline
    from ..pipeline.stop_names import learn_stop_names, write_stop_names

    check_outputs(output, force=force)
    check_range("--share", share, 0, 1)
    nlp = load_pipeline(None, lang=lang)
    detector = SapbertMentions(nlp, kb=kb, short_forms=short_forms)
    detector.open()

    skipped = Skipped(on_error)

    def read_all() -> Iterator[GoldDocument]:
        for path in annotated:
            yield from read_corpus(path, format, every=True, on_error=skipped)

    texts = (document for document in read_all() if document.text)
    bar = show_progress(texts, unit="documents", desc="Read", quiet=quiet)
    learned = learn_stop_names(nlp, detector.find_places, bar, share=share)
    write_stop_names(output, learned, lang=lang)
    if not quiet:
        rows = [(name, f"{m:,}", f"{n:,}") for name, m, n in learned[:MOST_LISTED]]
        header = (f"{len(learned):,} names, e.g.", "mentions", "occurrences")
        msg.table(rows, header=header, divider=True, aligns=("l", "r", "r"))
        skipped.report()
        msg.good(f"Wrote {output}")
