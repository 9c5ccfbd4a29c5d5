"""Encoder folders as the hub has them, with random weights."""

import json
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertTokenizer,
    XLMRobertaConfig,
    XLMRobertaModel,
)

from spacy_sapbert.encoder.huggingface import (
    EncoderSettings,
    load_encoder,
    read_settings,
    write_settings,
)
from spacy_sapbert.errors import SapbertError
from spacy_sapbert.kb.building.build import build_kb
from spacy_sapbert.kb.knowledge_base import load_kb
from spacy_sapbert.vocabularies.concepts import Concept, write_concepts
from training.encoders.open import open_encoder
from training.trainer.validation import embed_texts

NAMES = ["heart attack", "fever of the heart", "acute pain"]
WORDS = ["heart", "attack", "fever", "pain", "acute", "the", "of"]
SIZES = {
    "hidden_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
}


def write_json(path: Path, data: Any) -> None:
    path.write_text(json.dumps(data), "utf8")


def make_masked_bert(folder: Path) -> BertForMaskedLM:
    """Write a folder like BiomedBERT's, without its weights, and return the model."""
    folder.mkdir()
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    (folder / "vocab.txt").write_text("\n".join(words) + "\n", "utf8")
    write_json(folder / "tokenizer_config.json", {"do_lower_case": True})
    torch.manual_seed(0)
    model = BertForMaskedLM(BertConfig(vocab_size=len(words), **SIZES)).eval()
    write_json(
        folder / "config.json",
        {
            "architectures": ["BertForMaskedLM"],
            "model_type": "bert",
            "vocab_size": len(words),
            **SIZES,
        },
    )
    (folder / "flax_model.msgpack").write_bytes(b"not read")
    return model


@pytest.fixture
def masked_bert(tmp_path) -> tuple[Path, BertForMaskedLM]:
    """A folder like BiomedBERT's, without its weights, and the model."""
    folder = tmp_path / "BiomedBERT"
    return folder, make_masked_bert(folder)


