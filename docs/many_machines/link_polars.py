"""python link_polars.py DOCUMENTS OUTPUT KB: link a Polars data frame."""

import sys

import polars as pl

from spacy_sapbert import LinkBatches

documents, output, kb = sys.argv[1:]
link = LinkBatches(kb=kb, keep=["ward"])
notes = pl.read_parquet(documents)
linked = pl.from_arrow(link(notes.to_arrow()))
linked.write_parquet(output)
