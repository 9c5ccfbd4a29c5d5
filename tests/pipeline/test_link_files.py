import json
import os
import zipfile
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
import spacy
from spacy.cli.package import package

from spacy_sapbert import LinkJob, link_files
from spacy_sapbert.errors import SapbertError
from spacy_sapbert.kb.packages import package_kb
from spacy_sapbert.pipeline.assembly import assemble_pipeline
from tests.pipelines import NLP

OTHER: dict[str, Any] = {
    "keep": ("ward",),
    "on_error": "skip",
    "options": {"k": 3},
    "shard_size": 7,
    "first_id": 2,
    "no_text": True,
    "batch_size": 5,
    "n_process": 5,
    "force": True,
}


def test_link_files_writes_what_it_counts(sample_kb, tmp_path):
    notes, output = tmp_path / "notes.jsonl", tmp_path / "linked.jsonl"
    lines = [{"id": 1, "text": "fever"}, {"id": 2}, {"id": 3, "text": "heart attack"}]
    notes.write_text("".join(json.dumps(line) + "\n" for line in lines))
    skipped: list[SapbertError] = []
    job = LinkJob((notes,), output, kb=str(sample_kb), on_error="skip")
    result = link_files(job, on_skip=skipped.append)
    written = [json.loads(line) for line in output.read_text().splitlines()]
    assert [line["id"] for line in written] == [1, 2, 3]
    first, failed, last = written
    assert [e["cui"] for e in first["entities"]] == ["C0000004"]
    assert [e["cui"] for e in last["entities"]] == ["C0000001"]
    assert failed == {"id": 2, "text": "", "entities": [], "error": str(skipped[0])}
    counts = {"documents": 2, "entities": 2, "linked": 2, "failed": 1}
    assert result.counts == counts
    assert (result.documents, result.left_out["skipped"], len(skipped)) == (2, 1, 1)


def test_link_job_all_fields_but_those_declared_decide_the_output():
    job = LinkJob((Path("a.txt"),))
    for setting in fields(LinkJob):
        if setting.name not in ("inputs", "pipeline"):
            other = replace(job, **{setting.name: OTHER.get(setting.name, "x")})
            same = other.describe([], NLP) == job.describe([], NLP)
            assert same == (not setting.metadata.get("changes_output", True)), setting


@pytest.mark.parametrize("keep", [("ward", "ward"), ("entities",)])
def test_link_files_keeps_a_field_once_and_none_of_its_own(keep, sample_kb, tmp_path):
    notes = tmp_path / "notes.jsonl"
    notes.write_text('{"id": 1, "text": "fever", "ward": 1}\n')
    job = LinkJob((notes,), tmp_path / "linked.jsonl", kb=str(sample_kb), keep=keep)
    with pytest.raises(SapbertError, match=f"E331.*{keep[0]}"):
        link_files(job)


TEXT = "She had a heart attack, then fever."
LINKS = [("heart attack", "C0000001"), ("fever", "C0000004")]


def links(nlp: spacy.language.Language) -> list[tuple[str, str]]:
    return [(ent.text, ent.kb_id_) for ent in nlp(TEXT).ents]


def test_assemble_pipeline_detects_and_links(sample_kb, tmp_path):
    output = tmp_path / "pipeline"
    assemble_pipeline(sample_kb, output, name="tiny", version="1.0.0")
    nlp = spacy.load(output)
    assert links(nlp) == LINKS
    assert nlp.meta["name"] == "tiny"
    assert "8 concepts" in nlp.meta["description"]
    assert len(list(output.rglob("concepts.db"))) == 1
    # The config names no folder, which the pipeline would not use.
    assert nlp.config["components"]["sapbert_linker"]["kb"] is None
    with pytest.raises(SapbertError, match=r"E003.*--force"):
        assemble_pipeline(sample_kb, output)
    detector = spacy.blank("en")
    detector.add_pipe("entity_ruler").add_patterns([{"label": "A", "pattern": "fever"}])
    detector.to_disk(tmp_path / "detector")
    assemble_pipeline(sample_kb, output, detector=tmp_path / "detector", force=True)
    assert links(spacy.load(output)) == LINKS[1:]
    with pytest.raises(SapbertError, match="E003"):
        assemble_pipeline(sample_kb, tmp_path / "detector", detector=output, force=True)


def test_assemble_for_a_packaged_kb_refers_to_it_by_name(
    sample_kb, tmp_path, new_process
):
    output = tmp_path / "pipeline"
    assemble_pipeline(sample_kb, output, name="tiny", kb_package="ti_ny")
    assert not list(output.rglob("concepts.db"))
    with pytest.raises(SapbertError, match="E310.*ti_ny"):
        links(spacy.load(output))
    package(output, tmp_path, create_wheel=True, force=True, silent=True)
    wheels = [
        *tmp_path.rglob("en_tiny-*.whl"),
        package_kb(sample_kb, tmp_path, name="ti_ny", version="1.0"),
    ]
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(tmp_path / "site")
    assert len(list((tmp_path / "site").rglob("concepts.db"))) == 1
    (metadata,) = (tmp_path / "site").glob("en_tiny-*.dist-info/METADATA")
    required = [r for r in metadata.read_text().splitlines() if r.startswith("Requi")]
    assert "Requires-Dist: sapbert-kb-ti-ny" in required
    assert any("spacy-sapbert" in line for line in required)
    code = (
        "import json, spacy\n"
        f"doc = spacy.load('en_tiny')({TEXT!r})\n"
        "print(json.dumps([(ent.text, ent.kb_id_) for ent in doc.ents]))\n"
    )
    # this checkout too, in case that it is not installed
    path = os.pathsep.join([str(tmp_path / "site"), str(Path(__file__).parents[2])])
    env = {**os.environ, "PYTHONPATH": path}
    done = new_process.python(code, env=env, cwd=tmp_path)
    assert [tuple(link) for link in json.loads(done.stdout)] == LINKS
