"""AskAPatient: phrases of patients, with SNOMED CT and AMT ids, in ten folds."""

from collections.abc import Iterator
from pathlib import Path

from spacy_sapbert.formats.gold import NOWHERE, split_ids
from spacy_sapbert.system.reading import read_lines
from training.corpora.registry import GoldDocument, GoldSpan
from training.errors import Errors, SapbertError

SPLITS = ("train", "validation", "test")
FOLDS = range(10)
FILE = "AskAPatient.fold-{fold}.{split}.txt"
FIELDS = 3


def choose_file(path: Path, *, fold: int, split: str) -> Path:
    """Return the file of a fold in a folder; a file is returned as it is."""
    if fold not in FOLDS:
        raise SapbertError(
            Errors.E605.format(setting="fold", known=list(FOLDS), value=fold)
        )
    if split not in SPLITS:
        raise SapbertError(
            Errors.E605.format(setting="split", known=list(SPLITS), value=split)
        )
    return path / FILE.format(fold=fold, split=split) if path.is_dir() else path


def read_askapatient(
    path: Path, *, fold: int = 0, split: str = "test"
) -> Iterator[GoldDocument]:
    """Read lines of an id, the name of the concept and a mention, separated by tabs.

    path (Path): The folder with `AskAPatient.fold-0.train.txt` and the like, or one of
        these files.
    fold (int): 0 to 9; published results are the mean of all.
    split (str): "train", "validation" or "test".
    YIELDS (GoldDocument): Each line, without text; its id is the number of the line.
    RAISES (SapbertError): If there is no such fold; with file and line, at the first
        bad line.
    SOURCE: Limsopatham and Collier (2016).
    """
    file = choose_file(path, fold=fold, split=split)
    for number, line in read_lines(file):
        if not line.strip():
            continue
        fields = line.split("\t")
        if len(fields) != FIELDS:
            raise SapbertError(
                Errors.E703.format(
                    path=file,
                    line=number,
                    expected=FIELDS,
                    separator="tabs",
                    got=len(fields),
                )
            )
        ids, _, mention = (field.strip() for field in fields)
        if not mention:
            raise SapbertError(Errors.E704.format(path=file, line=number))
        span = GoldSpan(*NOWHERE, "", mention, split_ids(ids), number)
        yield GoldDocument(str(number), "", [span])
