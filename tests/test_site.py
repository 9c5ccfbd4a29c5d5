"""The site: it builds without a warning, and loads nothing from elsewhere."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

import spacy_sapbert

ROOT = Path(__file__).parents[1]
# attributes by which a page makes a browser load something
LOADING = {
    "audio": "src",
    "embed": "src",
    "iframe": "src",
    "img": "src",
    "link": "href",
    "object": "data",
    "script": "src",
    "source": "src",
    "video": "src",
}


class Resources(HTMLParser):
    """Collects what a page loads."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if value := dict(attrs).get(LOADING.get(tag, "")):
            self.found.append(value)


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    config = pytest.importorskip("mkdocs.config")
    build = pytest.importorskip("mkdocs.commands.build")
    pytest.importorskip("material", reason="the theme, of the extra docs")
    folder = tmp_path_factory.mktemp("site")
    settings = config.load_config(
        str(ROOT / "mkdocs.yml"), strict=True, site_dir=str(folder)
    )
    settings.plugins.on_startup(command="build", dirty=False)
    build.build(settings)  # a warning ends it
    return folder


def test_site_loads_nothing_from_elsewhere(site):
    pages = sorted(site.rglob("*.html"))
    assert {"index.html", "python.html", "papers.html"} <= {page.name for page in pages}
    for page in pages:
        resources = Resources()
        resources.feed(page.read_text("utf8"))
        assert resources.found
        for address in resources.found:
            assert not re.match(r"(\w+:)?//", address), (page.name, address)
    for sheet in site.rglob("*.css"):
        assert not re.search(
            r"(url\(|@import)\s*[\"']?(\w+:)?//", sheet.read_text("utf8")
        )


def test_site_has_the_docstrings_of_all_public_names(site):
    page = (site / "python.html").read_text("utf8")
    for name in spacy_sapbert.PUBLIC:
        assert f'id="spacy_sapbert.{name}"' in page, name


def test_page_of_the_python_interface_lists_all_public_names():
    page = (ROOT / "docs" / "python.md").read_text("utf8")
    listed = re.findall(r"^::: spacy_sapbert\.(\w+)$", page, re.MULTILINE)
    assert sorted(listed) == sorted(spacy_sapbert.PUBLIC)
