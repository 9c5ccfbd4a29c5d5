"""Errors and warnings of commands."""


class CliErrors:
    E112 = "Expected `--on-error` to be `fail` or `skip`, but got {value!r}."
    E320 = (
        "Expected {setting} as NAME=NUMBER, but got {value!r}. Write it like `ef=200` "
        "or `threshold=0.5`."
    )
    E341 = (
        "Expected either a concepts.jsonl, or `--cui` with `--alias`, but got neither "
        "or both. Name one of them."
    )
    E342 = (
        "Expected at least one concept in {path}, but got none. Write one a line, as "
        "`spacy sapbert concepts` does."
    )
    E357 = (
        "Expected GPU {gpu}, but got: {reason}. Install torch with CUDA, and CuPy: "
        "the extra `gpu` for CUDA 12, else see https://docs.cupy.dev. Or leave out "
        "`--gpu-id`: the CPU builds the same knowledge base, only slower."
    )
    E358 = (
        "Expected at least one mention, but got none. Write mentions on the command "
        "line, or one a line into a file for `--file`."
    )
    E365 = (
        "Expected annotated mentions that bring more right answers, but these do not, "
        "so {path} was not written. Pass more of them, or `--force` to write it."
    )
    E366 = (
        "Expected `--cui` to be the id of a concept of {path}, but it has no {cui}."
        "{hint} Correct the id, or pass `--new` to add a concept with it."
    )
    E423 = (
        "Expected either `--output` with the file to write or `--describe`, which "
        "writes nothing, no report and no conflicts. Pass one of them."
    )
    E471 = (
        "Expected a knowledge base whose concepts have codes of OMOP for `--format "
        "omop`, but got {got}, so that each row would have the concept 0. Build it "
        "from files of Athena, or write another format."
    )
    E514 = (
        "Expected a folder for the parts as `--output`, but got none. Pass "
        "`--output FOLDER` with `--shard-size`."
    )
    E515 = (
        "Expected a file as `--output`, but {path} is a folder. Pass a file, or pass "
        "`--shard-size 1000` to write parts into a folder."
    )
    E516 = (
        "{path}:{line}: Expected one id, optionally followed by a tab and a comment, "
        "but got a blank in the id. Correct the line."
    )
    E517 = (
        "Expected at least one id in {path}, but got none. Add one, or remove "
        "`--allow` to allow every concept."
    )
    E518 = (
        "Expected a format with one file for each part, but {format} writes files for "
        "each document. Remove `--shard-size`."
    )
    E540 = (
        'Expected {expected}, but got {got}. Write it like `--context "No [[MI]] on '
        'the echo."`.'
    )
    E541 = (
        "Expected `--setting` as NAME=VALUE, but got something else. Write it like "
        "`--setting k=5`; a value is a text, or JSON."
    )
    E586 = (
        "Expected a knowledge base that may be changed, but {path} is installed or "
        "read-only. Copy it, like `cp -r {path} models/kb`, and name the copy."
    )
    E587 = (
        "Expected a knowledge base with a threshold to check, but {path} has none. "
        "Calibrate it with `spacy sapbert calibrate` and without `--check` first."
    )
    E600 = (
        "Expected `--keep` with {expected}, but got {got}. Correct it, or remove "
        "`--keep`."
    )
