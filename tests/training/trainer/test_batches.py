from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from confection import Config

from training.trainer.batches import Lines, count_steps, plan_batches
from training.trainer.settings import TrainingSettings, make_settings

MakeConfig = Callable[..., Config]
MIXED = [Lines(10), Lines(31, 3), Lines(7)]


def make(make_config: MakeConfig, **more: Any) -> TrainingSettings:
    values = {f"training.{key}": value for key, value in more.items()}
    return make_settings(make_config({"training.batch_size": 4, **values}))


@pytest.mark.parametrize("files", [[Lines(10)], MIXED])
def test_plan_batches_has_each_line_once_an_epoch_and_groups_together(
    files: list[Lines], make_config: MakeConfig
) -> None:
    settings = make(make_config, epochs=2)
    everything = list(plan_batches(files, settings, done=0))
    assert [step for step, _, _ in everything] == list(range(len(everything)))
    assert count_steps(files, settings) == len(everything)
    more = make(make_config, epochs=2, steps=len(everything) + 1)
    assert count_steps(files, more) == len(everything)
    half = len(everything) // 2
    first, second = (
        [lines.tolist() for _, _, lines in epoch]
        for epoch in (everything[:half], everything[half:])
    )
    assert first != second
    for epoch in (everything[:half], everything[half:]):
        for file, lines in enumerate(files):
            batches = [batch.tolist() for _, each, batch in epoch if each == file]
            numbers = [number for batch in batches for number in batch]
            # lines that are no whole group are never trained on
            assert sorted(numbers) == list(range(lines.groups * lines.group))
            assert all(0 < len(batch) <= 4 for batch in batches)
            for batch in batches:
                firsts = batch[:: lines.group]
                assert batch == [
                    first + k for first in firsts for k in range(lines.group)
                ]
                assert all(first % lines.group == 0 for first in firsts)


@pytest.mark.parametrize("files", [[Lines(10)], MIXED])
def test_plan_batches_resumes_after_the_steps_done(
    files: list[Lines], make_config: MakeConfig
) -> None:
    def plain(batches: Any) -> list[Any]:
        return [(step, file, batch.tolist()) for step, file, batch in batches]

    settings = make(make_config, epochs=2)
    everything = plain(plan_batches(files, settings, done=0))
    for done in range(len(everything) + 1):
        rest = plain(plan_batches(files, settings, done=done))
        assert rest == everything[done:]
    few = make(make_config, steps=2)
    assert plain(plan_batches(files, few, done=0)) == everything[:2]


def test_plan_batches_mixes_files_in_proportion_by_the_seed(
    make_config: MakeConfig,
) -> None:
    files = [Lines(4000), Lines(2000)]
    settings = make(make_config, epochs=1)
    order = [file for _, file, _ in plan_batches(files, settings, done=0)]
    assert Counter(order) == {0: 1000, 1: 500}
    for first in range(0, 1500, 300):  # a third, and not all at one end
        assert 70 < Counter(order[first : first + 300])[1] < 130
    other = make(make_config, epochs=1, seed=1)
    assert order != [file for _, file, _ in plan_batches(files, other, done=0)]


def test_plan_batches_with_a_group_larger_than_a_batch(make_config: MakeConfig) -> None:
    settings = make(make_config, epochs=1)
    batches = [b.tolist() for _, _, b in plan_batches([Lines(12, 6)], settings, done=0)]
    assert sorted(batches) == [[0, 1, 2, 3, 4, 5], [6, 7, 8, 9, 10, 11]]
