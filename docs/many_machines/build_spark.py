"""spark-submit build_spark.py CONCEPTS KB ENCODER WORKERS: build a knowledge base."""

import sys
from pathlib import Path

from pyspark.sql import SparkSession

from spacy_sapbert import build_kb, embed_shards

concepts, kb, encoder, workers = sys.argv[1:]
numbers = range(int(workers))


def embed(number: int) -> None:
    embed_shards(Path(concepts), Path(kb), encoder, (number, len(numbers)))


context = SparkSession.builder.getOrCreate().sparkContext
context.parallelize(numbers, len(numbers)).foreach(embed)
build_kb(Path(concepts), Path(kb), encoder)
