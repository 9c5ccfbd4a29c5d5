"""What several tests of tables use."""

import pytest

from spacy_sapbert.kb.knowledge_base import KnowledgeBase, load_kb


@pytest.fixture(scope="module")
def kb(sample_kb) -> KnowledgeBase:
    return load_kb(sample_kb)
