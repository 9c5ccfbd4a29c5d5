"""What spaCy has to import for us, whether or not anybody uses us."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

CODE = """
import sys
from importlib.metadata import entry_points
import spacy
before = {*sys.modules}
for point in entry_points(group="spacy_factories"):
    if point.value.startswith("spacy_sapbert."):
        print(point.name)
        point.load()
new = {name.partition(".")[0] for name in {*sys.modules} - before}
packages = new - before - sys.stdlib_module_names  # spaCy has pydantic itself
print(sorted(packages), "sqlite3" in new)
"""


@pytest.mark.smoke
def test_opening_spacy_imports_only_regex_and_small_modules_of_ours(new_process):
    done = new_process.python(CODE, check=True)
    *names, imported = done.stdout.splitlines()
    # `spacy.blank` imports the factories of all packages that are installed.
    assert {"sapbert_linker", "sapbert_mentions"} <= {*names}
    assert imported == "['regex', 'spacy_sapbert'] False"


def test_import_of_the_package_is_light(new_process):
    code = (
        "import sys, spacy_sapbert; "
        "print({'spacy', 'torch', 'transformers', 'numpy'} & {*sys.modules})"
    )
    done = new_process.python(code, check=True)
    assert done.stdout == "set()\n"


def test_linking_in_onnx_runtime_imports_no_torch(exported_kb, new_process):
    """Nor thinc, which imports it: both take longer than all the rest."""
    code = f"""
import sys
from spacy_sapbert import EncoderConfig, load_kb
for device in (None, "cpu"):
    kb = load_kb({str(exported_kb)!r}, encoder=EncoderConfig(device=device))
    assert kb.link(["hart atack"])[0].candidates
print({{"spacy", "thinc", "torch", "transformers"}} & {{*sys.modules}})
"""
    assert new_process.python(code, check=True).stdout == "set()\n"


@pytest.mark.parametrize("module", ["spacy_sapbert.cli.main", "training.__main__"])
def test_threads_of_commands_do_not_wait_busily(module, new_process):
    """OpenMP reads the policy when torch is imported."""
    code = (
        f"import os, sys, {module}; "
        "print(os.environ['OMP_WAIT_POLICY'], 'torch' in sys.modules)"
    )
    done = new_process.python(code, cwd=ROOT, check=True)
    assert done.stdout == "PASSIVE False\n"


@pytest.mark.parametrize("value", [None, "false"])
def test_commands_send_no_measurements_unless_the_user_says_so(value, new_process):
    """transformers sends those of all libraries to a port of this machine, if it finds
    OpenTelemetry, which Weights & Biases brings."""
    pytest.importorskip("opentelemetry.sdk", reason="opentelemetry is not installed")
    code = (
        "import spacy_sapbert.cli.main\n"
        "from opentelemetry.sdk.metrics import MeterProvider\n"
        "print(type(MeterProvider().get_meter('x')).__name__)"
    )
    env = {k: v for k, v in os.environ.items() if k != "OTEL_SDK_DISABLED"}
    env |= {} if value is None else {"OTEL_SDK_DISABLED": value}
    done = new_process.python(code, env=env, cwd=ROOT, check=True)
    assert (done.stdout.strip() == "NoOpMeter") == (value is None)
