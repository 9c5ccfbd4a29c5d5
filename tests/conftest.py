"""Fixtures that several test files share: a tiny real encoder and what it makes."""

import gc
import multiprocessing
import os
import shutil
import signal
import string
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

# Two cores, two workers of pytest, small matrices, and processes that tests start: more
# threads wait for each other. It counts when torch is imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# as our commands do: transformers would send measurements, and wait at the end
os.environ.setdefault("OTEL_SDK_DISABLED", "true")
# A shell lets what it starts in the background ignore it, and so would all processes
# that tests start. A program resets what is handled, and not what is ignored.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
gc.disable()  # until all tests are collected, which makes no garbage

import hypothesis  # noqa: E402
import pytest  # noqa: E402
from filelock import FileLock  # noqa: E402

from spacy_sapbert.vocabularies.concepts import (  # noqa: E402
    Concept,
    write_concepts,
)
from tests.faults import limit_files  # noqa: E402

# A deadline would measure how busy the machine is. Before a release, properties are
# tried on more examples: `pytest --hypothesis-profile thorough`.
hypothesis.settings.register_profile("few", deadline=None, max_examples=30)
hypothesis.settings.register_profile("thorough", deadline=None, max_examples=200)
hypothesis.settings.load_profile("few")

MakeBert = Callable[..., Path]
ROOT = Path(__file__).parents[1]
TINY_WORDS = ["heart", "attack", "fever", "pain", "diabetes", "acute", "the", "of"]


def pytest_addoption(parser: pytest.Parser) -> None:
    help = "disturb the vectors of encoders a little, by a number; tests/disturbance.py"
    parser.addoption("--disturb", type=int, metavar="NUMBER", help=help)


def pytest_configure(config: pytest.Config) -> None:
    if (number := config.getoption("disturb")) is not None:
        from tests.disturbance import disturb_vectors

        disturb_vectors(number)


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of real vocabularies and corpora, for the tests that use it."""
    folder = os.environ.get("SPACY_SAPBERT_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("SPACY_SAPBERT_DATA names no folder with real vocabularies")
    return Path(folder)


@pytest.fixture(scope="session")
def data_file(data_folder) -> Callable[[str], Path]:
    """A file of that folder, by its name in it."""

    def find(name: str) -> Path:
        if not (data_folder / name).exists():
            pytest.skip(f"the folder of SPACY_SAPBERT_DATA has no {name}")
        return data_folder / name

    return find


class NewProcess:
    """Starts processes: the one way in which tests do so.

    A test that uses it gets the marker `process`; see `pytest_collection_modifyitems`.
    """

    PIPE, DEVNULL, STDOUT = subprocess.PIPE, subprocess.DEVNULL, subprocess.STDOUT
    TimeoutExpired = subprocess.TimeoutExpired
    START_METHODS = multiprocessing.get_all_start_methods()
    context = staticmethod(multiprocessing.get_context)

    def __init__(self) -> None:
        self.started: list[subprocess.Popen[Any]] = []

    def run(
        self,
        command: Iterable[object],
        *,
        check: bool = False,
        largest_file: int | None = None,
        **options: Any,
    ) -> subprocess.CompletedProcess[Any]:
        """Run a command to its end, and capture its text; options as subprocess.run.

        Files cannot get larger than `largest_file` bytes, as if the disk were full.
        """
        if largest_file is not None:
            pytest.importorskip("resource", reason="this system has no such limits")
            options["preexec_fn"] = partial(limit_files, largest_file)
            options["env"] = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
        if not options.keys() & {"stdout", "stderr"}:
            options["capture_output"] = True
        options = {"text": True, "timeout": 300, **options}
        done = subprocess.run([*map(str, command)], check=False, **options)
        assert not (check and done.returncode), done.stderr
        return done

    def call(self, function: Callable[..., object], *arguments: object) -> None:
        """Call a function of a test file in a new interpreter, where it may fork."""
        process = self.context("spawn").Process(target=function, args=arguments)
        process.start()
        process.join()
        assert process.exitcode == 0

    def python(
        self, code: str | Path, *arguments: object, **options: Any
    ) -> subprocess.CompletedProcess[Any]:
        """Run code, or the script at a path, with the interpreter of the tests."""
        words = [code] if isinstance(code, Path) else ["-c", code]
        return self.run([sys.executable, *words, *arguments], **options)

    def start(self, command: Iterable[object], **options: Any) -> subprocess.Popen[Any]:
        """Start a command, which is killed if it still runs at the end."""
        process = subprocess.Popen([*map(str, command)], **options)
        self.started.append(process)
        return process

    def fork(self) -> int:
        return os.fork()

    def kill(self, process: subprocess.Popen[Any]) -> None:
        """Kill a process (-9) that is still running."""
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert process.returncode == -signal.SIGKILL

    def kill_all(self) -> None:
        for process in self.started:
            if process.poll() is None:
                process.kill()
                process.wait()


@pytest.fixture
def new_process() -> Iterator[NewProcess]:
    """Starts processes that end with the test."""
    door = NewProcess()
    yield door
    door.kill_all()


@pytest.fixture(scope="session")
def shared_process() -> Iterator[NewProcess]:
    """Starts processes that several tests use, as a service."""
    door = NewProcess()
    yield door
    door.kill_all()


@pytest.hookimpl(tryfirst=True)  # before `-m` is applied
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests that start processes, if they are not smoke or slow."""
    doors = {"new_process", "shared_process"}
    for item in items:
        marks = {mark.name for mark in item.iter_markers()}
        if doors & {*getattr(item, "fixturenames", ())} and not marks & {
            "smoke",
            "slow",
        }:
            item.add_marker("process")


