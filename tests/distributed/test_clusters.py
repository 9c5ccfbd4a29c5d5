"""The recipes for machines without an engine: Slurm and Kubernetes."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest
import srsly

pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")

RECIPES = Path(__file__).parents[2] / "docs" / "many_machines"


def run_bash(new_process: Any, *arguments: object, **variables: str) -> None:
    """Run bash with the Python of this process first in its path."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": os.getcwd(), **variables}
    done = new_process.run(["bash", *map(str, arguments)], env=environment)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(os.name != "posix", reason="the script is for bash")
def test_slurm_task_links_its_part_and_resumes(
    notes_file: Path,
    sample_kb: Path,
    expected_of_recipes: Any,
    tmp_path: Path,
    new_process: Any,
) -> None:
    arguments = [RECIPES / "link_slurm.sh", notes_file.parent, tmp_path / "linked"]
    run_bash(new_process, *arguments, sample_kb, SLURM_ARRAY_TASK_ID="0")
    rows = pq.read_table(tmp_path / "linked").to_pylist()
    names = ("id", "start", "cui", "score", "kb_digest")
    assert [[row[name] for name in names] for row in rows] == [
        [row[name] for name in names] for row in expected_of_recipes
    ]


def test_kubernetes_job_has_an_index_for_each_part(
    tmp_path: Path, new_process: Any
) -> None:
    job = srsly.read_yaml(RECIPES / "link_kubernetes.yaml")
    assert job["spec"]["completionMode"] == "Indexed"
    pod = job["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    (script,) = container["args"]
    assert {m["name"] for m in container["volumeMounts"]} == {
        volume["name"] for volume in pod["volumes"]
    }
    # the command with another program, to see what the shell makes of it
    shown = script.replace("python -m", "echo")
    if os.name == "posix":
        words = new_process.run(
            [*container["command"], shown],
            env={**os.environ, "JOB_COMPLETION_INDEX": "7"},
            check=True,
        ).stdout.split()
        link = ["spacy", "sapbert", "link", "/data/kb"]
        assert words[:5] == [*link, "/data/notes/part-00007.parquet"]
        from typer.main import get_command

        from spacy_sapbert.cli.main import app as cli

        link = get_command(cli).commands["link"]  # type: ignore[attr-defined]
        context = link.make_context("link", words[3:])
        assert context.params["shard_size"] == 1000
