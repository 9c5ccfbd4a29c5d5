import shutil
from pathlib import Path
from unicodedata import normalize

import numpy as np
import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Doc
from tokenizers import Tokenizer, normalizers
from transformers import AutoModel, AutoTokenizer

from spacy_sapbert.encoder.encoder import (
    LEAST_NAMES,
    MOST_PADDED,
    Encoder,
    EncoderConfig,
    split_passes,
)
from spacy_sapbert.encoder.huggingface import (
    EncoderSettings,
    load_encoder,
)
from spacy_sapbert.encoder.pooling import POOLINGS
from spacy_sapbert.errors import SapbertError
from spacy_sapbert.kb.knowledge_base import KnowledgeBase, load_kb
from spacy_sapbert.vocabularies.concepts import Concept, write_concepts
from tests.building import build_small_kb
from tests.encoder.test_published_folders import expected_vectors

NAMES = ["heart attack", "Fever", "a", "pain of the lung, acute", "x y z " * 20, "ä"]


@pytest.fixture(scope="module")
def encoder(tiny_encoder) -> Encoder:
    return Encoder.open(tiny_encoder)


@pytest.mark.parametrize("pooling", sorted(POOLINGS))
def test_encoder_equals_transformers(tiny_encoder, pooling):
    config, settings = EncoderConfig(names_per_pass=4), EncoderSettings(pooling)
    encoder = Encoder.open(tiny_encoder, config, settings=settings)
    assert Encoder.open(tiny_encoder).settings == EncoderSettings("mean", 25, True)
    vectors = encoder.embed(NAMES)
    assert vectors.dtype == np.float32
    tokenizer = AutoTokenizer.from_pretrained(tiny_encoder)
    model = AutoModel.from_pretrained(tiny_encoder).eval()
    names = [name.lower() for name in NAMES]
    expected = expected_vectors(tokenizer, model, names, pooling)
    assert np.allclose(vectors, expected, atol=1e-5)


def test_encoder_does_not_depend_on_the_batch(tiny_encoder):
    encoder = Encoder.open(tiny_encoder, EncoderConfig(names_per_pass=3))
    alone = np.concatenate([encoder.embed([name]) for name in NAMES])
    assert np.allclose(encoder.embed(NAMES), alone, atol=1e-6)


@given(st.lists(st.integers(1, 25), max_size=300).map(sorted), st.integers(1, 64))
def test_passes_have_all_names_and_little_padding(lengths, most):
    passes = [*split_passes(lengths, most, True)]
    covered = [n for start, end in passes for n in range(start, end)]
    assert covered == [*range(len(lengths))]
    for start, end in passes:
        assert 0 < end - start <= most
        padded = (end - start) * lengths[end - 1]
        if end - start > LEAST_NAMES:
            assert padded <= MOST_PADDED * sum(lengths[start:end])


def test_passes_by_hand():
    passes = [*split_passes([3, 3, 4, 5, 5, 5], 2, False)]
    assert passes == [(0, 2), (2, 3), (3, 5), (5, 6)]
    # with 9 names the second had 9 · 5 tokens, of which 1.25 · 35 may be padded
    lengths = [1] * 3 + [2] * 5 + [3] * 4 + [4] * 2 + [5] * 3
    assert [*split_passes(lengths, 64, True)] == [(0, 8), (8, 16), (16, 17)]


def test_encoder_bfloat16_is_close_to_float32(encoder, tiny_encoder):
    fast = Encoder.open(tiny_encoder, EncoderConfig(precision="bf16"))
    cosines = (encoder.embed(NAMES) * fast.embed(NAMES)).sum(axis=1)
    assert cosines.min() > 0.99


def test_encoder_unreadable_names_have_the_zero_vector(encoder):
    pieces, cut = encoder.tokenize(["頭痛", "", "\ud800", "fever"])
    assert pieces[:2] == [(), ()]
    assert pieces[3] != ()
    assert cut == [False] * 4
    assert not encoder.embed(["頭痛"]).any()
    assert encoder.embed([]).shape == (0, 32)


def test_encoder_truncates_and_flags_long_names(encoder):
    names = ["a " * 30, "a " * 23, "fever" + " " * 5000, "a" * 10_000]
    pieces, cut = encoder.tokenize(names)
    assert cut == [True, False, True, True]
    separator = encoder.engine.tokenizer.backend.token_to_id("[SEP]")
    assert len(pieces[0]) == len(pieces[1]) == 25
    assert pieces[0][-1] == pieces[1][-1] == separator


def test_load_encoder_with_custom_code_is_an_error(tiny_encoder, tmp_path):
    folder = Path(shutil.copytree(tiny_encoder, tmp_path / "foreign"))
    config = folder / "config.json"
    text = config.read_text("utf8")
    config.write_text(
        text.replace("{", '{"auto_map": {"AutoModel": "x.Y"},', 1), "utf8"
    )
    with pytest.raises(SapbertError, match="auto_map"):
        Encoder.open(folder)