def pytest_collection_finish() -> None:
    """Make what hundreds of tests do fast: pipelines, and garbage collection."""
    if "spacy" in sys.modules:
        import catalogue
        from spacy.lang.en import English

        # Each pipeline would add 1,347 of them to its tokenizer, in 0.1 s.
        English.Defaults.tokenizer_exceptions = {}
        # Each look at a registry would read all entry points of all packages.
        points = catalogue.AVAILABLE_ENTRY_POINTS
        groups = {group: points.select(group=group) for group in points.groups}
        catalogue.AVAILABLE_ENTRY_POINTS = groups
    gc.freeze()  # modules and tests stay to the end
    gc.set_threshold(20_000, 20, 20)  # seldom: tests leave little garbage
    gc.enable()


@pytest.fixture(scope="session")
def make_bert() -> MakeBert:
    """Saves a BERT of width 32 with random weights, as encoders are always saved."""

    def make(
        folder: Path,
        words: Iterable[str],
        *,
        layers: int = 1,
        lowercase: bool = True,
        positions: int = 64,
    ) -> Path:
        import torch
        from transformers import BertConfig, BertModel, BertTokenizerFast

        from spacy_sapbert.encoder.huggingface import EncoderSettings, save_encoder

        folder.mkdir()
        known = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]
        vocabulary = folder / "vocab.txt"
        vocabulary.write_text("\n".join(known) + "\n", "utf8")
        tokenizer = BertTokenizerFast(str(vocabulary), do_lower_case=lowercase)
        torch.manual_seed(0)
        config = BertConfig(
            vocab_size=len(known),
            hidden_size=32,
            num_hidden_layers=layers,
            num_attention_heads=2,
            intermediate_size=64,
            max_position_embeddings=positions,
        )
        settings = EncoderSettings("mean", lowercase=lowercase)
        settings = replace(settings, max_length=min(settings.max_length, positions))
        save_encoder(folder, tokenizer, BertModel(config), settings)
        return folder

    return make


@pytest.fixture(scope="session")
def tiny_encoder(make_bert, tmp_path_factory) -> Path:
    """A BERT of two layers that spells every word of a few letters and digits."""
    characters = string.ascii_lowercase + string.digits + string.punctuation + "äéñ"
    words = [*TINY_WORDS, *characters, *(f"##{each}" for each in characters)]
    return make_bert(tmp_path_factory.mktemp("tiny") / "encoder", words, layers=2)


@pytest.fixture
def two_gpus(monkeypatch) -> list[str]:
    """Two made-up GPUs, and where models were moved from here on; they stay."""
    import torch

    moved: list[str] = []

    def move(model: Any, device: str) -> Any:
        moved.append(device)
        return model

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.nn.Module, "to", move)
    return moved


@pytest.fixture
def encoded(monkeypatch) -> list[int]:
    """How many names the encoder was given each time, from here on."""
    from spacy_sapbert.encoder.encoder import Encoder

    passes: list[int] = []
    encode = Encoder.encode_passes

    def count(encoder: Encoder, pieces: Any) -> Any:
        passes.append(len(pieces))
        return encode(encoder, pieces)

    monkeypatch.setattr(Encoder, "encode_passes", count)
    return passes


