"""The encoder in ONNX Runtime: like the original, kept whole, without reports."""

import os
import shutil
import sys
import sysconfig
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from spacy_sapbert.encoder.encoder import PASSES_AHEAD, Encoder, EncoderConfig
from spacy_sapbert.encoder.export import (
    balance,
    export_encoder,
    shrink_matrices,
    shrink_matrix,
)
from spacy_sapbert.encoder.huggingface import EncoderSettings, load_encoder
from spacy_sapbert.encoder.onnx_engine import count_threads
from spacy_sapbert.encoder.pooling import POOLINGS
from spacy_sapbert.errors import SapbertError
from spacy_sapbert.io.system import count_cores
from spacy_sapbert.kb.adjust import export_kb
from spacy_sapbert.kb.building.build import build_kb
from spacy_sapbert.kb.folder.versions import list_versions, read_version
from spacy_sapbert.kb.knowledge_base import load_kb

NAMES = [
    "Heart attack",
    "fever",
    "a b c d e f g",
    "",
    "頭痛",
    "x " * 100,
    "Pain",
    "pain",
]
ONNX = EncoderConfig("onnx")


@pytest.fixture(scope="module")
def exported_encoder(tiny_encoder, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("exported") / "encoder"
    shutil.copytree(tiny_encoder, folder)
    (folder / "onnx").mkdir()
    export_encoder(folder, folder / "onnx", EncoderSettings("mean"))
    return folder


@pytest.mark.parametrize("pooling", sorted(POOLINGS))
def test_onnx_vectors_are_near_those_of_torch(exported_encoder, pooling):
    settings = EncoderSettings(pooling, 12, True)
    found = []
    for engine in ("torch", "onnx"):
        config = EncoderConfig(engine, names_per_pass=3)
        encoder = Encoder.open(exported_encoder, config, settings=settings)
        found.append((encoder.embed(NAMES), encoder.tokenize(NAMES)))
    (ours, our_pieces), (theirs, their_pieces) = found
    assert our_pieces == their_pieces
    cosines = np.einsum("nd,nd->n", ours, theirs)
    assert cosines[[bool(ids) for ids in our_pieces[0]]].min() > 0.999
    assert ours.dtype == theirs.dtype == np.float32


def test_onnx_name_alone_has_the_vector_that_it_has_among_others(exported_encoder):
    encoder = Encoder.open(exported_encoder, ONNX)
    names = [" ".join(["fever"] * words) for words in (1, 3, 13, 30)]
    together = encoder.embed(names)
    alone = np.concatenate([encoder.embed([name]) for name in names])
    np.testing.assert_array_equal(alone, together)


def test_shrink_matrix_by_hand():
    matrix = np.zeros((4, 3), np.float32)
    matrix[:3, 0] = 1, -1.28, 0.01  # the largest of a column is 64 steps of .02
    matrix[3, 1] = 5
    codes, factors = shrink_matrix(matrix, 64)
    assert codes[:, 0].tolist() == [50, -64, 0, 0]  # .5 to even
    assert codes[:, 1].tolist() == [0, 0, 0, 64]
    np.testing.assert_allclose(factors[:2], [0.02, 5 / 64])
    assert np.isfinite(1 / factors).all()


def test_balance_by_hand():
    inputs, rows = np.float32([16, 0.25, 0]), np.float32([1, 1, 1])
    factors = balance(inputs, rows)
    np.testing.assert_allclose(factors[:2], [4, 0.5])
    largest = inputs[:2] / factors[:2], rows[:2] * factors[:2]
    np.testing.assert_allclose(*largest)  # both are as large now
    assert factors[2] > 0


def test_products_of_whole_numbers_by_hand():
    """Each row has its own factor, and matrices that meet one input share its codes."""
    matrices = np.float32([[[1, 0.5], [0, -1]], [[2, 0], [0, 4]]])
    graph = onnx.helper.make_graph(
        [
            onnx.helper.make_node("MatMul", ["x", "a"], ["xa"]),
            onnx.helper.make_node("MatMul", ["x", "b"], ["xb"]),
        ],
        "products",
        [onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, 3, 2])],
        [
            onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None)
            for name in ("xa", "xb")
        ],
        [
            onnx.numpy_helper.from_array(matrix, name)
            for matrix, name in zip(matrices, "ab", strict=True)
        ],
    )
    x = np.float32([[[127, 64], [0.01, -0.02], [0, 0]]])
    shrink_matrices(graph, {"x": np.abs(x[0]).max(axis=0)})
    opsets = [onnx.helper.make_opsetid("", 17)]
    model = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8)
    kinds = Counter(node.op_type for node in graph.node)
    assert (kinds["QuantizeLinear"], kinds["MatMulInteger"]) == (1, 2)
    assert "MatMul" not in kinds
    session = onnxruntime.InferenceSession(model.SerializeToString())
    for found, matrix in zip(
        session.run(["xa", "xb"], {"x": x}), matrices, strict=True
    ):
        exact = x @ matrix
        largest = np.abs(exact).max(axis=2, keepdims=True)
        assert (np.abs(found - exact) <= 0.02 * largest).all()
        assert not found[0, 2].any()