def test_load_encoder_missing_folder_is_an_error_without_network(
    tiny_encoder, tmp_path, monkeypatch
):
    def refuse(*args: object) -> None:
        raise AssertionError("the network was asked")

    monkeypatch.setattr("socket.socket.connect", refuse)
    monkeypatch.chdir(tiny_encoder.parent.parent)
    typo = f"{tiny_encoder.parent.name}/encodr"
    for name in (str(tmp_path / "none"), "./none", typo):
        with pytest.raises(SapbertError, match="encoder folder at"):
            load_encoder(name)


SCRIPTS = {
    "C1": "Fever 发热 発熱 ไข้ حمى חום 열 лихорадка πυρετός ज्वर",
    "C2": "Headache 头痛 頭痛 ปวดหัว صداع כאב־ראש 두통 мигрень πονοκέφαλος सिरदर्द",
    "C3": "Diabetes 糖尿病 เบาหวาน السكري סוכרת 당뇨병 диабет διαβήτης मधुमेह",
    "C4": "HbA1c 糖化血红蛋白 ヘモグロビン",
    "C5": "Ménière がん ガン 癌 אֶבֶן مُعْدٍ",
}
# as it may be written, as the file has it
FORMS = [
    *((name, name) for names in SCRIPTS.values() for name in names.split()),
    (normalize("NFD", "Ménière"), "Ménière"),
    (normalize("NFD", "がん"), "がん"),
    (normalize("NFD", "πυρετός"), "πυρετός"),
    (normalize("NFD", "열"), "열"),
    ("\u200fחום\u200e", "חום"),
    ("\u202bحمى\u202c", "حمى"),
    ("fe\u00adver", "Fever"),
    ("FEVER", "Fever"),
    ("Лихорадка", "лихорадка"),
    ("ΔΙΑΒΉΤΗΣ", "διαβήτης"),
    ("Meniere", "Ménière"),
    # whatever the tokenizer makes of them: BERT does not know them
    ("ＨｂＡ１ｃ", "HbA1c"),
    ("ｶﾞﾝ", "ガン"),
    ("\ufea1\ufee4\ufef0", "حمى"),
]
# in texts with a token for each character
IN_TEXT = [
    ("患者は発熱と頭痛を訴えた。", "発熱 頭痛"),
    ("検査HbA1c。", "HbA1c"),
    ("ผู้ป่วยมีอาการไข้และปวดหัว", "ไข้ ปวดหัว"),
]


def list_letters() -> list[str]:
    """List each character of the names, at the start of a word and in it."""
    text = normalize("NFD", " ".join(SCRIPTS.values())).lower()
    letters = sorted({*text, *normalize("NFC", text)} - {" "})
    return [*letters, *(f"##{letter}" for letter in letters)]


@pytest.fixture(scope="module", params=["bert", "nfkc"])
def kb(request, make_bert, tmp_path_factory) -> KnowledgeBase:
    """With a tokenizer as BERT's, and with one that keeps accents and unifies forms."""
    folder = tmp_path_factory.mktemp(request.param)
    concepts = [Concept(cui, text.split()) for cui, text in SCRIPTS.items()]
    write_concepts(folder / "concepts.jsonl", concepts)
    make_bert(folder / "encoder", list_letters())
    if request.param == "nfkc":
        path = str(folder / "encoder" / "tokenizer.json")
        tokenizer = Tokenizer.from_file(path)
        tokenizer.normalizer = normalizers.Sequence(
            [normalizers.NFKC(), normalizers.BertNormalizer(strip_accents=False)]
        )
        tokenizer.save(path)
    how, encoder = EncoderSettings("mean"), str(folder / "encoder")
    build_small_kb(folder / "concepts.jsonl", folder / "kb", encoder, settings=how)
    return load_kb(folder / "kb")


def test_names_are_linked_in_each_script_and_form(kb):
    for (written, name), linked in zip(
        FORMS, kb.link([written for written, _ in FORMS]), strict=True
    ):
        best = linked.candidates[0]
        assert (best["alias"], round(best["score"], 4)) == (name, 1), ascii(written)
        assert name in SCRIPTS[str(linked.cui)].split()


def test_points_of_other_scripts_depend_on_the_tokenizer(kb):
    best = kb.link(["אבן"])[0].candidates[0]
    # an uncased BERT takes them away
    assert (best["score"] == 1) == kb.folder.parent.name.startswith("bert")


@pytest.mark.parametrize(("text", "mentions"), IN_TEXT)
def test_names_are_found_and_linked_in_a_text_without_blanks(kb, text, mentions):
    nlp = spacy.blank("xx")
    nlp.add_pipe("sapbert_mentions", config={"kb": str(kb.folder)})
    nlp.add_pipe("sapbert_linker", config={"kb": str(kb.folder)})
    doc = Doc(nlp.vocab, words=[*text], spaces=[False] * len(text))
    for _, component in nlp.pipeline:
        doc = component(doc)
    assert [ent.text for ent in doc.ents] == mentions.split()
    for ent in doc.ents:
        assert ent.text in SCRIPTS[ent.kb_id_].split()