@pytest.fixture(scope="session")
def few_concepts() -> list[Concept]:
    """A vocabulary with a shared name, a retired id and a name of another script."""
    return [
        Concept(
            "C0000001",
            ["Myocardial infarction", "Heart attack", "MI", "Infarction, Myocardial"],
            types=["T047"],
            codes={"ICD10CM": ["I21"]},
            parents=["C0000003"],
            definition="Death of heart muscle for want of blood.",
            retired=["C9999999"],
        ),
        Concept("C0000002", ["Mitral insufficiency", "MI"], types=["T047"]),
        Concept("C0000003", ["Heart disease", "Cardiac disease"], types=["T047"]),
        Concept("C0000004", ["Fever", "FEVER", "Pyrexia", "febrile"], types=["T184"]),
        Concept("C0000005", ["Diabetes mellitus", "diabetes", "DM"], types=["T047"]),
        Concept("C0000006", ["Aspirin", "acetylsalicylic acid", "ASA"], types=["T121"]),
        Concept("C0000007", ["Headache", "head pain", "cephalalgia", "頭痛"]),
        Concept("C0000008", ["Appendectomy", "appendicectomy"], types=["T061"]),
    ]


@pytest.fixture(scope="session")
def concepts_file(few_concepts, tmp_path_factory) -> Path:
    """The same as concepts.jsonl."""
    path = tmp_path_factory.mktemp("vocabulary") / "concepts.jsonl"
    write_concepts(path, few_concepts)
    return path


@pytest.fixture(scope="session")
def sample_kb(concepts_file, tiny_encoder, tmp_path_factory) -> Path:
    """A knowledge base of these concepts and the tiny encoder; not to be changed."""
    from tests.building import build_small_kb

    folder = tmp_path_factory.mktemp("built") / "kb"
    build_small_kb(concepts_file, folder, tiny_encoder, backend="hnsw")
    return folder


@pytest.fixture(scope="session")
def other_encoder_kb(concepts_file, make_bert, tmp_path_factory) -> Path:
    """The same concepts with a different encoder of the same width."""
    from tests.building import build_small_kb

    folder = tmp_path_factory.mktemp("other")
    letters = string.ascii_lowercase
    encoder = make_bert(folder / "encoder", [*letters, *(f"##{x}" for x in letters)])
    build_small_kb(concepts_file, folder / "kb", encoder, backend="exact")
    return folder / "kb"


@pytest.fixture(scope="session")
def exported_kb(sample_kb, tmp_path_factory) -> Path:
    """The same with the encoder exported for ONNX Runtime; not to be changed.

    Processes that use it start twice as fast: they import no transformers.
    """
    from spacy_sapbert.kb.adjust import export_kb

    folder = tmp_path_factory.mktemp("exported") / "kb"
    shutil.copytree(sample_kb, folder)
    assert export_kb(folder) > 0.9999
    return folder


@pytest.fixture(scope="session")
def make_kb(tiny_encoder) -> Callable[..., Path]:
    """Builds a knowledge base of concepts and the tiny encoder in a folder.

    `learned` is an order of a knowledge base that is too small to learn one, and
    `chance` the probability, by default that a link is the more likely right the more
    letters are alike: the names of these knowledge bases are none that a model knows.
    """
    from tests.building import build_small_kb, make_chance

    def make(folder: Path, concepts: Iterable[Concept], **options: Any) -> Path:
        order = options.pop("learned", None)
        chance = options.pop("chance", None) or make_chance()
        with pytest.MonkeyPatch.context() as patch:
            target = "spacy_sapbert.kb.building.build."
            patch.setattr(f"{target}load_chance", lambda model: chance)
            if order is not None:
                patch.setattr(f"{target}learn_order", lambda kb, **_: order)
            return build(folder, concepts, options)

    def build(folder: Path, concepts: Iterable[Concept], options: Any) -> Path:
        write_concepts(folder / "concepts.jsonl", concepts)
        if options.setdefault("backend", "hnsw") == "faiss":
            pytest.importorskip("faiss")
        written, kb = folder / "concepts.jsonl", folder / "kb"
        build_small_kb(written, kb, tiny_encoder, **options)
        return kb

    return make


@pytest.fixture
def own_kb(sample_kb, tmp_path) -> Path:
    """A copy of the knowledge base that a test may damage."""
    return Path(shutil.copytree(sample_kb, tmp_path / "own" / "kb"))


@pytest.fixture
def own_exported_kb(exported_kb, tmp_path) -> Path:
    """A copy of it that a test may change."""
    return Path(shutil.copytree(exported_kb, tmp_path / "own" / "kb"))


@pytest.fixture
def disk(tmp_path, new_process) -> Iterator[Path]:
    """A disk of its own, which can be full."""
    if not shutil.which("mount"):
        pytest.skip("this system cannot mount a disk")
    folder = tmp_path / "disk"
    folder.mkdir()
    options = ("-t", "tmpfs", "-o", "size=8m", "tmpfs")
    if new_process.run(["mount", *options, folder]).returncode:
        pytest.skip("this user cannot mount a disk")
    yield folder
    new_process.run(["umount", "-l", folder], check=True)


