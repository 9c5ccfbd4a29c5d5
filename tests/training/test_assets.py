import hashlib
from pathlib import Path

import pytest
import srsly

from spacy_sapbert.errors import SapbertError
from training.assets import compare_checksums

ROOT = Path(__file__).parents[2]


def test_compare_checksums_checks_what_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.obo").write_bytes(b"fever")
    digest = hashlib.sha256(b"fever").hexdigest()
    sums = tmp_path / "sums"
    sums.write_text(f"# two files\n{digest}  a.obo\n{digest}  absent.obo\n")
    assert compare_checksums(sums) == (1, 1)
    (tmp_path / "a.obo").write_bytes(b"cough")
    with pytest.raises(SapbertError, match=f"E425.*{digest}.*project assets"):
        compare_checksums(sums)
    sums.write_text(f"{digest} a.obo\n")
    with pytest.raises(SapbertError, match=r"E426.*sums:1"):
        compare_checksums(sums)


def test_assets_of_the_project_have_a_release_and_known_checksums() -> None:
    project = srsly.read_yaml(ROOT / "project.yml")
    assets = {asset["dest"]: asset for asset in project["assets"]}
    for asset in assets.values():
        assert asset["url"].startswith("https://")
        assert "," in asset["description"]  # what it is, then release and licence
    lines = (ROOT / "assets" / "checksums.sha256").read_text("utf8").splitlines()
    for line in lines[1:]:
        digest, _, path = line.partition("  ")
        assert len(digest) == 64
        assert path in assets
