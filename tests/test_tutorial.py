"""docs/tutorial.ipynb has the outputs of a run; `.ci/run` runs it after the demo."""

import json
from pathlib import Path

ROOT = Path(__file__).parents[1]
TUTORIAL = ROOT / "docs" / "tutorial.ipynb"


def test_tutorial_was_run_from_top_to_bottom_without_an_error():
    notebook = json.loads(TUTORIAL.read_text("utf8"))
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in cells] == [*range(1, len(cells) + 1)]
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert {output["output_type"] for output in outputs} <= {
        "stream",
        "display_data",
        "execute_result",
    }
    assert TUTORIAL.stat().st_size < 300_000
