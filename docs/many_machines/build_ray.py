"""python build_ray.py CONCEPTS KB ENCODER WORKERS: build a knowledge base in Ray."""

import sys
from pathlib import Path

import ray

from spacy_sapbert import build_kb, embed_shards

concepts, kb, encoder, workers = sys.argv[1:]
numbers = range(int(workers))


@ray.remote(num_cpus=1)
def embed(number: int) -> None:
    embed_shards(Path(concepts), Path(kb), encoder, (number, len(numbers)))


ray.get([embed.remote(number) for number in numbers])
build_kb(Path(concepts), Path(kb), encoder)
