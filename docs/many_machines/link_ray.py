"""python link_ray.py DOCUMENTS OUTPUT KB ACTORS: link a Parquet table in Ray Data."""

import sys

import ray

from spacy_sapbert import LinkBatches

documents, output, kb, actors = sys.argv[1:]
linked = ray.data.read_parquet(documents).map_batches(
    LinkBatches,
    fn_constructor_kwargs={"kb": kb, "keep": ["ward"]},
    batch_format="pyarrow",
    batch_size=500,
    # Reading needs a CPU too: with as many actors as CPUs, Ray waits for ever.
    compute=ray.data.ActorPoolStrategy(size=int(actors)),
)
linked.write_parquet(output)
