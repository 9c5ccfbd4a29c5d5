import re
import shlex
import shutil
from pathlib import Path

from spacy_sapbert.mapping.tables import read_rows, write_table
from tests.commands import invoke

ROOT = Path(__file__).parents[2]


def test_mapping_page_commands_run_on_the_sample(tmp_path, tiny_encoder, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "assets" / "sample", tmp_path / "assets" / "sample")
    shutil.copytree(tiny_encoder, tmp_path / "models" / "minilm")
    page = (ROOT / "docs" / "mapping.md").read_text("utf8")
    blocks = re.findall(r"^```bash\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    assert len(blocks) == 2

    def run(block):
        for line in block.splitlines():
            result = invoke(*shlex.split(line)[2:], code=0)
            yield result.output

    *_, summary = run(blocks[0])
    # a tiny encoder finds names, and no more
    assert "exact    17" in summary
    header, *rows = read_rows(tmp_path / "mapped.xlsx")
    chosen, found = header.index("match_chosen"), header.index("match_id")
    status = header.index("match_status")
    for row in rows:
        if row[status] in ("exact", "linked", "review"):
            row[chosen] = row[found] if row[status] == "exact" else "NIL"
    write_table(tmp_path / "reviewed.xlsx", header, rows)
    accuracy, report = run(blocks[1])
    assert "17" in accuracy
    assert "Right first answers" in report
    assert (tmp_path / "models" / "codes" / "taught").is_dir()