def test_onnx_computes_in_float32_alone(exported_encoder):
    with pytest.raises(SapbertError, match='E331.*"torch" for bf16'):
        EncoderConfig("onnx", precision="bf16")
    encoder = Encoder.open(exported_encoder, EncoderConfig(precision="bf16"))
    assert type(encoder.engine).__name__ == "TorchEngine"


def test_export_kb_twice_leaves_a_valid_kb(sample_kb, tmp_path):
    folder = Path(shutil.copytree(sample_kb, tmp_path / "kb"))
    before = read_version(folder).manifest
    assert before.engines == ["torch"]
    export_kb(folder)
    export_kb(folder)  # the same, so there is no new version
    assert list_versions(folder) == ["v1", "v2"]
    after = load_kb(folder).manifest
    assert after.engines == ["torch", "onnx"]
    same = {"files": before.files, "digest": before.digest}
    assert after.model_copy(update=same) == before
    encoder = read_version(folder).encoder
    assert read_version(folder, "v1").encoder != encoder
    (encoder / "onnx" / "encoder.onnx.data").write_bytes(b"half")
    with pytest.raises(SapbertError, match="encoder.onnx.data"):
        load_kb(folder)


def test_build_kb_exports_by_default_and_is_close_to_torch(
    concepts_file, tiny_encoder, sample_kb, tmp_path
):
    build_kb(concepts_file, tmp_path / "kb", str(tiny_encoder))
    built, other = load_kb(tmp_path / "kb"), load_kb(sample_kb)
    rows = np.arange(built.rows)
    pairs = built.vectors(rows), other.vectors(rows)
    assert np.einsum("nd,nd->n", *pairs).min() > 0.999
    assert built.manifest.encoder.fingerprint == other.manifest.encoder.fingerprint
    assert built.manifest.encoder.engine == "onnx"
    assert built.manifest.engines == ["torch", "onnx"]


@pytest.mark.parametrize("text", ["", "half"])
@pytest.mark.parametrize("file", ["encoder.onnx", "encoder.onnx.data"])
def test_onnx_damaged_export_is_an_error(exported_encoder, tmp_path, capfd, file, text):
    folder = Path(shutil.copytree(exported_encoder, tmp_path / "damaged"))
    (folder / "onnx" / file).write_text(text, "utf8")
    with pytest.raises(SapbertError, match="E223|E203"):
        Encoder.open(folder, ONNX)
    assert capfd.readouterr() == ("", "")


def find_weights(model: Any) -> Any:
    """Return the first weights in the other file, and their place by its keys."""
    weights = next(tensor for tensor in model.graph.initializer if tensor.external_data)
    return weights, {entry.key: entry for entry in weights.external_data}


