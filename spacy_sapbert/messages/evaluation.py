"""Errors and warnings of evaluation, annotated corpora and training."""


class EvaluationErrors:
    E521 = (
        "Expected {library} to be installed, but got: {reason}. Run "
        "`pip install {packages}`."
    )
    E566 = (
        "{path}:{line}: Expected YAML, but {reason}. Correct it; quotes around the "
        "value often help."
    )
    E567 = (
        "{path}:{line}: Expected {expected}, but got {got}. Correct the case; "
        "`spacy sapbert regress --help` shows one."
    )
    E568 = "Expected at least one case in {path}, but it has none. Add one."
    E569 = (
        "Expected a file of at most {limit} bytes at {path}, but got a larger one. "
        "Split it; `spacy sapbert regress` reads several files."
    )
    E580 = "Expected `{option}` to end with {known}, but got {path}. Correct it."
    E581 = (
        "Expected `--criterion` to be f1, accuracy or precision=NUMBER with a number "
        "above 0 and up to 1, but got {value!r}. Correct it, like "
        "`--criterion precision=0.95`."
    )
    E582 = (
        "Expected at least {fewest} annotated mentions that get an answer, but got "
        "{got}. Name more files of mentions, or raise `--limit`."
    )
    E583 = (
        "Expected right and wrong answers to {mentions} mentions, but all are {which}. "
        "Name mentions that are annotated with ids of this knowledge base, or of which "
        "it has aliases in `--aliases`."
    )
    E584 = (
        "Expected right answers to have higher scores than wrong ones, but they have "
        "not. Check that the mentions are annotated with ids of this knowledge base."
    )
    E585 = (
        "Expected a threshold with a precision of {level:g}, but the highest precision "
        "of any is {best:.4f}. Choose a lower precision, or `--criterion f1`."
    )
    E619 = (
        "Expected training mentions whose ids are in the dictionary, but none of "
        "{mentions} is. Name the dictionary that they were annotated with, or "
        "`--aliases`."
    )
    E701 = (
        "{path}:{line}: Expected a header with tabs between the columns and `mention` "
        "and `ids` among them, or lines `mention||id`, but got something else. Convert "
        "the file to one of the two."
    )
    E702 = (
        "{path}:{line}: Expected `mention||id`, but the ids come first. Swap the "
        "columns: `awk -F'[|][|]' '{{print $2 \"||\" $1}}'`."
    )
    E703 = (
        "{path}:{line}: Expected {expected} fields with {separator} between them, but "
        "got {got}. Correct the line."
    )
    E705 = (
        "{path}:{line}: Expected an id, a tab and the id that it is an alias of, but "
        "got {got} fields. Correct the line."
    )
    E706 = (
        "{path}:{line}: Expected {cui} to be an alias of one id, but it is one of "
        "{first} and of {second}. Remove one of the lines."
    )
    E707 = (
        "Expected gold mentions in {path}, but it has none. Pass the file that has "
        "them."
    )
    E708 = (
        "Expected gold mentions with an id in {path}, but got none in {mentions} "
        "mentions. Name another file, or raise `--limit`."
    )
    E709 = (
        "Expected {setting} as NAME=FOLDER, each name once, but got {value!r}. Write "
        "it like `{setting} trained=models/kb`."
    )
    E710 = (
        "Expected one of the corpus formats {known}, but got {format!r}. Correct "
        "`--format`."
    )
    E711 = (
        "Expected one of the options of the format {format} ({known}), but got "
        "`--{option}`. Remove it."
    )
    E715 = (
        "{path}:{line}: Expected `id||mention` or `id||mention||context`, but got "
        "something else. Correct the line; `--format tsv` reads `mention||id`."
    )
    E716 = (
        "{path}:{line}: Expected a context with one `<tgt>` and one `</tgt>` after it, "
        "but got something else. Correct the line."
    )
    E718 = (
        "{path}:{line}: Expected a header with tabs and the columns {wanted}, but got "
        "another. Name a file of COMETA as it was published."
    )
    E725 = (
        "{path}: Expected mentions with ids of the knowledge base, but none of "
        "{count:,} has one, e.g. {example!r}.{hint} Use the vocabulary of the "
        "annotations, or change the ids with `spacy sapbert convert --prefix` or "
        "`--drop-prefix`."
    )
    E722 = (
        "Expected an output that ends with one of {known}, but got {path}. Correct "
        "`--output`."
    )
    E723 = (
        "Expected a language that spaCy can make a pipeline for, but got {lang!r}: "
        "{reason} Correct `--lang`, or install what it needs; `xx` is any language."
    )
    E724 = (
        "{path}: Expected mentions with {language!r} in the column `lang`, but got "
        "none: the languages there are {known}. Correct `--language`."
    )
    E730 = (
        "Expected mentions that the dictionary knows, but none of {mentions} is left. "
        "Name the dictionary that they were annotated with, or `--aliases`, or "
        "`--prefix`."
    )
    E740 = (
        "Expected files of different names, but got {name} twice. Rename one: results "
        "name files without their folders."
    )
    E741 = (
        "{path}:{line}: Expected a prediction as JSON with {expected}, but got "
        "something else. Make the file again with `spacy sapbert evaluate … "
        "--predictions`."
    )
    E742 = (
        "{path}:{line}: Expected one prediction for each mention, but got a second one "
        "for line {gold_line} of {file}. Make the file again with `spacy sapbert "
        "evaluate … --predictions`."
    )
    E743 = (
        "{path}:{line}: Expected a prediction for a mention that is judged, but got "
        "one for line {gold_line} of {file}. Name the gold files, `--limit` and "
        "`--distinct` that the predictions were made with."
    )
    E744 = (
        "{path}: Expected a prediction for each mention that is judged, but got none "
        "for {missing} of {mentions}, the first on line {gold_line} of {file}. Name "
        "the gold files, `--limit` and `--distinct` that the predictions were made "
        "with."
    )