def old_names(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Return the weights as files of the year 2020 name them."""
    weights = {
        key.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
            "LayerNorm.bias", "LayerNorm.beta"
        ): value.clone()
        for key, value in model.state_dict().items()
    }
    positions = torch.arange(SIZES["max_position_embeddings"])[None]
    return {**weights, "bert.embeddings.position_ids": positions}


def save_shards(folder: Path, weights: dict[str, torch.Tensor]) -> dict[str, str]:
    """Save weights as two shards, and return which has which."""
    keys = sorted(weights)
    parts = {"1": keys[::2], "2": keys[1::2]}
    index = {}
    for number, names in parts.items():
        file = f"pytorch_model-0000{number}-of-00002.bin"
        torch.save({name: weights[name] for name in names}, folder / file)
        index.update(dict.fromkeys(names, file))
    write_json(
        folder / "pytorch_model.bin.index.json", {"metadata": {}, "weight_map": index}
    )
    return index


def vectors_of(folder: Path, names: list[str] = NAMES) -> np.ndarray:
    return open_encoder(folder).embed(names)


def expected_vectors(
    tokenizer: Any, model: Any, names: list[str] = NAMES, pooling: str = "cls"
) -> np.ndarray:
    """Embed each name with plain transformers."""
    vectors = []
    for name in names:
        with torch.no_grad():
            cut = {"truncation": True, "max_length": 25}
            inputs = tokenizer(name, return_tensors="pt", **cut)
            states = model(**inputs).last_hidden_state[0]
        vector = states[0] if pooling == "cls" else states.mean(0)
        vectors.append((vector / vector.norm()).numpy())
    return np.stack(vectors)


@pytest.mark.parametrize("zipped", [True, False])
def test_open_encoder_of_pickled_weights_equals_transformers(masked_bert, zipped):
    folder, model = masked_bert
    path = folder / "pytorch_model.bin"
    torch.save(old_names(model), path, _use_new_zipfile_serialization=zipped)
    assert zipfile.is_zipfile(path) == zipped
    with pytest.warns(UserWarning, match=r"W600.*pytorch_model.bin"):
        vectors = vectors_of(folder)
    tokenizer = BertTokenizer(str(folder / "vocab.txt"))
    expected = expected_vectors(tokenizer, model.bert)
    np.testing.assert_allclose(vectors, expected, atol=1e-6)


def test_open_encoder_prefers_safetensors(masked_bert, recwarn):
    folder, model = masked_bert
    weights = {key: value.clone() for key, value in model.bert.state_dict().items()}
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    (folder / "pytorch_model.bin").write_bytes(b"not read")
    tokenizer = BertTokenizer(str(folder / "vocab.txt"))
    expected = expected_vectors(tokenizer, model.bert)
    np.testing.assert_allclose(vectors_of(folder), expected, atol=1e-6)
    assert not [each for each in recwarn if "W600" in str(each.message)]


@pytest.mark.parametrize("sharded", [False, True])
def test_open_encoder_does_not_run_the_code_of_a_pickle(masked_bert, tmp_path, sharded):
    folder, model = masked_bert
    ran = tmp_path / "ran"

    class Hostile:
        def __reduce__(self) -> Any:
            return Path.touch, (ran,)

    hostile = {**model.state_dict(), "code": Hostile()}
    if sharded:
        save_shards(folder, model.state_dict())
        torch.save(hostile, folder / "pytorch_model-00002-of-00002.bin")
    else:
        torch.save(hostile, folder / "pytorch_model.bin")
    with pytest.raises(SapbertError, match=r"E203.*\.bin"):
        vectors_of(folder)
    assert not ran.exists()


def test_open_encoder_of_a_pickle_that_does_not_fit_is_an_error(masked_bert):
    folder, model = masked_bert
    path, weights = folder / "pytorch_model.bin", dict(model.state_dict())
    torch.save(weights, path)
    whole = path.read_bytes()
    for data in (whole[: len(whole) // 2], b"version https://git-lfs.github.com"):
        path.write_bytes(data)
        with pytest.raises(SapbertError, match="E203"):
            vectors_of(folder)
    key = "bert.encoder.layer.0.output.dense.weight"
    missing = {name: value for name, value in weights.items() if name != key}
    cut = {**weights, key: weights[key][:, :-1].clone()}
    for other in ({"weights": "a text"}, missing, cut):
        torch.save(other, path)
        with pytest.raises(SapbertError, match="E203"):
            vectors_of(folder)


def make_xlm_roberta(folder: Path) -> tuple[Any, XLMRobertaModel]:
    """Write a folder like XLM-R's, and return its tokenizer and model.

    The file of pieces is that of XLM-R, and there is no tokenizer.json.
    """
    import sentencepiece
    from transformers import XLMRobertaTokenizer

    folder.mkdir()
    text = [" ".join(NAMES), *NAMES, "höher schneller weiter"] * 20
    path = folder.with_name("text.txt")
    path.write_text("\n".join(text), "utf8")
    sentencepiece.SentencePieceTrainer.train(
        input=str(path),
        model_prefix=str(folder / "sentencepiece.bpe"),
        vocab_size=30,
        minloglevel=2,
    )
    (folder / "sentencepiece.bpe.vocab").unlink()
    tokenizer = XLMRobertaTokenizer.from_pretrained(folder)
    torch.manual_seed(0)
    sizes = {"vocab_size": len(tokenizer), "pad_token_id": 1, **SIZES}
    model = XLMRobertaModel(XLMRobertaConfig(**sizes), add_pooling_layer=False).eval()
    write_json(folder / "config.json", {"model_type": "xlm-roberta", **sizes})
    weights = {f"roberta.{key}": value for key, value in model.state_dict().items()}
    torch.save(weights, folder / "pytorch_model.bin")
    return tokenizer, model


def make_modules(folder: Path, inner: str, pooling: dict[str, Any]) -> None:
    """Write the files of sentence-transformers; `inner` is the folder of weights."""
    name = "sentence_transformers.models"
    modules = [("", inner, "Transformer"), ("1", "1_Pooling", "Pooling")]
    modules.append(("2", "2_Normalize", "Normalize"))
    write_json(
        folder / "modules.json",
        [
            {"idx": i, "name": str(i), "path": path, "type": f"{name}.{kind}"}
            for i, (_, path, kind) in enumerate(modules)
        ],
    )
    (folder / "1_Pooling").mkdir(exist_ok=True)
    write_json(folder / "1_Pooling" / "config.json", pooling)
    write_json(
        folder / inner / "sentence_bert_config.json",
        {"max_seq_length": 128, "do_lower_case": False},
    )


def flags(pooling: str) -> dict[str, Any]:
    names = ("cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens")
    modes = {f"pooling_mode_{name}": name.startswith(pooling + "_t") for name in names}
    return {"word_embedding_dimension": 32, **modes}


@pytest.mark.parametrize(("inner", "pooling"), [("", "cls"), ("0_Transformer", "mean")])
def test_open_encoder_of_sentence_transformers_uses_their_pooling(
    masked_bert, tmp_path, inner, pooling
):
    folder, model = masked_bert
    torch.save(model.bert.state_dict(), folder / "pytorch_model.bin")
    if inner:
        outer = tmp_path / "outer"
        outer.mkdir()
        folder = folder.rename(outer / inner).parent
    make_modules(folder, inner, flags(pooling))
    assert read_settings(folder) == EncoderSettings(pooling, 25, True)
    tokenizer = BertTokenizer(str(folder / inner / "vocab.txt"))
    expected = expected_vectors(tokenizer, model.bert, pooling=pooling)
    np.testing.assert_allclose(vectors_of(folder), expected, atol=1e-6)


def test_open_encoder_of_another_pooling_or_module_is_an_error(masked_bert):
    folder, model = masked_bert
    torch.save(model.state_dict(), folder / "pytorch_model.bin")
    for given in (flags("max"), {"pooling_mode": ["cls", "mean"]}):
        make_modules(folder, "", given)
        with pytest.raises(SapbertError, match=r"E203.*1_Pooling"):
            read_settings(folder)
    make_modules(folder, "", {"pooling_mode": ["cls"]})
    assert read_settings(folder).pooling == "cls"
    whole = [{"path": "", "type": "a.Transformer"}]
    dense = [*whole, {"path": "2_D", "type": "a.Dense"}]
    for modules in ([{"path": "..", "type": "a.Transformer"}], dense):
        write_json(folder / "modules.json", modules)
        with pytest.raises(SapbertError, match=r"E203.*modules\.json"):
            vectors_of(folder)


def test_build_kb_of_a_published_folder_has_its_vectors(tmp_path):
    inner = tmp_path / "base" / "0_Transformer"
    inner.parent.mkdir()
    save_shards(inner, make_masked_bert(inner).state_dict())
    make_modules(inner.parent, inner.name, flags("mean"))
    write_concepts(tmp_path / "concepts.jsonl", [Concept("C1", NAMES)])
    base = str(tmp_path / "base")
    build_kb(tmp_path / "concepts.jsonl", tmp_path / "kb", base, engine="torch")
    vectors = load_kb(str(tmp_path / "kb")).embed(NAMES).vectors
    np.testing.assert_allclose(vectors, vectors_of(tmp_path / "base"), atol=1e-6)
    assert not [*(tmp_path / "kb").rglob("*.bin")]  # pickled weights


def test_xlm_roberta_may_tell_cases_apart(tmp_path):
    tokenizer, model = make_xlm_roberta(tmp_path / "base")
    write_concepts(tmp_path / "concepts.jsonl", [Concept("C1", ["Höher", *NAMES])])
    cased = EncoderSettings("mean", lowercase=False)
    write_settings(tmp_path / "base", cased)
    base = str(tmp_path / "base")
    build_kb(tmp_path / "concepts.jsonl", tmp_path / "kb", base, engine="torch")
    kb, names = load_kb(tmp_path / "kb"), ["Höher", "höher", "acute pain"]
    vectors = kb.embed(names).vectors
    assert not np.allclose(vectors[0], vectors[1], atol=1e-3)
    # Only that it is a name makes "HÖHER" be "Höher".
    assert kb.link(["HÖHER"])[0].candidates[0]["score"] == 1
    expected = expected_vectors(tokenizer, model, names, "mean")
    np.testing.assert_allclose(vectors, expected, atol=1e-6)
    # and as training runs it, which hands vectors of pieces to the encoder
    trained = embed_texts(model, tokenizer, names, pooling="mean", max_length=25)
    np.testing.assert_allclose(trained.numpy(), vectors, atol=1e-5)


def test_load_encoder_without_the_library_of_its_tokenizer_is_an_error(
    tmp_path, monkeypatch
):
    make_xlm_roberta(tmp_path / "xlm-roberta")
    monkeypatch.setitem(sys.modules, "sentencepiece", None)
    with pytest.raises(SapbertError, match="E521.*pip install sentencepiece protobuf"):
        load_encoder(str(tmp_path / "xlm-roberta"))


def test_read_settings_of_a_mean_token_sapbert_is_an_error_not_cls(tmp_path):
    """The released one averages padding too; its files do not say so."""
    folder = tmp_path / "SapBERT-from-PubMedBERT-fulltext-mean-token"
    make_masked_bert(folder)
    for path in (folder, folder / "snapshots" / "0a1b"):
        path.mkdir(parents=True, exist_ok=True)
        with pytest.raises(SapbertError, match="E203.*mean-token.*padding"):
            read_settings(path)
    settings = EncoderSettings(pooling="mean")
    write_settings(folder, settings)
    assert read_settings(folder) == settings
