"""Errors and warnings of vocabularies and concepts."""


class VocabulariesErrors:
    E101 = (
        "{path}:{line}: Expected a concept as a JSON object with {expected}, but got "
        "something else. Correct the line, or write the file again with `spacy "
        "sapbert concepts`."
    )
    E102 = (
        "{path}:{line}: Expected {expected} fields, each ended by `|`, but got {got}. "
        "The line may be truncated, or a name may contain a `|`. Correct it, or pass "
        "`--on-error skip` to count such lines and continue."
    )
    E103 = (
        "{path}:{line}: Expected an id that matches {pattern!r}, but got {cui!r}. "
        "Correct the line, or pass the pattern of the vocabulary's ids as "
        "`--cui-pattern`."
    )
    E104 = (
        "{path}:{line}: Expected lines that are sorted by id, but got {cui} after "
        "{last}. Sort the file: "
        "`LC_ALL=C sort -t'|' -k1,1 -s`."
    )
    E105 = (
        "Expected {what} that are in {path}, but got {unknown}.{hint} The file has: "
        "{known}."
    )
    E106 = "Expected at least one concept in {path}, but {reason}."
    E107 = "Expected the part {expected} next, but got {path}. Download all parts."
    E108 = (
        "Expected {file} in {folder}, but found none. Pass the folder that contains "
        "it, or the file itself."
    )
    E109 = (
        "Expected MRSTY.RRF in the folder of {path}, because `--types` needs it, but "
        "found none. Copy it there, or remove `--types`."
    )
    E110 = (
        "Expected a file name of a known format, but got {path}. Pass `--format` with "
        "one of: {formats}."
    )
    E111 = "Expected one of the formats {formats}, but got {format!r}."
    E113 = (
        "Expected options of the format {formats}, but got `--{option}`. Remove it; "
        "`spacy sapbert concepts --help` lists the options of each format."
    )
    E114 = (
        "Expected a regular expression as `--cui-pattern`, but got {pattern!r}: "
        "{reason}."
    )
    E115 = "Expected `--{option}` to be one of {known}, but got {value!r}."
    E117 = (
        "{path}:{line}: Expected {expected}, but got something else. Correct the line, "
        "or pass `--on-error skip` to count such lines and continue."
    )
    E118 = (
        "{path}: Expected an OBO Graph in JSON, but {where} has: {got}. Download the "
        "file again, or pass `--on-error skip` to count bad nodes and continue."
    )
    E119 = (
        "{path}:{line}: Expected an id, `||` and names, but got something else. "
        "Correct the line, or pass `--on-error skip` to count such lines and continue."
    )
    E120 = (
        "Expected a concept with {expected}, but the concept {cui!r} is another. "
        "Correct the concept."
    )
    E121 = (
        "{path}:{line}: Expected elements that are nested at most {limit} deep, but "
        "got a deeper one. Check that this is the right file."
    )
    E123 = (
        "Expected a concept of at most {limit:,} names and other values, but {cui!r} "
        "has more. Check that the vocabulary is what it should be."
    )
    E124 = (
        "Expected rows of MRCONSO with few different values of {columns}, but got more "
        "combinations than any release has. Check that this is the right file."
    )
    E125 = (
        "Expected the snapshot of a release of SNOMED CT, but got {path}. Pass the "
        "folder of the release, or its `Snapshot` folder; Full and Delta also have "
        "states of other days."
    )
    E130 = (
        "Expected concepts in {path} that are mapped to ids like {example}, but got "
        "none. Pass a vocabulary whose cross references or codes have such ids, or a "
        "file of SSSOM that maps its ids, or remove `--xrefs`."
    )
    E151 = (
        "{path}:{line}: Expected MeSH in XML with the root element {known}, but got "
        "{got!r}. Pass a file like desc2024.xml or supp2024.xml."
    )
    E153 = (
        "{path}:{line}: Expected {expected}, but got something else in the record that "
        "begins here. Correct it, or pass `--on-error skip` to count such records and "
        "continue."
    )
    E410 = (
        "{path}:{line}: Expected a table with the columns {columns}, but it has {got}. "
        "Pass the file as its publisher released it, or another `--format`."
    )
    E411 = (
        "Expected `--encoding` to be a text encoding that Python has, but got "
        "{encoding!r}. Pass e.g. `cp1252`, `latin-1` or `utf-16`."
    )
    E412 = (
        "{path}: Expected text in {encoding}, as `--encoding` says, but got other "
        "bytes after offset {offset}. Pass the encoding in which the file was saved."
    )
    E413 = (
        "Expected `--columns` like `id=Code,name=Preferred`, with the roles {roles} "
        "and with an id and a name or synonyms, but got: {part}. Write "
        "`codes.ICD10CM=icd` for codes of a vocabulary."
    )
    E414 = (
        "Expected one column as `{role}`, but `--columns` has several. Only `synonyms` "
        "and `codes` may be repeated."
    )
    E415 = (
        "{path}:{line}: Expected names of columns in the first row that say which has "
        "the ids and which the names, but it has {got}. Name them, e.g. `--columns "
        "id=Code,name=Preferred`; in a table without names `--columns id=1,name=2`."
    )
    E416 = (
        "{path}:{line}: Expected a column {name!r}, as `--columns` says, but it has "
        "{got}. Correct the option."
    )
    E417 = (
        "{path}:{line}: Expected one column {name!r}, but several of {got} have "
        "that name. Rename them, or pass the places of the columns, e.g. `--columns "
        "id=1,name=2`, without the first row."
    )
    E418 = (
        "{path}: Expected a workbook of Excel, but got: {reason}. Save it as CSV in "
        "UTF-8 and pass that file."
    )
    E419 = (
        "{path}:{line}: Expected at most {limit:,} columns, but got more. Check that "
        "the file is a table."
    )
    E420 = (
        "{path}:{line}: Expected a classification in ClaML, whose root element is "
        "`ClaML`, but got {got!r}. Pass another `--format`."
    )
    E421 = (
        "{path}: Expected an ontology as RDF/XML, Turtle or N-Triples, but it is "
        "damaged or hostile ({reason}). Download it again, or pass it as OBO or OBO "
        "Graphs."
    )
    E422 = (
        "{path}: Expected Turtle of at most {limit} MiB, which is read at once, but "
        "got more. Convert it to N-Triples, which is streamed, e.g. with `rapper -i "
        "turtle -o ntriples`."
    )
