"""CI names each test that it skips, and fails for reasons that are not allowed."""

import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / ".ci" / "skips.py"
SPEC = importlib.util.spec_from_file_location("skips", SCRIPT)
assert SPEC is not None
assert SPEC.loader is not None
skips = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(skips)

DATA = "SPACY_SAPBERT_DATA names no folder with real vocabularies"


@pytest.mark.parametrize(
    ("step", "line", "allowed"),
    [
        ("tests", "SKIPPED [1] tests/test_site.py:32: could not import "
         "'mkdocs.config': No module named 'mkdocs'", True),
        ("site", "SKIPPED [1] tests/test_site.py:32: could not import "
         "'mkdocs.config': No module named 'mkdocs'", False),
        ("tests", "SKIPPED [1] tests/distributed/test_engines.py:80: ray is not "
         "installed", True),
        ("machines", "SKIPPED [1] tests/distributed/test_engines.py:80: ray is not "
         "installed", False),
        ("slow", f"SKIPPED [1] tests/conftest.py:59: {DATA}", True),
        ("tests", f"SKIPPED [1] tests/conftest.py:59: {DATA}, and more", False),
        ("tests", "SKIPPED [1] tests/serve/test_fhir.py:18: `fhir.resources` is "
         "missing", False),
        ("tests", "SKIPPED [1] tests/serve/test_browser.py: no chromium is installed",
         False),
        ("tests", "SUBSKIPPED[program 3 [x]] [1] tests/test_a.py:5: could not import "
         "'gliner': No module named 'gliner'", False),
        ("tests", "SUBSKIPPED[program 3] [1] tests/test_a.py:5: there is a GPU", True),
    ],
)  # fmt: skip
def test_skips_of_a_run_are_named_and_allowed_by_the_list(
    step, line, allowed, tmp_path, capsys
):
    log = tmp_path / f"{step}.log"
    log.write_text(
        f"== short test summary info ==\n{line}\n2 passed, 1 skipped in 9.1s"
    )
    assert skips.main([log]) == (not allowed)
    said = capsys.readouterr().out
    assert f"{step}: 1 tests did not run." in said
    assert line.partition(": ")[2] in said
    assert ("NOT ALLOWED" in said) == (not allowed)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "last line of pytest"),
        ("1 failed, 2 passed, 3 skipped, 4 warnings in 60.22s (0:01:00)", "each of 3"),
        (
            "SKIPPED [2] tests/a.py:3: there is a GPU\n==== 1 skipped in 9.1s ====",
            "-ra",
        ),
    ],
)
def test_a_log_that_does_not_list_all_skips_is_an_error(text, said, tmp_path):
    log = tmp_path / "tests.log"
    log.write_text(text)
    with pytest.raises(SystemExit, match=said):
        skips.main([log])


def test_each_run_of_pytest_in_ci_is_checked():
    run = (SCRIPT.parent / "run").read_text("utf8")
    runs = [line for line in run.splitlines() if "-m pytest" in line]
    assert len(runs) == 6  # five, and the line that takes that of the README
    *others, _ = sorted(runs, key=lambda line: "grep" in line)
    assert all('| tee "$logs/' in line for line in others)
    assert """"${tests##* && }"' 2>&1 | tee "$logs/tests.log"'""" in run
