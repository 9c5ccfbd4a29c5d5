"""spark-submit link_spark.py DOCUMENTS OUTPUT KB: link a Parquet table."""

import sys

from pyspark.sql import SparkSession

from spacy_sapbert import LinkBatches

documents, output, kb = sys.argv[1:]
spark = SparkSession.builder.getOrCreate()
spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", 500)
link = LinkBatches(kb=kb, keep=["ward"])
notes = spark.read.parquet(documents)
# Some thousand documents a task: long ones are spread, and little is done again.
notes = notes.repartition(notes.count() // 5000 + 1)
linked = notes.mapInArrow(link.iterate, link.spark_schema(notes))
linked.write.parquet(output)
