"""python link_datasets.py DOCUMENTS OUTPUT KB: link a Hugging Face dataset."""

import sys

from datasets import Dataset

from spacy_sapbert import LinkBatches

documents, output, kb = sys.argv[1:]
link = LinkBatches(kb=kb, keep=["ward"])
notes = Dataset.from_parquet(documents).with_format("arrow")
linked = notes.map(
    link.as_lists,  # the types of datasets have no maps
    batched=True,
    batch_size=500,
    remove_columns=notes.column_names,
    # The cache is used until documents, settings or knowledge base change.
    new_fingerprint=link.fingerprint(notes._fingerprint),
)
linked.to_parquet(output)