def place_weights(**values: str) -> Callable[[Any], None]:
    """Return a function that says that weights are in another place."""

    def change(model: Any) -> None:
        _, place = find_weights(model)
        for key, value in values.items():
            place[key].value = value

    return change


def enlarge_weights(model: Any) -> None:
    weights, place = find_weights(model)
    weights.dims[0] = 1 << 40
    weights.external_data.remove(place["length"])


def add_sparse_value(model: Any) -> None:
    node = next(node for node in model.graph.node if node.op_type == "Constant")
    (attribute,) = node.attribute
    attribute.Clear()
    attribute.name = "sparse_value"
    attribute.type = onnx.AttributeProto.SPARSE_TENSOR
    sparse = attribute.sparse_tensor
    sparse.dims.append(1)
    sparse.values.name = "v"
    for tensor in (sparse.values, sparse.indices):
        tensor.data_type = onnx.TensorProto.INT64
        tensor.dims.append(1)
        tensor.raw_data = (1 << 40).to_bytes(8, "little")


def use_operation(name: str, domain: str = "") -> Callable[[Any], None]:
    """Return a function that gives a graph an operation that no encoder needs."""

    def change(model: Any) -> None:
        node = next(node for node in model.graph.node if node.op_type == "MatMul")
        node.op_type, node.domain = name, domain

    return change


def use_operation_inside(model: Any) -> None:
    inner = onnx.helper.make_graph(
        [onnx.helper.make_node("GatherND", ["ids", "ids"], ["x"])], "inner", [], []
    )
    node = onnx.helper.make_node("If", ["mask"], ["y"], then_branch=inner)
    model.graph.node.append(node)


def give_more_zeros(model: Any) -> None:
    """Let a product have more bytes that stand for 0 than columns."""
    zeros = onnx.numpy_helper.from_array(np.zeros(1 << 20, np.uint8), "zeros")
    model.graph.initializer.append(zeros)
    node = next(node for node in model.graph.node if node.op_type == "MatMulInteger")
    node.input[2] = "zeros"


def give_more_factors(model: Any) -> None:
    factors = onnx.numpy_helper.from_array(np.ones(1 << 20, np.float32), "more")
    model.graph.initializer.append(factors)
    node = next(node for node in model.graph.node if node.op_type == "QuantizeLinear")
    node.input[1] = "more"


def define_operation(model: Any) -> None:
    model.functions.add().name = "MatMul"


@pytest.mark.parametrize(
    "change",
    [
        place_weights(location="../../outside"),
        place_weights(location="/etc/hosts", offset="0"),
        # ONNX Runtime uses it for weights in memory; their offset is their address.
        place_weights(location="*/_ORT_MEM_ADDR_/*", offset="4096"),
        place_weights(offset="99999999999"),
        place_weights(offset="-8"),
        place_weights(offset=str((1 << 63) - 8)),
        enlarge_weights,
        add_sparse_value,
        # Each of the three would read outside of its memory.
        use_operation("GatherND"),
        use_operation("Inverse", "com.microsoft"),
        use_operation("Pad", "com.microsoft"),
        give_more_zeros,
        give_more_factors,
        use_operation_inside,
        define_operation,
    ],
)
def test_onnx_crafted_graph_is_an_error(exported_encoder, tmp_path, change):
    folder = Path(shutil.copytree(exported_encoder, tmp_path / "crafted"))
    path = folder / "onnx" / "encoder.onnx"
    shutil.copy(f"{path}.data", tmp_path / "outside")
    model = onnx.load(path, load_external_data=False)
    change(model)
    path.write_bytes(model.SerializeToString())
    with pytest.raises(SapbertError, match="E223"):
        Encoder.open(folder, ONNX)


