"""The site: it builds without a warning, and loads nothing from elsewhere."""

import re
import sys
from pathlib import Path

import pytest

import spacy_sapbert

ROOT = Path(__file__).parents[1]
# what makes a browser load something
LOADED = re.compile(
    r"<(?:(?:audio|embed|iframe|img|script|source|video)\b[^>]*?\ssrc|"
    r"link\b(?![^>]*canonical)[^>]*?\shref|object\b[^>]*?\sdata)\s*=\s*[\"']?([^\"'\s>]+)"
)


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    config = pytest.importorskip("mkdocs.config")
    build = pytest.importorskip("mkdocs.commands.build")
    pytest.importorskip("material", reason="the theme, of the extra docs")
    folder = tmp_path_factory.mktemp("site")
    limit = sys.getrecursionlimit()
    settings = config.load_config(
        str(ROOT / "mkdocs.yml"), strict=True, site_dir=str(folder)
    )
    settings.plugins.on_startup(command="build", dirty=False)
    build.build(settings)  # a warning ends it
    sys.setrecursionlimit(limit)  # which jedi raises, of a plugin
    return folder


def test_site_loads_nothing_from_elsewhere(site):
    pages = sorted(site.rglob("*.html"))
    assert {"index.html", "python.html", "linker.html"} <= {page.name for page in pages}
    for page in pages:
        loaded = LOADED.findall(page.read_text("utf8"))
        assert loaded
        for address in loaded:
            assert not re.match(r"(\w+:)?//", address), (page.name, address)
    for sheet in site.rglob("*.css"):
        assert not re.search(
            r"(url\(|@import)\s*[\"']?(\w+:)?//", sheet.read_text("utf8")
        )


def test_site_names_the_repository_without_asking_github_about_it(site):
    page = (site / "index.html").read_text("utf8")
    assert 'class="md-source"' in page
    # by which a script of the theme finds the link, to show stars and versions
    assert 'data-md-component="source"' not in page


def test_site_has_the_docstrings_of_all_public_names(site):
    page = (site / "python.html").read_text("utf8")
    for name in spacy_sapbert.PUBLIC:
        assert f'id="spacy_sapbert.{name}"' in page, name


def test_page_of_the_python_interface_lists_all_public_names():
    page = (ROOT / "docs" / "python.md").read_text("utf8")
    listed = re.findall(r"^::: spacy_sapbert\.(\w+)$", page, re.MULTILINE)
    assert sorted(listed) == sorted(spacy_sapbert.PUBLIC)
