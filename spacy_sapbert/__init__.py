"""Link the entities of a spaCy pipeline to UMLS, or to any other vocabulary."""

__version__ = "0.1.0"
