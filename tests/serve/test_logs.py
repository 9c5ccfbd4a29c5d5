"""The log has events, and no text of exceptions and warnings."""

import io
import json
import logging
import warnings
from typing import Any

import pytest

from spacy_sapbert.serve.logs import EventLog, describe_exception, redirect_messages

SECRET = "Patientname"


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Reads the events of a log to which all messages go."""
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    for name in ("uvicorn", "uvicorn.error", "asyncio"):
        monkeypatch.setattr(logging.getLogger(name), "handlers", [])
        monkeypatch.setattr(logging.getLogger(name), "propagate", False)
    stream = io.StringIO()
    redirect_messages(EventLog(stream))
    return lambda: [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_warning_is_logged_without_its_text(lines: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning(f"about {SECRET}", UserWarning, "x.py", 1)
        warnings.showwarning(f"[W554] {SECRET}", UserWarning, "x.py", 1)
    found = [(one["event"], one["category"], one["code"]) for one in lines()]
    expected = ("warning", "UserWarning")
    assert found == [(*expected, None), (*expected, "W554")]
    assert SECRET not in str(lines())


def test_an_exception_of_the_server_is_logged_by_class_and_place(lines: Any) -> None:
    try:
        raise KeyError(SECRET)
    except KeyError:
        logging.getLogger("uvicorn.error").exception("Exception in %s", SECRET)
    (event,) = lines()
    assert event["exception"] == "KeyError"
    assert "test_logs.py" in event["place"]
    assert SECRET not in str(event)


def test_a_log_that_cannot_be_written_stops_nothing() -> None:
    stream = io.StringIO()
    stream.close()
    EventLog(stream).write("event")


def test_an_exception_that_was_not_raised_has_no_place() -> None:
    assert describe_exception(ValueError(SECRET)) == {
        "exception": "ValueError",
        "place": "",
    }
