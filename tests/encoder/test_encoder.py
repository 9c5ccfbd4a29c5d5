from unicodedata import normalize

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
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
from spacy_sapbert.kb.knowledge_base import load_kb
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


def test_names_are_linked_in_each_script_and_form(make_bert, tmp_path):
    text = normalize("NFD", " ".join(SCRIPTS.values())).lower()
    letters = sorted({*text, *normalize("NFC", text)} - {" "})
    make_bert(tmp_path / "encoder", [*letters, *(f"##{each}" for each in letters)])
    concepts = [Concept(cui, text.split()) for cui, text in SCRIPTS.items()]
    write_concepts(tmp_path / "concepts.jsonl", concepts)
    build_small_kb(tmp_path / "concepts.jsonl", tmp_path / "kb", tmp_path / "encoder")
    kb = load_kb(tmp_path / "kb")
    for (written, name), linked in zip(
        FORMS, kb.link([written for written, _ in FORMS]), strict=True
    ):
        best = linked.candidates[0]
        assert (best["alias"], round(best["score"], 4)) == (name, 1), ascii(written)
        assert name in SCRIPTS[str(linked.cui)].split()
