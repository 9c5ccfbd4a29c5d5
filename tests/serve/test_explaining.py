"""/explain finds the mention by offsets, so that any text can be explained."""

from typing import Any

import pytest

from .conftest import LocalClient

CONTEXT = "[[Note]] Myocardial infarction (MI) was excluded; MI [[again]]."
SECOND = CONTEXT.rindex("MI")


def test_a_mention_is_explained_where_it_stands(local: LocalClient) -> None:
    body = {"context": CONTEXT, "start": SECOND, "end": SECOND + 2}
    answer = local.post("/explain", body)
    assert answer.status == 200, answer.body
    found = answer.json()
    assert found["mention"] == "MI"
    same = local.post("/explain", {**body, "mention": "MI"}).json()
    assert same == found


@pytest.mark.parametrize(
    "given",
    [
        {"start": 0},
        {"end": 5},
        {"start": 5, "end": 5},
        {"start": 5, "end": 10_000},
        {"start": 8, "end": 9},  # a blank
        {"start": SECOND, "end": SECOND + 2, "mention": "another"},
        {"start": -1, "end": 2},
    ],
)
def test_offsets_outside_the_text_are_an_error(local: LocalClient, given: Any) -> None:
    context = {"context": CONTEXT} if "end" in given or "start" in given else {}
    if given == {"end": 5}:
        context = {"context": ""}
    answer = local.post("/explain", {**context, **given})
    assert (answer.status, answer.code) == (422, "E457")
    assert "infarction" not in answer.body.decode()
