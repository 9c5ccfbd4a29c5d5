"""DASK_SCHEDULER=processes python link_dask.py DOCUMENTS OUTPUT KB: link in Dask."""

import sys

import dask.dataframe as dd
import pandas as pd
import pyarrow as pa

from spacy_sapbert import LinkBatches

documents, output, kb = sys.argv[1:]
link = LinkBatches(kb=kb, keep=["ward"])


def link_frame(frame):
    table = pa.Table.from_pandas(frame, preserve_index=False)
    return link(table).to_pandas(types_mapper=pd.ArrowDtype)


notes = dd.read_parquet(documents, dtype_backend="pyarrow")
linked = notes.map_partitions(link_frame, meta=link_frame(notes.head(0)))
linked.to_parquet(output, write_index=False)