@pytest.fixture(scope="session")
def letters_order() -> Any:
    """An order of mentions that are no names: by their letters, then by cosine."""
    from spacy_sapbert.kb.folder.records import NamesOrder
    from spacy_sapbert.linking.ranker import Ranker, Weights

    letters = Weights(
        mean={"characters": 0.5},
        scale={"characters": 0.25},
        weight={"characters": 9.0},
        temperature=1.0,
    )
    return NamesOrder(
        ranker=Ranker(known=letters, unknown=letters),
        examples=0,
        seed=1,
        gains=[],
        nils=[],
        thresholds=[],
    )


@pytest.fixture(scope="module")
def few_trees() -> Iterator[None]:
    """A tenth of the trees, which take most of the time of a teaching."""
    from spacy_sapbert.kb.learned_order import boost

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(boost, "TREES", boost.TREES // 10)
        yield


@pytest.fixture(scope="module")
def few_mentions() -> Iterator[None]:
    """A part of the mentions of which an order is learned: most of the time of a build.

    A knowledge base that tests share is made before, with all of them.
    """
    from spacy_sapbert.kb.learned_order import names

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(names, "MOST_NAMES", 200)
        patch.setattr(names, "MOST_OTHERS", 50)
        yield


@pytest.fixture(scope="session")
def cold_kb(make_kb, letters_order, tmp_path_factory) -> Path:
    """A knowledge base in which four concepts are called cold, with 3-grams."""
    concepts = [
        Concept("C1", ["Cold temperature", "cold"], types=["T070"], sources={"B": [1]}),
        Concept("C2", ["Common cold", "cold"], types=["T047"], sources={"A": [1]}),
        Concept("C3", ["Chronic lung disease", "COLD"], types=["T047"], parents=["C9"]),
        Concept("C4", ["Asthma"], types=["T047"], parents=["C9"]),
        Concept("C5", ["Snow"], types=["T070"], parents=["C1"]),
        Concept("C6", ["cold", "Cold sensation"], types=["T184"], sources={"C": [0]}),
        Concept("C9", ["Lung disease"], types=["T047"], retired=["C0"]),
    ]
    return make_kb(tmp_path_factory.mktemp("cold"), concepts, learned=letters_order)


@pytest.fixture(scope="session")
def make_once(tmp_path_factory) -> Callable[..., Path]:
    """Makes a folder that all workers of pytest share; not to be changed."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base

    def make(name: str, write: Callable[[Path], object]) -> Path:
        with FileLock(shared / f"{name}.lock"):
            if not (shared / name).exists():
                part = shared / f"{name}.part"
                part.mkdir()
                write(part)
                part.rename(shared / name)
        return shared / name

    return make


@pytest.fixture(scope="session")
def thousand_names_kb(make_kb, make_once) -> Path:
    """A knowledge base of `tests/thousand_names.py`; not to be changed."""
    from tests.thousand_names import make_concepts

    def build(folder: Path) -> None:
        make_kb(folder, make_concepts(), backend="exact")

    return make_once("thousand", build) / "kb"


@pytest.fixture(scope="session")
def demo_folder(make_kb, make_once, tmp_path_factory) -> Path:
    """A folder with models/sample/kb, as the demo makes it, but for the encoder.

    Its order is learned of fewer mentions, which takes a few seconds.
    """
    from spacy_sapbert.vocabularies.reader_table import read_vocabulary

    def build(folder: Path) -> None:
        concepts = read_vocabulary(ROOT / "assets" / "sample", languages=("ENG", "SPA"))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("spacy_sapbert.kb.learned_order.names.MOST_NAMES", 500)
            patch.setattr("spacy_sapbert.kb.learned_order.names.MOST_OTHERS", 100)
            make_kb(folder, concepts, backend="exact", engine="auto")

    folder = tmp_path_factory.mktemp("demo")
    kb = folder / "models" / "sample" / "kb"
    shutil.copytree(make_once("sample", build) / "kb", kb)
    return folder


@pytest.fixture(scope="session")
def annotated_file(tmp_path_factory) -> Path:
    """Ten documents with names of these concepts, other texts, and true NILs."""
    path = tmp_path_factory.mktemp("annotated") / "gold.tsv"
    rows = [
        ("heart attack", "C0000001"),
        ("fever", "C0000004"),
        ("diabetes", "C0000005"),
        ("aspirin", "C0000006"),
        ("xyz of the q", "C0000008"),
        ("vwkj 77", "C0000008"),
        ("qqq, not known", "-1"),
        ("---", "C0000003"),
    ]
    lines = [
        f"{document}\t{mention}\t{ids}"
        for document in range(10)
        for mention, ids in rows
    ]
    path.write_text("\n".join(["doc\tmention\tids", *lines]) + "\n", "utf8")
    return path
