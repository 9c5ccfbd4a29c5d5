import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from spacy_sapbert.encoder.huggingface import load_encoder, read_settings
from spacy_sapbert.errors import SapbertError
from spacy_sapbert.system.reading import file_digest
from spacy_sapbert.vocabularies.concepts import Concept, write_concepts
from training.encoders.new_encoder import make_encoder, read_names, spell_piece
from training.encoders.wordpieces import learn_pieces, make_tokenizer

ROOT = Path(__file__).parents[3]
FILES = ("model.safetensors", "tokenizer.json", "config.json", "sapbert.json")


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Names in four scripts."""
    path = tmp_path_factory.mktemp("named") / "concepts.jsonl"
    concepts = [
        Concept("C1", ["Heart attack", "sydänkohtaus", "инфаркт миокарда"]),
        Concept("C2", ["heart failure", "sydämen vajaatoiminta", "心不全"]),
        Concept("C3", ["heart", "sydän", "сердце", "心臓"]),
        Concept("C4", ["fever", "kuume", "лихорадка", "発熱"]),
        Concept("C5", ["acute fever", "äkillinen kuume", "острая лихорадка"]),
    ]
    write_concepts(path, concepts)
    return path


def test_learn_pieces_of_names() -> None:
    names = ["fever", "fever", "Fever", "kuume", "kuume"]
    pieces = learn_pieces(names, size=200, lowercase=True)
    assert pieces[:5] == ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    assert {"fever", "kuume", "f", "##e"} <= {*pieces}
    tokenizer = make_tokenizer(pieces, lowercase=True)
    assert tokenizer.tokenize("FEVER kuume") == ["fever", "kuume"]
    ids = tokenizer("fever")["input_ids"]
    assert tokenizer.convert_ids_to_tokens(ids) == ["[CLS]", "fever", "[SEP]"]
    cased = make_tokenizer(
        learn_pieces(["Fever", "Fever", "fever"], size=200, lowercase=False),
        lowercase=False,
    )
    assert cased.tokenize("Fever") == ["Fever"]
    assert cased.tokenize("fever") != ["Fever"]


def test_make_tokenizer_keeps_accents_and_unifies_forms() -> None:
    pieces = learn_pieces(["sydän", "sydän", "HbA1c", "が"], size=200, lowercase=True)
    tokenizer = make_tokenizer(pieces, lowercase=True)
    assert tokenizer.tokenize("sydän") == ["sydän"]
    assert tokenizer.tokenize("syda\u0308n") == ["sydän"]  # decomposed
    assert "".join(tokenizer.tokenize("ＨｂＡ１ｃ")).replace("##", "") == "hba1c"
    assert tokenizer.tokenize("か\u3099") == ["が"]
    assert tokenizer.tokenize("sydan") != ["sydän"]


def test_learn_pieces_has_at_most_half_characters() -> None:
    many = [chr(0x4E00 + number) for number in range(3000)]
    names = [*many, *["fever"] * 5]
    pieces = learn_pieces(names, size=300, lowercase=True)
    assert len(pieces) <= 300
    assert "fever" in pieces
    assert sum(piece in set(many) for piece in pieces) <= 150
    with pytest.raises(SapbertError, match="E776"):
        learn_pieces([], size=200, lowercase=True)


def test_make_encoder_learns_words_of_translations(named: Path, tmp_path: Path) -> None:
    translations = tmp_path / "translations.tsv"
    line = "translation:{}\tliver\tмаксамакса\n"
    translations.write_text("".join(line.format(i) for i in range(3)), "utf8")
    names = list(read_names(named, [translations]))
    assert names[:2] == ["Heart attack", "sydänkohtaus"]
    assert names[-2:] == ["liver", "максамакса"]
    folder = tmp_path / "encoder"
    make_encoder(named, folder, translations=[translations], size=200, layers=1)
    tokenizer, _ = load_encoder(str(folder))
    assert tokenizer.tokenize("liver максамакса") == ["liver", "максамакса"]
    translations.write_text("translation:1\tliver\n", "utf8")
    with pytest.raises(SapbertError, match=r"E603.*translations\.tsv:1"):
        list(read_names(named, [translations]))


def digests(folder: Path) -> list[str]:
    return [file_digest(folder / name) for name in FILES]


def test_make_encoder_is_the_same_for_a_seed(
    named: Path, tiny_encoder: Path, tmp_path: Path
) -> None:
    for number, hash_seed in enumerate(("1", "2")):
        subprocess.run(
            [sys.executable, "-m", "training", "new-encoder", str(named)]
            + [str(tmp_path / str(number)), "--body", str(tiny_encoder)]
            + ["--size", "160", "--quiet"],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            cwd=ROOT,
            check=True,
        )
    assert digests(tmp_path / "0") == digests(tmp_path / "1")


def test_make_encoder_keeps_the_vectors_of_common_pieces(
    named: Path, tiny_encoder: Path, tmp_path: Path
) -> None:
    counts = make_encoder(named, tmp_path / "new", size=300, body=str(tiny_encoder))
    old_tokenizer, old = load_encoder(str(tiny_encoder))
    tokenizer, model = load_encoder(str(tmp_path / "new"))
    before = old.get_input_embeddings().weight
    after = model.get_input_embeddings().weight
    assert after.shape == (counts["wordpieces"], 32)
    assert counts["wordpieces"] == len(tokenizer)
    ids, old_ids = tokenizer.get_vocab(), old_tokenizer.get_vocab()
    both = ids.keys() & old_ids.keys()
    assert {"heart", "fever", "[CLS]", "[PAD]", "##e"} <= both
    for piece in both:
        assert torch.equal(after[ids[piece]], before[old_ids[piece]])
    assert counts["same"] == len(both)
    spelled = [old_ids["k"], *(old_ids[f"##{each}"] for each in "uume")]
    assert torch.allclose(after[ids["kuume"]], before[spelled].mean(0), atol=1e-6)
    known = spelling(old_tokenizer)
    assert counts["random"] == sum(not spell_piece(piece, *known) for piece in ids)
    # what is not of the wordpieces is as it was
    own, others = model.state_dict(), old.state_dict()
    same = [key for key in own if "word_embeddings" not in key]
    assert all(torch.equal(own[key], others[key]) for key in same)
    assert read_settings(tmp_path / "new") == read_settings(tiny_encoder)


def spelling(tokenizer: Any) -> tuple[Any, dict[str, int]]:
    return tokenizer.backend_tokenizer, tokenizer.get_vocab()


def test_spell_piece_begins_inside_a_word_where_the_piece_does(
    tiny_encoder: Path,
) -> None:
    tokenizer, _ = load_encoder(str(tiny_encoder))
    backend, vocabulary = spelling(tokenizer)
    spell = [
        tokenizer.convert_ids_to_tokens(spell_piece(piece, backend, vocabulary))
        for piece in ("heart", "hearts", "##ab", "##ÀB", "心")
    ]
    # the tiny encoder takes accents away
    inside = ["##a", "##b"]
    assert spell == [["heart"], ["heart", "##s"], inside, inside, []]


def test_make_encoder_without_a_body_has_the_given_size(
    named: Path, tmp_path: Path
) -> None:
    sizes = {"width": 64, "layers": 1, "size": 160}
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        make_encoder(named, tmp_path / name, seed=seed, lowercase=False, **sizes)
    first, again, other = (digests(tmp_path / name) for name in "abc")
    assert first == again
    assert first[0] != other[0]
    tokenizer, model = load_encoder(str(tmp_path / "a"))
    states = model(**tokenizer("Heart", return_tensors="pt")).last_hidden_state
    assert states.shape[2] == 64
    assert model.config.num_hidden_layers == 1
    assert not read_settings(tmp_path / "a").lowercase


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["--width", "100"], "E777"),
        (["--body", "BODY", "--width", "64"], "E779"),
        (["--body", "models/none/such"], "E634"),
    ],
)
def test_new_encoder_with_bad_options_is_an_error(
    options: list[str],
    code: str,
    invoke: Callable[..., Any],
    named: Path,
    tiny_encoder: Path,
    tmp_path: Path,
) -> None:
    options = [str(tiny_encoder) if each == "BODY" else each for each in options]
    shown = invoke("new-encoder", named, tmp_path / "new", *options, code=1).output
    assert code in shown
    assert list(tmp_path.iterdir()) == []
