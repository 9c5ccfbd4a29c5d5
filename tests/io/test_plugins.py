from importlib.metadata import EntryPoint

import pytest

from spacy_sapbert.formats import registry
from spacy_sapbert.formats.registry import FORMATS, Format, list_formats
from spacy_sapbert.io import plugins
from spacy_sapbert.io.plugins import load_plugins

OTHER = Format("of another package")


def test_plugin_that_cannot_be_imported_is_left_out_with_a_warning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    points = [
        EntryPoint("broken", "no_such_package:FORMAT", registry.PLUGINS),
        EntryPoint("other", f"{__name__}:OTHER", registry.PLUGINS),
    ]
    monkeypatch.setattr(plugins, "entry_points", lambda group: points)
    load_plugins.cache_clear()
    try:
        with pytest.warns(UserWarning, match="W024.*'broken'.*no_such_package"):
            formats = list_formats()
    finally:
        load_plugins.cache_clear()
    assert [*formats] == [*FORMATS, "other"]
