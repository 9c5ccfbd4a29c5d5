from pathlib import Path

import pytest
import spacy

from spacy_sapbert.errors import SapbertError
from training.assemble import assemble_pipeline


def test_assemble_pipeline_detects_and_links(sample_kb: Path, tmp_path: Path) -> None:
    assemble_pipeline(
        sample_kb, tmp_path / "pipeline", "tiny", "1.0.0", "en", quiet=True
    )
    nlp = spacy.load(tmp_path / "pipeline")
    doc = nlp("She had a heart attack, then fever.")
    assert [(ent.text, ent.kb_id_) for ent in doc.ents] == [
        ("heart attack", "C0000001"),
        ("fever", "C0000004"),
    ]
    assert nlp.meta["name"] == "tiny"
    assert "8 concepts" in nlp.meta["description"]


def test_assemble_refuses_a_damaged_kb(own_kb: Path, tmp_path: Path) -> None:
    (own_kb / "concepts.db").unlink()
    with pytest.raises(SapbertError):
        assemble_pipeline(
            own_kb, tmp_path / "pipeline", "tiny", "1.0.0", "en", quiet=True
        )
    assert not (tmp_path / "pipeline").exists()
