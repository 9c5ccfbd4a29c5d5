"""From a file of names to a link in scripts of every kind."""

from collections.abc import Callable
from pathlib import Path
from unicodedata import normalize

import pytest
import spacy
from spacy.tokens import Doc
from tokenizers import Tokenizer, normalizers

from spacy_sapbert.encoder.huggingface import EncoderSettings
from spacy_sapbert.kb.knowledge_base import KnowledgeBase, load_kb
from spacy_sapbert.vocabularies.concepts import Concept, write_concepts
from tests.building import build_small_kb

NAMES = {
    "C1": "Fever 发热 発熱 ไข้ حمى חום 열 лихорадка πυρετός ज्वर",
    "C2": "Headache 头痛 頭痛 ปวดหัว صداع כאב־ראש 두통 мигрень πονοκέφαλος सिरदर्द",
    "C3": "Diabetes 糖尿病 เบาหวาน السكري סוכרת 당뇨병 диабет διαβήτης मधुमेह",
    "C4": "HbA1c 糖化血红蛋白 ヘモグロビン",
    "C5": "Ménière がん ガン 癌 אֶבֶן مُعْدٍ",
}
# as it may be written, as the file has it
FORMS = [
    *((name, name) for names in NAMES.values() for name in names.split()),
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
    ("患者发热三天。", "发热"),
    ("患者は発熱と頭痛を訴えた。", "発熱 頭痛"),
    ("検査HbA1c。", "HbA1c"),
    ("ผู้ป่วยมีอาการไข้และปวดหัว", "ไข้ ปวดหัว"),
]


def list_letters() -> list[str]:
    """List each character of the names, at the start of a word and in it."""
    text = normalize("NFD", " ".join(NAMES.values())).lower()
    letters = sorted({*text, *normalize("NFC", text)} - {" "})
    return [*letters, *(f"##{letter}" for letter in letters)]


@pytest.fixture(scope="module", params=["bert", "nfkc"])
def kb(
    request: pytest.FixtureRequest,
    make_bert: Callable[..., Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> KnowledgeBase:
    """With a tokenizer as BERT's, and with one that keeps accents and unifies forms."""
    folder = tmp_path_factory.mktemp(request.param)
    concepts = [Concept(cui, text.split()) for cui, text in NAMES.items()]
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


def test_names_are_linked_in_each_script_and_form(kb: KnowledgeBase) -> None:
    for (written, name), linked in zip(
        FORMS, kb.link([written for written, _ in FORMS]), strict=True
    ):
        best = linked.candidates[0]
        assert (best["alias"], round(best["score"], 4)) == (name, 1), ascii(written)
        assert name in NAMES[str(linked.cui)].split()


def test_points_of_other_scripts_depend_on_the_tokenizer(kb: KnowledgeBase) -> None:
    best = kb.link(["אבן"])[0].candidates[0]
    # an uncased BERT takes them away
    assert (best["score"] == 1) == kb.folder.parent.name.startswith("bert")


@pytest.mark.parametrize(("text", "mentions"), IN_TEXT)
def test_names_are_found_and_linked_in_a_text_without_blanks(
    kb: KnowledgeBase, text: str, mentions: str
) -> None:
    nlp = spacy.blank("xx")
    nlp.add_pipe("sapbert_mentions", config={"kb": str(kb.folder)})
    nlp.add_pipe("sapbert_linker", config={"kb": str(kb.folder)})
    doc = Doc(nlp.vocab, words=[*text], spaces=[False] * len(text))
    for _, component in nlp.pipeline:
        doc = component(doc)
    assert [ent.text for ent in doc.ents] == mentions.split()
    for ent in doc.ents:
        assert ent.text in NAMES[ent.kb_id_].split()
