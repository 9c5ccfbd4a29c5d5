from collections.abc import Callable

import pytest
from confection import Config

from training.losses.registry import Schedule, registry
from training.losses.schedules import make_constant, make_cosine, make_linear

REGISTERED = [
    (kind, name)
    for kind in ("losses", "miners", "schedules")
    for name in sorted(getattr(registry, kind).get_all())
]


@pytest.mark.parametrize(("kind", "name"), REGISTERED)
def test_registered_function_is_made_from_its_name_alone(kind: str, name: str) -> None:
    config = Config().from_str(f'[section]\n@{kind} = "{name}"')
    assert callable(registry.resolve(config)["section"])


def factors(schedule: Schedule, total: int) -> list[float]:
    return [schedule(step, total) for step in range(total)]


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        (make_constant(), [1, 1, 1]),
        (make_constant(3), [0.25, 0.5, 0.75, 1, 1, 1]),
        (make_linear(), [1, 0.75, 0.5, 0.25]),
        (make_linear(1), [0.5, 1, 0.75, 0.5, 0.25]),
        # half of 1 + cos of 0°, 60° and 120°
        (make_cosine(), [1, 0.75, 0.25]),
        (make_cosine(1), [0.5, 1, 0.75, 0.25]),
    ],
)
def test_schedule_by_hand(schedule: Schedule, expected: list[float]) -> None:
    assert factors(schedule, len(expected)) == pytest.approx(expected)


@pytest.mark.parametrize("factory", [make_linear, make_cosine])
def test_schedule_is_down_to_zero_at_the_end(
    factory: Callable[[int], Schedule],
) -> None:
    for warmup_steps in (0, 2, 10):
        assert factory(warmup_steps)(10, 10) == pytest.approx(
            0 if warmup_steps < 10 else 1
        )


@pytest.mark.parametrize("factory", [make_constant, make_linear, make_cosine])
def test_schedule_of_a_run_shorter_than_its_warm_up_only_rises(
    factory: Callable[[int], Schedule],
) -> None:
    assert factors(factory(7), 3) == [1 / 8, 2 / 8, 3 / 8]
