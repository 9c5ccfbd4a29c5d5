"""Names that are mostly not mentions, learned from texts."""

from functools import partial

import pytest
import spacy

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.formats.gold import GoldMention
from spacy_sapbert.pipeline.mention_detector import SapbertMentions
from spacy_sapbert.pipeline.stop_names import (
    NameCount,
    learn_stop_names,
    read_stop_names,
    write_stop_names,
)
from tests.building import annotated_document
from tests.commands import invoke

TEXTS = [
    ("Fever of a heart attack.", "Fever"),
    ("A heart attack, fever.", "fever"),
    ("Myocardial infarction.", "Myocardial infarction"),
    ("No fever, no MI.", ""),
]
PUBTATOR = """\
1|t|A heart attack.
1|a|It was a heart attack, with fever.
1\t44\t49\tfever\tDisease\tC0000004

"""


def test_names_with_few_mentions_are_learned(sample_kb):
    nlp, documents = spacy.blank("en"), []
    for text, mention in TEXTS:
        start = text.find(mention)
        gold = [GoldMention(start, start + len(mention), "", mention, [], 0)]
        documents.append(annotated_document("", text, gold if mention else []))
    mentions = SapbertMentions(nlp, kb=sample_kb)
    learn = partial(learn_stop_names, nlp, mentions.find_places, documents)
    # Fever is a mention in two of three places.
    few = [NameCount("heart attack", 0, 2), NameCount("MI", 0, 1)]
    assert learn(share=0.5) == few
    assert learn(share=0.7) == [NameCount("fever", 2, 3), *few]
    assert learn(share=0) == []


def test_list_is_read_as_it_was_written_by_the_command_or_by_hand(tmp_path):
    path = tmp_path / "stop_names.tsv"
    write_stop_names(path, [NameCount("type - 2", 0, 3)], lang="en")
    names = read_stop_names(path)
    assert names[0] == "type - 2"
    assert {"history", "negative"} < {*names}
    assert "name\tmentions\toccurrences\ntype - 2\t0\t3\nabnormal" in path.read_text()
    path.write_text("# mine\nHistory\n\nBeta-blocker\t1\n")
    assert read_stop_names(path) == ["History", "Beta-blocker"]
    path.write_text("# nothing\n")
    with pytest.raises(SapbertError, match="E106"):
        read_stop_names(path)


def test_list_is_saved_with_the_pipeline(sample_kb, tmp_path):
    path = tmp_path / "stop_names.tsv"
    path.write_text("Fever")
    nlp = spacy.blank("en")
    config = {"kb": str(sample_kb), "stop_names": str(path)}
    nlp.add_pipe("sapbert_mentions", config=config)
    text = "heart attack, fever"
    assert [ent.text for ent in nlp(text).ents] == ["heart attack"]
    nlp.to_disk(tmp_path / "pipeline")
    path.unlink()
    loaded = spacy.load(tmp_path / "pipeline")
    assert [ent.text for ent in loaded(text).ents] == ["heart attack"]
    assert loaded.config["components"]["sapbert_mentions"]["stop_names"] == ["Fever"]
    with pytest.raises(SapbertError, match="stop_names.tsv"):
        spacy.blank("en").add_pipe("sapbert_mentions", config=config)


def test_command_writes_the_list_that_assemble_takes(sample_kb, tmp_path):
    corpus, output = tmp_path / "train.txt", tmp_path / "stop_names.tsv"
    corpus.write_text(PUBTATOR)
    invoke("stop-names", sample_kb, corpus, "-o", output, code=0)
    assert "heart attack\t0\t2" in output.read_text()
    words = ["assemble", str(sample_kb), str(tmp_path / "pipeline"), "--short-forms"]
    invoke(*words, "--stop-names", output, code=0)
    other = ["--pipeline", str(tmp_path / "pipeline")]
    invoke(*words[:2], tmp_path / "new", *words[3:], *other, code=2)
    nlp = spacy.load(tmp_path / "pipeline")
    doc = nlp("A heart attack with fever")
    assert [ent.text for ent in doc.ents] == ["fever"]
    assert nlp.get_pipe("sapbert_mentions").short_forms  # type: ignore[attr-defined]
