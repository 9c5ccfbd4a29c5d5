import sys
from pathlib import Path
from typing import Any

import pytest

from tests.commands import invoke
from training.__main__ import COMMANDS, app

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", COMMANDS)
def test_command_help_has_input_output_and_an_example(name: str) -> None:
    shown = invoke(name, "--help", app=app, code=0)
    text = " ".join(shown.output.split())
    assert " ".join(COMMANDS[name].help.split()) in text
    assert f"python -m training {name} " in text


def test_list_of_commands_imports_neither_torch_nor_spacy(new_process: Any) -> None:
    code = (
        "import sys\n"
        "from typer.testing import CliRunner\n"
        "from training.__main__ import app\n"
        "print(CliRunner().invoke(app, ['--help']).output)\n"
        "sys.exit(1 if {'torch', 'spacy', 'sklearn'} & sys.modules.keys() else 0)\n"
    )
    done = new_process.python(code, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert all(f"  {name} " in done.stdout for name in COMMANDS)


def test_unknown_command_is_an_error() -> None:
    invoke("pears", app=app, code=2)


def test_error_ends_with_its_message_and_exit_code_1(tmp_path: Path) -> None:
    words = ["pairs", str(tmp_path / "none.jsonl"), str(tmp_path / "pairs.tsv")]
    assert "[E001]" in invoke(*words, app=app, code=1).output


def test_command_without_its_packages_names_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "training.corpora.convert", None)
    shown = invoke("convert-corpus", app=app, code=1).output
    assert "[E521] Expected the packages of `convert-corpus`" in shown
    assert "pip install -e ." in shown
