import re
from pathlib import Path

from typer.testing import CliRunner

from benchmarks.teaching import main
from spacy_sapbert import load_kb
from spacy_sapbert.cli.app import make_app
from spacy_sapbert.corpora.annotated import read_annotated
from spacy_sapbert.kb.teaching.teach import teach_documents


def write_notes(path: Path, mentions: list[tuple[str, str]]) -> Path:
    lines: list[str] = []
    for number, (mention, cui) in enumerate(mentions):
        text = f"note {number} has {mention}"
        start = text.index(mention)
        place = f"{start}\t{start + len(mention)}\t{mention}\tX\t{cui}"
        lines += [f"{path.stem}{number}|t|{text}", f"{path.stem}{number}\t{place}", ""]
    path.write_text("\n".join(lines), "utf8")
    return path


def test_teaching_is_measured_on_documents_that_were_not_taught(
    own_kb: Path, tmp_path: Path
) -> None:
    train = write_notes(tmp_path / "train.txt", [("funny turn", "x:C0000004")] * 3)
    found = [("funny turn", "x:C0000004"), ("aspirin", "x:C0000006")]
    # A composite, and an id that the knowledge base lacks.
    others = [("sugar", "x:C0000005+x:C0000004"), ("flu", "x:C7777777")]
    dev = write_notes(tmp_path / "dev.txt", [*found, *others])
    documents = [*read_annotated(train, drop_prefix="x:")]
    kb = load_kb(own_kb)
    teach_documents(kb, documents, output=tmp_path / "taught", force=True)
    app = make_app()
    app.command()(main)
    seen = ("--seen", train, "--drop-prefix", "x:")
    arguments = map(str, (dev, own_kb, tmp_path / "taught", *seen))
    result = CliRunner().invoke(app, [*arguments])
    assert result.exit_code == 0, result.output
    assert "2 mentions, 1 seen" in " ".join(result.output.split())
    pattern = r"^\| (kb|taught) \| (\S+) \| (\S+) \| (\S+)"
    rows = re.findall(pattern, result.output, re.MULTILINE)
    assert rows == [
        ("kb", "0.5000", "0.0000", "1.0000"),
        ("taught", "1.0000", "1.0000", "1.0000"),
    ]