@pytest.mark.skipif(os.name != "posix", reason="links need a right on this system")
def test_onnx_weights_may_be_linked_to_files_of_a_hub_and_no_others(
    exported_encoder, tmp_path
):
    folder = Path(shutil.copytree(exported_encoder, tmp_path / "kb" / "encoder"))
    blobs = tmp_path / "blobs"
    blobs.mkdir()
    for path in (folder / "onnx").iterdir():
        path.rename(blobs / path.name)
        path.symlink_to(blobs / path.name)
    assert Encoder.open(folder, ONNX).embed(["fever"]).any()
    weights = folder / "onnx" / "encoder.onnx.data"
    weights.unlink()
    weights.symlink_to((blobs / weights.name).rename(tmp_path / "outside"))
    with pytest.raises(SapbertError, match="E223"):
        Encoder.open(folder, ONNX)


def open_changed(encoder: Path, folder: Path) -> None:
    """Change bytes of a graph, and open it: an error, or vectors."""
    shutil.copytree(encoder, folder)
    path, random = folder / "onnx" / "encoder.onnx", np.random.default_rng(0)
    graph, opened = path.read_bytes(), 0
    for _ in range(200):
        changed = np.frombuffer(graph, np.uint8).copy()
        places = random.integers(0, len(changed), random.integers(1, 5))
        changed[places] = random.integers(0, 256, len(places))
        path.write_bytes(changed.tobytes())
        with suppress(SapbertError):
            assert Encoder.open(folder, ONNX).embed(NAMES).shape == (len(NAMES), 32)
            opened += 1
    assert 0 < opened < 200


def test_onnx_graph_with_changed_bytes_is_an_error_or_has_vectors(
    exported_encoder, tmp_path, new_process
):
    new_process.call(open_changed, exported_encoder, tmp_path / "changed")


@pytest.mark.skipif(os.name != "posix", reason="reports of Windows leave no file")
def test_onnx_runtime_reports_nothing(exported_encoder, tmp_path, new_process):
    """Without a setting, it writes an id of the device into the home folder."""
    code = f"""
from pathlib import Path
from spacy_sapbert.encoder.encoder import Encoder, EncoderConfig
Encoder.open(Path({str(exported_encoder)!r}), EncoderConfig("onnx")).embed(["fever"])
"""
    names = ("ORT_DISABLE_TELEMETRY", "XDG_CACHE_HOME")
    environment = {key: value for key, value in os.environ.items() if key not in names}
    new_process.python(code, env={**environment, "HOME": str(tmp_path)}, check=True)
    assert not [*tmp_path.iterdir()]


