import pytest

from spacy_sapbert.errors import SapbertError
from training.trainer.settings import (
    DEFAULT_CONFIG,
    flatten_config,
    make_settings,
    parse_overrides,
    read_config,
)


def test_read_config_default_has_the_constants_of_the_paper():
    paper = {
        "training.optimizer.learning_rate": 2e-5,
        "training.optimizer.weight_decay": 0.01,
        "training.batch_size": 256,
        "encoder.max_length": 25,
        "training.miner.margin": 0.2,
        "training.loss.scale_pos": 2,
        "training.loss.scale_neg": 50,
    }
    assert paper.items() <= flatten_config(read_config()).items()
    assert make_settings(read_config()).training.schedule(7, 10) == 1


def test_every_config_file_is_valid():
    for path in DEFAULT_CONFIG.parent.glob("*.cfg"):
        assert make_settings(read_config(path)).training.epochs >= 1, path


def test_read_config_takes_a_logger_from_a_file_and_none_from_the_command_line(
    tmp_path,
):
    pytest.importorskip("tensorboard", reason="tensorboard is not installed")
    path = tmp_path / "tracked.cfg"
    tracker = '[training.logger]\n@loggers = "spacy-sapbert.Tracker.v1"\n'
    path.write_text(f"[training]\n\n{tracker}", "utf8")
    config = read_config(path)
    assert config["training"]["logger"]["to"] == "tensorboard"
    config.to_disk(path)
    assert read_config(path) == config
    none = read_config(path, {"training.logger": None})
    assert none == read_config()
    assert make_settings(none).training.logger is None


def test_parse_overrides_reads_values_as_json():
    words = ["--training.seed=3", "--encoder.base", "a b", "--encoder.pooling", "null"]
    expected = {"training.seed": 3, "encoder.base": "a b", "encoder.pooling": None}
    assert parse_overrides(words) == expected
    for wrong in (["--quite"], ["x"], ["--training.seed"]):
        with pytest.raises(SapbertError, match="E331"):
            parse_overrides(wrong)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"training.sed": 1}, "did you mean training.seed"),
        ({"training.seed": "x"}, "E331.*training.seed .*valid integer"),
        ({"training.seed": 2**32}, "E331.*training.seed .*4294967295"),
        ({"training.seed": 1, "training.seed.x": 1}, "--training.seed.x"),
        ({"training.chunks": 0}, "training.chunks as .*'auto', or: .*equal to 1"),
        ({"training.loss.scale": 1}, "unexpected argument: 'scale'"),
        ({"training.miner.distance": "dot"}, "E612.*cosine"),
        ({"training.schedule.warmup_steps": -1}, "warmup_steps of at least 0"),
        ({"encoder.pooling": "max"}, "encoder.pooling .*'cls' or 'mean'"),
        ({"validation.mentions": "dev.tsv"}, "validation.concepts"),
        ({"hierarchy.families": "families.tsv"}, "E423.*hierarchy"),
    ],
)
def test_read_config_with_a_wrong_setting_is_an_error(overrides, message):
    with pytest.raises(SapbertError, match=message):
        read_config(None, overrides)


LEAST = {
    "encoder.max_length": 3,
    "encoder.adapter_reduction": 0,
    "training.optimizer.learning_rate": 0,
    "training.optimizer.weight_decay": 0,
    "training.seed": 0,
    "training.batch_size": 2,
    "training.epochs": 1,
    "training.steps": 0,
    "training.chunks": 1,
    "training.checkpoint_seconds": 0,
    "validation.sample": 0,
    "validation.every": 1,
    "validation.patience": 0,
}


def test_read_config_accepts_the_least_values_and_none_below():
    assert LEAST.items() <= flatten_config(read_config(None, LEAST)).items()
    for key, value in LEAST.items():
        with pytest.raises(SapbertError, match=f"E331.*{key} "):
            read_config(None, {key: value - 1})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("seed = 1\n", "File contains no section headers.* line: 1"),
        ("[z.y]\n", "z -> y Section 'z' is not defined"),
    ],
)
def test_read_config_says_what_is_wrong_with_a_file(text, message, tmp_path):
    (tmp_path / "broken.cfg").write_text(text)
    with pytest.raises(SapbertError, match=f"E612.*: .*{message}"):
        read_config(tmp_path / "broken.cfg")
    with pytest.raises(SapbertError, match="E001"):
        read_config(tmp_path / "none.cfg")
