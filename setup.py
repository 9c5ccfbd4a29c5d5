"""Metadata, dependencies, extras and entry points: the list of what is registered."""

import re
from pathlib import Path

from setuptools import find_packages, setup

ROOT = Path(__file__).parent
VERSION = re.search(
    r'__version__ = "(.+?)"', (ROOT / "spacy_sapbert" / "__init__.py").read_text("utf8")
).group(1)

setup(
    name="spacy-sapbert",
    version=VERSION,
    description="Link spaCy entities to UMLS or any vocabulary with SapBERT encoders",
    long_description=(ROOT / "README.md").read_text("utf8"),
    long_description_content_type="text/markdown",
    license="MIT",
    packages=find_packages(include=["spacy_sapbert", "spacy_sapbert.*"]),
    package_data={
        "spacy_sapbert": [
            "py.typed",
            "formats/page/*.css",
            "formats/page/*.js",
            "serve/page/*.css",
            "serve/page/*.html",
            "serve/page/*.js",
            "serve/page/*.svg",
        ]
    },
    python_requires=">=3.11",
    install_requires=[
        "spacy>=3.7,<4",
        "spacy-transformers>=1.3,<2",
        # Before 2.6, `torch.load` runs code of a file in spite of `weights_only`
        # (CVE-2025-32434), with which pickled weights of encoders are read.
        "torch>=2.6",
        "transformers>=4.40",
        "safetensors>=0.4",
        "confection>=0.1",
        "filelock>=3.12",
        "catalogue>=2.0.6",
        # The file of an index is checked against the layout of this version.
        "hnswlib>=0.8,<0.9",
        "numpy>=1.24",
        "pydantic>=2.5,<3",
        "typing-extensions>=4.9",
        "srsly>=2.4",
        "regex>=2022.1.18",
        "typer>=0.9",
        "tqdm>=4.60",
        "wasabi>=1.1",
    ],
    extras_require={
        "package": ["build>=1", "setuptools>=70.1"],
        "evaluation": ["scipy>=1.11", "scikit-learn>=1.3"],
        # the losses of training besides Multi-Similarity
        "losses": ["pytorch-metric-learning>=2.4"],
        "figures": ["matplotlib>=3.8", "scikit-learn>=1.3"],
        "openvino": ["openvino>=2024.4"],
        # for Parquet and `LinkBatches`
        "arrow": ["pyarrow>=16"],
        # Engines for many machines; this package imports none of them. The tests of the
        # first two take minutes, and so are not among those of the extra `test`.
        "spark": ["pyarrow>=16", "pyspark>=3.5"],
        "ray": ["pyarrow>=16", "ray[data]>=2.30"],
        "datasets": ["datasets>=2.20", "pyarrow>=16"],
        "gpu": ["cupy-cuda12x>=13"],
        # From 1.15 on, it checks the files that it reads; the layout is that of 1.x.
        "faiss": ["faiss-cpu>=1.15,<2"],
        "bioc": ["bioc>=2.1", "lxml>=5"],
        "excel": ["openpyxl>=3.1"],
        "rdf": ["rdflib>=7"],
        "serve": [
            "bioc>=2.1",
            "fastapi>=0.115",
            "lxml>=5",
            "openpyxl>=3.1",
            "prometheus-client>=0.20",
            "uvicorn>=0.30",
        ],
        "test": [
            "axe-playwright-python>=0.1",
            "bioc>=2.1",
            "dask[dataframe]>=2024.8",
            "datasets>=2.20",
            "faiss-cpu>=1.15,<2",
            "gliner>=0.2.20",  # a detector of the recipes
            "fastapi>=0.115",
            "matplotlib>=3.8",
            "negspacy>=1.1",
            "openpyxl>=3.1",
            "playwright>=1.45",
            "polars>=1.9",
            "prometheus-client>=0.20",
            "pyarrow>=16",
            "pytest>=8",
            "pytest-xdist>=3.5",
            "hypothesis>=6.100",
            "lxml>=5",
            "openvino>=2024.4",
            "pytorch-metric-learning>=2.4",
            "rdflib>=7",
            "scikit-learn>=1.3",
            "scipy>=1.11",
            "sentencepiece>=0.2",
            "tensorboard>=2.15",
            "uvicorn>=0.30",
            # spaCy's tokenizers of Japanese and Thai
            "pythainlp>=5",
            "sudachidict-core>=20240109",
            "sudachipy>=0.6.8",
            "build>=1",
            "setuptools>=70.1",
            "ruff>=0.6",
            "mypy>=1.10",
        ],
    },
    entry_points={
        "console_scripts": ["spacy-sapbert = spacy_sapbert.cli.main:app"],
        "spacy_cli": ["sapbert = spacy_sapbert.cli.plugin:app"],
        "spacy_factories": [
            "sapbert_abbreviations = "
            "spacy_sapbert.pipeline.abbreviation_detector:make_sapbert_abbreviations",
            "sapbert_linker = spacy_sapbert.pipeline.linker:make_sapbert_linker",
            "sapbert_mentions = "
            "spacy_sapbert.pipeline.mention_detector:make_sapbert_mentions",
        ],
        "spacy_scorers": [
            "spacy-sapbert.linker_scorer.v1 = "
            "spacy_sapbert.pipeline.scorer:make_linker_scorer",
        ],
        "spacy_architectures": [
            "spacy-sapbert.OpenVinoEncoder.v1 = "
            "spacy_sapbert.encoder.encoder:make_openvino_encoder",
            "spacy-sapbert.TransformerEncoder.v1 = "
            "spacy_sapbert.encoder.encoder:make_transformer_encoder",
        ],
    },
)