def test_onnx_threads_are_those_of_torch_or_of_the_environment(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    cores = count_cores()
    for value, threads in (("3", 3), ("", cores), ("many", cores), ("0", cores)):
        monkeypatch.setenv("OMP_NUM_THREADS", value)
        assert count_threads() == threads
    monkeypatch.setattr("spacy_sapbert.io.forks.forked", True)
    assert count_threads() == 1


def test_onnx_vectors_do_not_depend_on_threads(exported_encoder, monkeypatch):
    encoder = Encoder.open(exported_encoder, EncoderConfig("onnx", names_per_pass=3))
    names = [" ".join(["fever"] * (number % 12 + 1)) for number in range(60)]
    monkeypatch.setitem(sys.modules, "torch", None)
    token_ids, _ = encoder.tokenize(names)
    vectors, parts = [], []
    for threads in ("1", "4"):
        monkeypatch.setenv("OMP_NUM_THREADS", threads)
        vectors.append(encoder.encode(token_ids))
        with encoder.encode_passes(token_ids) as passes:
            parts.append([names for names, _ in passes])
    np.testing.assert_array_equal(*vectors)
    assert parts[0] == parts[1]  # what is searched together does not depend on it
    wrong = [[encoder.engine.vocabulary] * length for length in (3, 4, 5)]
    with pytest.raises(SapbertError, match="E203"):
        encoder.encode([tuple(ids) for ids in wrong])


def test_onnx_ends_the_passes_that_nobody_waits_for(exported_encoder, monkeypatch):
    """For example after Ctrl-C, or an error in what is done with the first ones."""
    encoder = Encoder.open(exported_encoder, EncoderConfig("onnx", names_per_pass=1))
    main, states = threading.current_thread(), encoder.engine.states
    begun, left = threading.Event(), threading.Event()
    passes: list[threading.Thread] = []

    def wait(*given: Any) -> Any:
        here = threading.current_thread()
        if here is main:
            begun.wait(60)
        elif here in passes:  # its second one: what the main thread wants is done
            begun.set()
            left.wait(60)
        passes.append(here)
        return states(*given)

    def end(pool: ThreadPoolExecutor, **options: Any) -> None:
        shutdown(pool, wait=False, **options)
        left.set()
        shutdown(pool)

    shutdown = ThreadPoolExecutor.shutdown
    monkeypatch.setattr(ThreadPoolExecutor, "shutdown", end)
    monkeypatch.setattr(encoder.engine, "states", wait)
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    token_ids, _ = encoder.tokenize(["fever", "high fever", "a very high fever"] * 9)
    with encoder.encode_passes(token_ids) as found:
        next(found)
    assert len(passes) <= 3  # two of the other thread, and one of this


def test_onnx_begins_at_once_and_goes_a_little_ahead(exported_encoder, monkeypatch):
    """Threads encode while names are ordered; states that nobody takes use memory."""
    encoder = Encoder.open(exported_encoder, EncoderConfig("onnx", names_per_pass=1))
    states, ahead = encoder.engine.states, threading.Semaphore(0)

    def count(*given: Any) -> Any:
        ahead.release()
        return states(*given)

    monkeypatch.setattr(encoder.engine, "states", count)
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    token_ids, _ = encoder.tokenize(["fever"] * 2 * PASSES_AHEAD)
    with encoder.encode_passes(token_ids) as passes:
        assert all(ahead.acquire(timeout=60) for _ in range(PASSES_AHEAD))
        assert not ahead.acquire(timeout=0.2)
        found = [number for names, _ in passes for number in names]
    assert sorted(found) == [*range(len(token_ids))]


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="this is Linux's")
def test_onnx_leaves_no_thread(exported_encoder, monkeypatch):
    """A process may fork, and a thread would not be in the child."""
    before = len(os.listdir("/proc/self/task"))
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    Encoder.open(exported_encoder, ONNX).embed(NAMES)
    for _ in range(100):  # one that was joined ends a moment later
        if len(os.listdir("/proc/self/task")) <= before:
            break
        time.sleep(0.1)
    assert len(os.listdir("/proc/self/task")) <= before


LIGHT = """
import sys
import numpy as np
import spacy
from spacy.tokens import Span
nlp = spacy.blank("en")
nlp.add_pipe("sapbert_linker", config={
    "kb": sys.argv[1],
    "encoder": {"@architectures": "spacy-sapbert.OnnxEncoder.v1"},
})
nlp.initialize()
kb = nlp.get_pipe("sapbert_linker").kb
np.save(sys.argv[2], kb.embed(["heart attack", "a mild fever", "MI"]).vectors)
doc = nlp.make_doc("fever")
doc.ents = [Span(doc, 0, 1, "X")]
for _, component in nlp.pipeline:
    doc = component(doc)
assert doc.ents[0]._.cui == "C0000004", doc.ents[0]._.cui
heavy = {"torch", "transformers", "spacy_transformers", "sklearn"}
assert not heavy & {*sys.modules}, heavy & {*sys.modules}
"""


