"""`spacy sapbert stop-names`: learn which names are mostly not mentions."""

from collections.abc import Iterator
from pathlib import Path

import typer

from ..corpora.annotated import ANNOTATED_FORMATS, read_annotated_texts
from ..errors import check_range
from ..io.progress import show_progress
from ..io.reading import read_lines
from ..io.terminal import msg
from .app import app, check_outputs

MOST_LISTED = 10


@app.command("stop-names")
def stop_names(
    kb: str = typer.Argument(..., help="Folder or name of the knowledge base."),
    output: Path = typer.Argument(..., help="Table to write, with tabs."),
    annotated: list[Path] = typer.Argument(
        None, metavar="[ANNOTATED]...", help="Annotated files or folders."
    ),
    format: str | None = typer.Option(
        None, help=f"One of {', '.join(ANNOTATED_FORMATS)}. [detected]"
    ),
    text: list[Path] = typer.Option(
        [], help="Text file like those in which names are to be found; repeatable."
    ),
    background: list[Path] = typer.Option(
        [],
        help="Text file of another kind, with few mentions; repeatable. Names that "
        "are as frequent in it as in the other files are written, if the annotated "
        "ones do not have them.",
    ),
    share: float = typer.Option(
        0.2, help="Write names that are a mention in a smaller share of the places."
    ),
    short_forms: bool = typer.Option(
        False,
        "--short-forms",
        help="Detect short forms by their long forms, as `assemble --short-forms`.",
    ),
    lang: str = typer.Option("en", help="Language of the tokenizer."),
    force: bool = typer.Option(False, "--force", help="Replace the output."),
    quiet: bool = typer.Option(False, "--quiet", help="Print nothing but errors."),
) -> None:
    """kb/ + annotated documents -> names that are mostly not mentions

    The table has the counts of each name, and the common words that are not detected
    by default. Remove lines, or add names, as you like.

    Example: spacy sapbert stop-names models/kb stop_names.tsv corpus/train.txt

    Example: spacy sapbert stop-names models/kb stop_names.tsv --text notes.txt
    --background news.txt

    Then: spacy sapbert assemble models/kb models/pipeline --stop-names stop_names.tsv
    """
    from ..pipeline.mention_detector import SapbertMentions
    from ..pipeline.running import load_pipeline
    from ..pipeline.stop_names import (
        AnnotatedText,
        learn_stop_names,
        write_stop_names,
    )

    check_outputs(output, force=force)
    check_range("--share", share, 0, 1)
    if not annotated and not background:
        raise typer.BadParameter("Name annotated files, or a text as --background.")
    nlp = load_pipeline(None, lang=lang)
    detector = SapbertMentions(nlp, kb=kb, short_forms=short_forms)
    detector.open()

    def read_all() -> Iterator[AnnotatedText]:
        for path in annotated or ():
            yield from read_annotated_texts(path, format)
        for path in text:
            for _, line in read_lines(path):
                yield AnnotatedText(line, None)

    learned = learn_stop_names(
        nlp,
        detector,
        show_progress(read_all(), unit="documents", desc="Read", quiet=quiet),
        background=(line for path in background for _, line in read_lines(path)),
        share=share,
    )
    write_stop_names(output, learned, lang=lang)
    if not quiet:
        rows = [(name, f"{m:,}", f"{n:,}") for name, m, n in learned[:MOST_LISTED]]
        header = (f"{len(learned):,} names, e.g.", "mentions", "occurrences")
        msg.table(rows, header=header, divider=True, aligns=("l", "r", "r"))
        msg.good(f"Wrote {output}")
