"""From a file of names to `ent._.cui` in scripts of every kind."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any
from unicodedata import normalize

import numpy as np
import pytest
import spacy
import torch
from spacy.language import Language
from spacy.tokens import Doc, Span
from tokenizers import Tokenizer, normalizers

from spacy_sapbert.encoder.huggingface import (
    EncoderSettings,
    load_encoder,
    save_encoder,
)
from spacy_sapbert.kb.building.build import build_kb
from spacy_sapbert.kb.knowledge_base import load_kb
from spacy_sapbert.vocabularies.concepts import Concept, write_concepts
from tests.building import build_small_kb
from training.trainer.validation import embed_texts

NAMES = {
    "C1": "Fever 发热 発熱 ไข้ حمى חום 열 лихорадка πυρετός ज्वर",
    "C2": "Headache 头痛 頭痛 ปวดหัว صداع כאב־ראש 두통 мигрень πονοκέφαλος सिरदर्द",
    "C3": "Diabetes 糖尿病 เบาหวาน السكري סוכרת 당뇨병 диабет διαβήτης मधुमेह",
    "C4": "HbA1c 糖化血红蛋白 ヘモグロビン",
    "C5": "Ménière がん ガン 癌 אֶבֶן مُعْدٍ",
}
# language, text, mention in it, concept
IN_TEXT = [
    ("zh", "患者发热三天。", "发热", "C1"),
    ("zh", "他有糖尿病和头痛。", "头痛", "C2"),
    ("zh", "他有糖尿病和头痛。", "糖尿病", "C3"),
    ("zh", "检查HbA1c。", "HbA1c", "C4"),
    ("ja", "患者は発熱と頭痛を訴えた。", "頭痛", "C2"),
    ("ja", "ヘモグロビンが低い。", "ヘモグロビン", "C4"),
    ("th", "ผู้ป่วยมีอาการไข้และปวดหัว", "ไข้", "C1"),
    ("th", "ผู้ป่วยเป็นเบาหวาน", "เบาหวาน", "C3"),
    ("ar", "يعاني المريض من حمى و صداع شديد", "صداع", "C2"),
    ("ar", "المريض لديه السكري.", "السكري", "C3"),
    ("he", "לחולה יש חום גבוה", "חום", "C1"),
    ("he", "לחולה יש סוכרת.", "סוכרת", "C3"),
    ("ru", "У пациента Лихорадка и диабет.", "Лихорадка", "C1"),
    ("el", "Ο ΔΙΑΒΉΤΗΣ είναι νόσος.", "ΔΙΑΒΉΤΗΣ", "C3"),
    ("hi", "रोगी को मधुमेह है", "मधुमेह", "C3"),
    ("xx", "환자는 두통 이 있다", "두통", "C2"),
]
# as it may be written, as the file has it
FORMS = [
    (normalize("NFD", "Ménière"), "Ménière"),
    (normalize("NFD", "がん"), "がん"),
    (normalize("NFD", "πυρετός"), "πυρετός"),
    (normalize("NFD", "열"), "열"),
    ("\u200fחום\u200e", "חום"),
    ("\u202bحمى\u202c", "حمى"),
    ("fe\u00adver", "Fever"),
    ("FEVER", "Fever"),
]
COMPATIBLE = [
    ("ＨｂＡ１ｃ", "HbA1c"),
    ("ｶﾞﾝ", "ガン"),
    ("\ufea1\ufee4\ufef0", "حمى"),
]


@pytest.fixture(scope="module")
def names_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("scripts") / "concepts.jsonl"
    write_concepts(path, [Concept(cui, text.split()) for cui, text in NAMES.items()])
    return path


def list_letters() -> list[str]:
    """List each character of the names, at the start of a word and in it."""
    text = normalize("NFD", " ".join(NAMES.values())).lower()
    letters = sorted({*text, *normalize("NFC", text)} - {" "})
    return [*letters, *(f"##{letter}" for letter in letters)]


def make_xlm_roberta(folder: Path) -> Path:
    """A cased XLM-RoBERTa with random weights: other special pieces, no wordpieces."""
    from tokenizers import pre_tokenizers
    from tokenizers.models import Unigram
    from tokenizers.processors import TemplateProcessing
    from transformers import (
        PreTrainedTokenizerFast,
        XLMRobertaConfig,
        XLMRobertaModel,
    )

    folder.mkdir()
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    letters = sorted({*normalize("NFKC", " ".join(NAMES.values()))} - {" "})
    scores = [(piece, 0.0) for piece in special]
    scores += [(piece, -5.0) for piece in ("▁", *letters)]
    pieces = Tokenizer(Unigram(scores, unk_id=special.index("<unk>")))
    pieces.normalizer = normalizers.NFKC()
    pieces.pre_tokenizer = pre_tokenizers.Metaspace()
    pieces.post_processor = TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=pieces,
        bos_token="<s>",
        cls_token="<s>",
        eos_token="</s>",
        sep_token="</s>",
        pad_token="<pad>",
        unk_token="<unk>",
    )
    torch.manual_seed(0)
    config = XLMRobertaConfig(
        vocab_size=len(scores),
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=66,
        type_vocab_size=1,
    )
    how = EncoderSettings("mean", lowercase=False)
    save_encoder(folder, tokenizer, XLMRobertaModel(config), how)
    return folder


@pytest.fixture(scope="module", params=["bert", "nfkc"])
def kb(
    request: pytest.FixtureRequest,
    names_file: Path,
    make_bert: Callable[..., Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """With a tokenizer as BERT's, and with one that keeps accents and unifies forms."""
    folder = tmp_path_factory.mktemp(request.param)
    make_bert(folder / "encoder", list_letters())
    if request.param == "nfkc":
        path = str(folder / "encoder" / "tokenizer.json")
        tokenizer = Tokenizer.from_file(path)
        tokenizer.normalizer = normalizers.Sequence(
            [normalizers.NFKC(), normalizers.BertNormalizer(strip_accents=False)]
        )
        tokenizer.save(path)
    how = EncoderSettings("mean")
    encoder = str(folder / "encoder")
    build_small_kb(names_file, folder / "kb", encoder, settings=how)
    return folder / "kb"


