"""Errors and warnings of components of spaCy, and the mapping of columns."""


class PipelineErrors:
    E440 = (
        "Expected look-ups of the same table, knowledge base and settings in {path}, "
        "but got others. Delete the file to begin anew."
    )
    E441 = "Expected a table with an ending of {known}, but got {path}. Rename it."
    E442 = (
        "{path}: Expected at most {rows} rows in a sheet of Excel, but got more. Write "
        "CSV or Parquet."
    )
    E447 = (
        "{path}: Expected at most {most:,} characters in a cell of Excel, but got more "
        "in row {row}, column {column}. Write CSV or Parquet."
    )
    E443 = (
        "{path}: Expected a column {name!r}, but it has {known}. Name one of its "
        "columns, or write a first row with the names of the columns."
    )
    E444 = (
        "{path}: Expected chosen ids in the column `match_chosen`, but it is empty. "
        "Write an id, or NIL, for each term that you have reviewed."
    )
    E445 = (
        "{path}: Expected semantic types and languages of the knowledge base in the "
        "columns that limit each row, but row {row} has another. Correct the cell, or "
        "name another column."
    )
    E507 = (
        "Expected a pipeline under {name!r}, but it could not be loaded: {reason} Name "
        "a folder that `nlp.to_disk` wrote, or install the package."
    )
    E508 = (
        "Expected a component that declares that it sets {what}, but none of these "
        "does: {components}. If one of them sets it, declare it with `assigns` in its "
        "`@Language.factory`; else choose another `--pipeline`, or pass `--mentions "
        "names` to detect the names of the knowledge base."
    )
    E509 = (
        "Expected no `--kb`, since the linker of the pipeline, {linker}, has its own "
        "knowledge base, but got one. Remove `--kb`, or change the linker's setting "
        "`kb`."
    )
    E510 = "Expected `--mentions` to be {known!r}, but got {value!r}. Correct it."
    E513 = (
        "Expected the pipeline to work on document {document}, but its component "
        "{component!r} failed with {kind}. Remove the document, pass `--on-error skip` "
        "to count such documents and continue, or correct the component: `nlp(text)` "
        "in Python shows the place."
    )
    E551 = (
        "Expected labels in `label_types` that a config file can hold, without `:` or "
        "`=` and with a letter or digit first, but got {label!r}. Rename the label, or "
        "pass `label_types` with each call."
    )
    E552 = (
        "Expected an attribute of spans for each of CUI, candidates, note and codes, "
        "but `span._.{attr}` is {reason}. Choose another name with the settings "
        "`cui_attr`, `candidates_attr`, `note_attr` and `codes_attr`."
    )
    E553 = (
        "{path}: Expected the settings of a saved component, but {reason}. Save the "
        "pipeline again."
    )
    E570 = (
        "Expected `doc._.{attr}` to be free, but another component has registered it. "
        "Choose another name with the setting `abbreviations_attr`."
    )
    E571 = (
        "Expected a pipeline in {path}, but it is a knowledge base. Pass it as `--kb`."
    )
    E572 = (
        "{path}: Expected names that are not marked, one a line, but got none. Write "
        "the file with `spacy sapbert stop-names`, or leave it out."
    )
    E573 = (
        "Expected a pipeline that sets entities, but {path} has {component!r} already. "
        "Name the pipeline that it was made of, or use this one as it is."
    )
    E601 = (
        "Expected `--lang` to be a language of spaCy, without `--pipeline`, but got "
        "{got}. Correct it, or remove one of the two."
    )
    E748 = (
        "Expected a worker process to link the documents {ids}, but {deaths} of them "
        "ended over it. If the system had no memory left, pass a smaller "
        "`--batch-size` or `--n-process`; else find the document with `--batch-size 1`."
    )
    E749 = (
        "Expected a worker process to open the pipeline and to return its documents, "
        "but it failed with {kind}. `--n-process 1` shows the place."
    )


class PipelineWarnings:
    W553 = (
        "Expected the linkers of a pipeline to write different attributes, but "
        "{linker} and {other} both write {attrs}. The later one replaces the links of "
        "the earlier one; change `cui_attr`, `candidates_attr`, `note_attr` and "
        "`codes_attr`."
    )
    W554 = (
        "The knowledge base has a new version that cannot be opened, so the old one "
        "stays in use. {reason}"
    )
    W556 = (
        "Expected documents with the span group {key!r}, the `spans_key` of {name}, "
        "but got none, so nothing is linked. Correct `spans_key`, or add the component "
        "that sets it before the linker."
    )
    W559 = (
        "Expected spans of the group {key!r} at different places, but two at the same "
        "place have different links, and share `span._`, which has the last one. Read "
        "`span.kb_id_` and `group.attrs`, which have those of each span."
    )
    W748 = (
        "A worker process ended before its work. Its documents and those of the other "
        "workers are linked again, one batch at a time."
    )
