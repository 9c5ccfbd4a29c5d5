"""The same rows from Ray Data, with a pool of two actors."""

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spacy_sapbert import LinkBatches

# The fixture imports ray, or skips: collecting the tests must not take seconds.
pytestmark = pytest.mark.usefixtures("ray_data")


def run(documents: Any, link: Any, **options: Any) -> list[dict[str, Any]]:
    """Return the rows of two actors, in the order of the documents."""
    import ray

    pool = ray.data.ActorPoolStrategy(size=2)
    linked = documents.map_batches(
        link, batch_format="pyarrow", batch_size=4, compute=pool, **options
    )
    rows = [
        row for table in ray.get(linked.to_arrow_refs()) for row in table.to_pylist()
    ]
    return sorted(rows, key=lambda row: (int(row["id"]), row["start"] or 0))


@pytest.fixture
def options(sample_kb: Path) -> dict[str, Any]:
    return {
        "kb": str(sample_kb),
        "text": "body",
        "id": "note",
        "keep": ["ward"],
        "max_chars": 1000,
    }


def test_ray_recipe_writes_the_rows_of_one_process(
    run_recipe: Callable[..., Any], expected_of_recipes: Any
) -> None:
    assert run_recipe("link_ray.py", 1) == expected_of_recipes


class KilledOnce(LinkBatches):
    """Dies in the middle of a batch, the first time."""

    def __init__(self, marker: str, **options: Any) -> None:
        super().__init__(**options)
        self.marker = marker

    def __call__(self, table: Any) -> Any:
        rows = super().__call__(table)
        if 110 in table.column("note").to_pylist() and not os.path.exists(self.marker):
            open(self.marker, "x").close()
            os.kill(os.getpid(), signal.SIGKILL)
        return rows


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no kill -9 here")
def test_ray_actor_that_is_killed_loses_and_repeats_nothing(
    documents: Any, expected: Any, options: Any, tmp_path: Path
) -> None:
    import ray

    marker = str(tmp_path / "killed")
    data = ray.data.from_arrow(documents).repartition(7)
    rows = run(
        data, KilledOnce, fn_constructor_args=[marker], fn_constructor_kwargs=options
    )
    assert os.path.exists(marker)
    assert rows == expected


def test_ray_kb_that_is_missing_is_one_clear_error(
    documents: Any, options: Any
) -> None:
    import ray

    options = {**options, "kb": "/nowhere/kb"}
    data = ray.data.from_arrow(documents)
    with pytest.raises(ray.exceptions.RayError) as caught:
        run(data, LinkBatches, fn_constructor_kwargs=options)
    assert str(caught.value).count("[E310] Expected") == 1