@cache
def make_nlp(lang: str, kb: Path) -> Language:
    try:
        nlp = spacy.blank(lang)
    except ImportError as error:
        reason = str(error).strip().partition("\n")[0]
        pytest.skip(f"spaCy needs another package for {lang!r}: {reason}")
    nlp.add_pipe("sapbert_linker", config={"kb": str(kb), "k": 2})
    return nlp


def link(nlp: Language, doc: Doc, span: Span | None) -> Any:
    assert span is not None
    doc.ents = [span]
    (ent,) = nlp.get_pipe("sapbert_linker")(doc).ents
    return ent


@pytest.mark.parametrize(("lang", "text", "mention", "cui"), IN_TEXT)
def test_link_works_in_each_language(
    lang: str, text: str, mention: str, cui: str, kb: Path
) -> None:
    nlp = make_nlp(lang, kb)
    doc = nlp.make_doc(text)
    start = text.index(mention)
    ent = link(nlp, doc, doc.char_span(start, start + len(mention), "X"))
    assert (ent.text, ent._.cui, ent.kb_id_) == (mention, cui, cui)
    assert ent._.candidates[0]["score"] == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize(
    ("text", "mention", "cui"),
    [case[1:] for case in IN_TEXT if case[0] in ("ja", "th")],
)
def test_link_works_with_a_token_for_each_character(
    text: str, mention: str, cui: str, kb: Path
) -> None:
    nlp = make_nlp("xx", kb)
    doc = Doc(nlp.vocab, words=[*text], spaces=[False] * len(text))
    start = text.index(mention)
    ent = link(nlp, doc, doc.char_span(start, start + len(mention), "X"))
    assert (ent.text, ent._.cui) == (mention, cui)


def link_mention(kb: Path, mention: str) -> Any:
    nlp = make_nlp("xx", kb)
    doc = Doc(nlp.vocab, words=[mention])
    return link(nlp, doc, Span(doc, 0, 1, "X"))


def find_alias(kb: Path, mention: str) -> list[Any]:
    best = link_mention(kb, mention)._.candidates[0]
    return [best["alias"], round(best["score"], 4)]


@pytest.mark.parametrize(("written", "name"), FORMS, ids=ascii)
def test_link_finds_other_unicode_forms_of_a_name(
    written: str, name: str, kb: Path
) -> None:
    assert find_alias(kb, written) == [name, 1]


@pytest.mark.parametrize(("written", "name"), COMPATIBLE, ids=ascii)
def test_link_finds_other_widths_of_a_name(written: str, name: str, kb: Path) -> None:
    """Whatever the tokenizer makes of them: BERT does not know them."""
    assert find_alias(kb, written) == [name, 1]


def test_link_finds_latin_letters_without_accents(kb: Path) -> None:
    assert find_alias(kb, "Meniere") == ["Ménière", 1]


def test_link_points_of_other_scripts_depend_on_the_tokenizer(kb: Path) -> None:
    name = "אֶבֶן"
    alias, score = find_alias(kb, "אבן")
    if kb.parent.name.startswith("bert"):
        assert [alias, score] == [name, 1]  # an uncased BERT takes them away
    else:
        assert score < 1


def test_link_with_cased_xlm_roberta(names_file: Path, tmp_path: Path) -> None:
    encoder = make_xlm_roberta(tmp_path / "encoder")
    build_kb(names_file, tmp_path / "kb", str(encoder), engine="torch")
    for mention in ("Fever", "FEVER", "糖尿病", "ＨｂＡ１ｃ", "ปวดหัว", "חום"):
        assert find_alias(tmp_path / "kb", mention)[1] == 1
    kb = load_kb(str(tmp_path / "kb"))
    # It keeps case: only that it is a name makes "FEVER" be "Fever".
    small, large = kb.embed(["Fever", "FEVER"]).vectors
    assert not np.allclose(small, large, atol=1e-3)
    # what fills up a batch is nothing to it
    names = ["Fever", "πονοκέφαλος", "열"]
    alone = np.concatenate([kb.embed([name]).vectors for name in names])
    np.testing.assert_allclose(kb.embed(names).vectors, alone, atol=1e-6)
    # the same as plain transformers
    tokenizer, model = load_encoder(str(encoder))
    inputs = tokenizer("Fever", return_tensors="pt", return_token_type_ids=False)
    states = model(**inputs).last_hidden_state[0].mean(0).detach().numpy()
    np.testing.assert_allclose(alone[0], states / np.linalg.norm(states), atol=1e-5)
    # and as training runs it, which hands vectors of pieces to the encoder
    trained = embed_texts(
        model, tokenizer, names, pooling="mean", max_length=25
    ).numpy()
    np.testing.assert_allclose(trained, alone, atol=1e-5)
