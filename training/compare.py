"""evaluation.json of a trained encoder and its base → a table in the model card."""

import re
from pathlib import Path
from typing import Annotated, Any

import typer
from confection import Config
from pydantic import BaseModel, ValidationError

from spacy_sapbert.encoder.huggingface import ENCODER_FOLDER
from spacy_sapbert.errors import SapbertError
from spacy_sapbert.evaluation.accuracy import wilson_interval
from spacy_sapbert.io.reading import check_file
from spacy_sapbert.io.terminal import msg
from spacy_sapbert.io.writing import check_kind, write_atomically
from training.data.options import Quiet, format_markdown

TIES = "expected"  # as a user gets one of several concepts with one name
SIGNIFICANT = 0.05
TITLE = "## Accuracy"
BEFORE = "## Settings"  # the section of the card that comes after it
LEARNED, COSINE = "the order that `spacy sapbert kb build` learned", "cosine"
SECTION = re.compile(rf"^{TITLE}\n.*?(?=^## )", re.DOTALL | re.MULTILINE)
HEADER = ("mentions", "number", "base", "trained", "more", "p")
TEXT = """{title}

Share of mentions whose first answer is right, with 95 % intervals, linked to
{concepts:,} concepts with {names:,} different names. Candidates are ranked by {order}.
`held_out.tsv` has synonyms that were not trained on. The base is `{base}`.

{table}

{verdict}

"""


class FileComparison(BaseModel):
    """What evaluation.json has of two linkers on a file of gold mentions."""

    file: str
    mentions: int
    ties: dict[str, dict[str, Any]]

    @property
    def interval(self) -> tuple[float, float]:
        """Of the second linker's share of right answers minus that of the first."""
        low, high = self.ties[TIES]["interval"]
        return float(low), float(high)

    @property
    def better(self) -> int:
        """Which linker is shown to be better: 1 = the second, -1 = the first, 0 = none.

        Of few mentions that differ alike, the interval has no width, and p decides.
        """
        low, high = self.interval
        if self.ties[TIES]["p"] >= SIGNIFICANT:
            return 0
        return int(low > 0) - int(high < 0)

    def format(self) -> list[str]:
        """Return the cells of a row of the table."""
        found = self.ties[TIES]
        cells = [self.file, f"{self.mentions:,}"]
        for key in ("first", "second"):
            low, high = wilson_interval(found[key], self.mentions)
            cells.append(f"{found[key]:.1%} ({low:.1%} to {high:.1%})")
        low, high = self.interval
        more = f"{found['difference']:+.1%} ({low:+.1%} to {high:+.1%})"
        return [*cells, more, f"{found['p']:.2g}"]


class Comparison(BaseModel):
    """The section `comparison` of evaluation.json."""

    results: list[FileComparison]


class Evaluation(BaseModel):
    """The parts of evaluation.json that are read."""

    comparison: Comparison
    kb: dict[str, Any]


def judge(results: list[FileComparison], base: str) -> tuple[bool, str]:
    """Return whether a trained encoder is better than its base, and one sentence."""
    better = [each.file for each in results if each.better > 0]
    worse = [each.file for each in results if each.better < 0]
    if better and not worse:
        return True, f"The trained encoder is better than {base}."
    reason = f"it is worse on {', '.join(worse)}" if worse else "it may be chance"
    return False, (
        f"The trained encoder is not shown to be better than {base} ({reason}): hold "
        "out a larger share if names are few (`--vars.held_out`), train longer "
        "(`--vars.epochs 3`), or on annotated mentions too (`python -m training "
        "finetune-pairs`), or build the knowledge base with the base."
    )


def model_card_command(
    evaluation: Annotated[
        Path, typer.Argument(help="Of `spacy sapbert evaluate --compare … --output`.")
    ],
    encoder: Annotated[Path, typer.Argument(help="Folder of the trained encoder.")],
    quiet: Quiet = False,
) -> None:
    """Write into the model card whether a trained encoder is better than its base.

    Example: python -m training model-card results/umls/evaluation.json
    models/umls/encoder
    """
    check_file(evaluation)
    check_kind(encoder, ENCODER_FOLDER)
    card, config = encoder / "README.md", encoder / "training.cfg"
    for path in (card, config):
        check_file(path)
    try:
        read = Evaluation.model_validate_json(evaluation.read_text("utf8"))
        results, counts = read.comparison.results, read.kb["counts"]
        rows = [each.format() for each in results]
        sizes = {"concepts": counts["concepts"], "names": counts["rows"]}
    except (ValidationError, KeyError, TypeError, ValueError):
        raise SapbertError(
            "E746",
            f"{evaluation}: Expected results of `spacy sapbert evaluate --compare`, "
            "but got something else. Name such a file.",
        ) from None
    base = Config().from_disk(config)["encoder"]["base"]
    is_better, verdict = judge(results, base)
    section = TEXT.format(
        title=TITLE,
        base=base,
        order=LEARNED if read.kb.get("order") else COSINE,
        table="\n".join(format_markdown(HEADER, rows)),
        verdict=verdict,
        **sizes,
    )
    head, mark, rest = SECTION.sub("", card.read_text("utf8")).partition(BEFORE)
    with write_atomically(card) as file:
        file.write(f"{head}{section}{mark}{rest}".encode())
    if not quiet:
        msg.table(rows, header=HEADER, divider=True, aligns=["l", *["r"] * 5])
        (msg.good if is_better else msg.warn)(verdict)
        msg.good(f"Wrote the table to {card}")
