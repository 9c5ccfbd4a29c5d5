"""Errors and warnings of formats that are read and written."""


class FormatsErrors:
    E378 = (
        "Expected the id of each document to be the `note_id` of OMOP, a whole number "
        "of at most {limit:,}, but got another. Pass the column of the ids as "
        "`--id-field`."
    )
    E379 = (
        "Expected at most {limit:,} as a `note_nlp_id`, which is an integer of 32 bits "
        "in OMOP, but got more mentions. Pass a lower `--first-id`, or empty the table."
    )
    E501 = "Expected a format of {known}, but got {name!r}. Correct `--format`."
    E502 = (
        "Expected a file that ends with one of {known}, but got {path}. Rename it, or "
        "choose one of {formats} with `--format`."
    )
    E503 = (
        "Expected a format that can leave the text out, but got {format}. Choose "
        "another `--format`, or remove `--no-text`."
    )
    E504 = (
        "{path}:{line}: Expected a document with {expected}, but got {got}. Correct "
        "the line, name other columns with `--text-field` and `--id-field`, or pass "
        "`--on-error skip` to count such documents and continue."
    )
    E505 = (
        "Expected documents in one of the formats {known}, but neither the ending nor "
        "the content of {path} is that of one. Pass its format as `--input-format`, or "
        "convert it."
    )
    E506 = (
        "{path}:{line}: Expected a document of at most {limit} characters, but got a "
        "longer one. Split it."
    )
    E511 = "Expected the standard input, `-`, once, but got it twice. Pass it once."
    E512 = (
        "{path}: Expected documents as `DocBin.to_disk` writes them, but document "
        "{number} cannot be read ({kind}). Write or copy the file again."
    )
    E520 = (
        "Expected a folder as `--output`, because {format} writes files for each "
        "document, but got none. Pass one."
    )
    E522 = (
        "Expected {path} not to exist, or a folder with only `.txt` and `.ann` files, "
        "because its content is replaced, but it is {found}. Pass another path."
    )
    E523 = (
        "Expected `links` as regular expressions with addresses that begin with "
        "`https://` or `http://` and have at most one {{}} for each group, but got "
        "{pattern!r}: {address!r}. Correct it."
    )
    E530 = (
        "Expected a format that can be read, one of {known}, but got {name!r}. Pass "
        "another `format`."
    )
    E531 = (
        "{path}:{line}: Expected `entities` as a list of JSON objects with {expected}, "
        "but got something else. Correct the line, or write the file again with "
        "`spacy sapbert link … --format jsonl`."
    )
    E532 = (
        "{path}: Expected {format}, with {expected}, but document {number} has another "
        "structure. Check `format`, or export the file again."
    )
    E533 = (
        "{path}: Expected a `.spacy` file that unpacks to at most {ratio} times its "
        "size, because it is unpacked in memory, but got more. If it is not a damaged "
        "or hostile file, write the documents into several files."
    )
    E534 = (
        "{path}: Expected a `.spacy` file of at most {limit:,} texts, numbers and "
        "lists, because it is unpacked in memory, but got more. If it is not a damaged "
        "or hostile file, write the documents into several files."
    )
    E535 = (
        "{path}:{line}: Expected at most {limit:,} mentions in a document, but got "
        "more. Check that the file is what it should be."
    )
    E560 = (
        "Expected {path} to be written by this command, but it was started with "
        "another {settings}. Pass another `--output`, the old settings, or `--force`."
    )
    E561 = (
        "Expected {path} to be an empty folder, or an output of this command, but it "
        "has other files, which were not changed. Pass another `--output`."
    )
    E562 = (
        "{path}: Expected the state of an output in parts, but it cannot be read. Pass "
        "another `--output`, or remove the folder."
    )
    E563 = (
        "Expected {path} with {expected} bytes, as it was written, but {found}. "
        "Restore it, or pass `--force` to start again."
    )
    E564 = (
        "Expected the documents from which {path} was written, but the input has "
        "changed. Restore the input, or pass `--force` to start again."
    )
    E565 = (
        "Expected no other run that writes to {path}, but there is one. Wait until it "
        "has finished, or pass another `--output`."
    )
    E594 = (
        "Expected files that end with {endings}, also with `.gz`, in {path}, but found "
        "none, without hidden files, knowledge bases and other models. Pass the format "
        "of its files as `--input-format`, or name the files."
    )
    E595 = (
        "Expected {what} in one of the formats {known}, but got {format}. Correct "
        "`--input-format`."
    )
    E597 = (
        "{path}: Expected {what}, but {found}. Check that this is the right file, or "
        "write or copy it again."
    )
    E598 = (
        "{path}:{line}: Expected {expected} fields, as the first line has, but got "
        "{got}. Correct the quotes or fields from this line on, or pass `--on-error "
        "skip` to count such lines and continue."
    )
    E599 = (
        "{path}: Expected a column {name!r}, but it has {known}. Pass the "
        "names of its columns as `--text-field` and `--id-field`, and as `--keep` "
        "those to keep."
    )
    E704 = (
        "{path}:{line}: Expected the text of a mention, but it is blank. Correct the "
        "line, or remove it."
    )
    E712 = (
        "{path}:{line}: Expected `id|t|title`, `id|a|abstract`, or an id, start, end, "
        "mention, type and ids with tabs between them, but got {got}. Correct the line."
    )
    E713 = (
        "{path}:{line}: Expected the mention from character {start} to {end} of the "
        "text, but something else is there. Correct the offsets or the mention."
    )
    E714 = (
        "{path}:{line}: Expected two whole numbers as offsets, the start below the "
        "end, but got something else. Correct the line."
    )
    E719 = (
        "{path}:{line}: Expected an annotation, parted by tabs: {expected}; but got "
        "something else. Correct the line."
    )
    E720 = (
        "{path}:{line}: Expected the line to name a mention of {file}, but it names "
        "another. Correct the line."
    )
    E721 = (
        "{path}:{line}: Expected each annotation once, but it has the name of the one "
        "in line {first}. Rename one of them."
    )


class FormatsWarnings:
    W520 = (
        "Expected documents that {format} can hold as they are, but: {losses}. Choose "
        "another format to lose nothing; docs/formats.md describes each format."
    )
    W530 = (
        "{path}: Expected mentions of whole tokens, one at a place, but of {mentions} "
        "{widened} do not begin and end with tokens and {overlapping} overlap a longer "
        "one. These are not in `doc.ents`; `doc.spans[{spans_key!r}]` has all."
    )
    W531 = (
        "Expected at most some hundred punctuation characters in a row, but document "
        "{id!r} has {run:,}. spaCy's tokenizer needs time with the square of that. If "
        "it takes too long, remove them."
    )
    W532 = (
        "{count:,} documents have more than {limit:,} punctuation characters in a row. "
        "Removing them makes reading faster."
    )
    W533 = (
        "Expected entities that do not overlap, but of {mentions} in the input "
        "{overlapping} overlap a longer one and are left out. A `--pipeline` whose "
        "linker has a `spans_key` links all."
    )
    W534 = (
        "Expected a different id for each document, but some have the id of an earlier "
        "one: {count:,}, first at {place}. The output has all documents."
    )
    W537 = (
        "Expected documents in each input file, but the file is empty: {path}. Number "
        "of empty files: {count:,}."
    )
