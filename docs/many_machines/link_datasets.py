"""python link_datasets.py DOCUMENTS OUTPUT KB: link a Hugging Face dataset."""

import sys

from datasets import Dataset

from spacy_sapbert import LinkBatches, load_kb

documents, output, kb = sys.argv[1:]
# With the digest, the cache of datasets is of this version of the knowledge base.
link = LinkBatches(kb=kb, kb_digest=load_kb(kb).manifest.digest, keep=["ward"])
notes = Dataset.from_parquet(documents).with_format("arrow")
linked = notes.map(
    # The types of datasets have no maps.
    lambda table: link(table).drop_columns(["codes", "candidates"]),
    batched=True,
    batch_size=500,
    remove_columns=notes.column_names,
)
linked.to_parquet(output)