@pytest.mark.smoke
@pytest.mark.skipif(os.name != "posix", reason="links need a right on this system")
def test_onnx_links_without_torch_and_transformers(exported_kb, tmp_path, new_process):
    packages = tmp_path / "packages"
    packages.mkdir()
    heavy = ("torch", "transformers", "spacy_transformers", "spacy_alignments")
    heavy += ("spacy_huggingface_pipelines",)  # which imports transformers
    for path in Path(sysconfig.get_paths()["purelib"]).iterdir():
        if path.name.partition("-")[0] not in heavy:
            (packages / path.name).symlink_to(path)
    # Without the folder of installed packages there is only what is linked here.
    root = str(Path(__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": f"{root}:{packages}"}
    path, code = tmp_path / "vectors.npy", tmp_path / "light.py"
    code.write_text(LIGHT, "utf8")
    done = new_process.run(
        [sys.executable, "-S", str(code), str(exported_kb), str(path)], env=environment
    )
    assert done.returncode == 0, done.stderr
    expected = load_kb(exported_kb).embed(["heart attack", "a mild fever", "MI"])
    np.testing.assert_allclose(np.load(path), expected.vectors, atol=1e-5)


def test_auto_runs_an_exported_encoder_in_onnx(exported_kb, sample_kb, monkeypatch):
    def engine(folder: Path) -> str:
        return type(load_kb(folder).encoder.engine).__name__

    assert engine(exported_kb) == "OnnxEngine"
    assert engine(sample_kb) == "TorchEngine"
    monkeypatch.setitem(sys.modules, "onnx", None)
    monkeypatch.setattr("spacy_sapbert.encoder.encoder.find_spec", lambda name: None)
    assert engine(exported_kb) == "TorchEngine"


def test_torch_that_is_missing_is_an_error_that_says_what_to_install(
    sample_kb, tiny_encoder, monkeypatch
):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(SapbertError, match="E521.*pip install torch.*export-onnx"):
        load_kb(sample_kb).link(["fever"])
    with pytest.raises(SapbertError, match="E521.*pip install torch transformers"):
        load_encoder(str(tiny_encoder))


def test_build_continues_the_engine_of_the_names_it_reuses(
    concepts_file, tiny_encoder, sample_kb, tmp_path
):
    kb = tmp_path / "kb"
    manifest = build_kb(concepts_file, kb, str(tiny_encoder), reuse=sample_kb)
    assert manifest.encoder.engine == "torch"


def test_encoder_of_few_positions_is_measured_with_short_names(make_bert, tmp_path):
    folder = make_bert(tmp_path / "encoder", ["fever"], positions=8)
    settings = EncoderSettings("mean", max_length=8)
    assert export_encoder(folder, folder / "onnx", settings) > 0.98


def test_encoder_that_whole_numbers_change_keeps_its_weights(
    tiny_encoder, tmp_path, monkeypatch
):
    folder = Path(shutil.copytree(tiny_encoder, tmp_path / "encoder"))
    settings, sizes = EncoderSettings("mean"), []
    for least in (0.98, 2):
        monkeypatch.setattr("spacy_sapbert.encoder.export.LEAST_ROUNDED", least)
        cosine = export_encoder(folder, folder / "onnx", settings)
        sizes.append((folder / "onnx" / "encoder.onnx.data").stat().st_size)
    assert cosine == pytest.approx(1, abs=1e-6)
    assert 3 < sizes[1] / sizes[0] <= 4
    vectors = [
        Encoder.open(folder, EncoderConfig(engine)).embed(["fever", "Pain"])
        for engine in ("onnx", "torch")
    ]
    np.testing.assert_allclose(*vectors, atol=1e-6)


def test_build_runs_in_torch_what_onnx_cannot_run(
    concepts_file, tiny_encoder, tmp_path, monkeypatch
):
    for name in ("LEAST_ROUNDED", "LEAST_COSINE"):
        monkeypatch.setattr(f"spacy_sapbert.encoder.export.{name}", 2)
    manifest = build_kb(concepts_file, tmp_path / "kb", str(tiny_encoder))
    assert manifest.engines == ["torch"]
    with pytest.raises(SapbertError, match="E223"):
        build_kb(concepts_file, tmp_path / "other", str(tiny_encoder), engine="onnx")
