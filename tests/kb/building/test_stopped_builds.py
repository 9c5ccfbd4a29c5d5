"""A build with any index is all or nothing: killed, or out of disk, at any moment."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

# One process that opens the encoder, and forks for each moment a child that builds, and
# there is killed, or told that the disk is full.
STOP = """
import json, resource, shutil
from pathlib import Path
from spacy_sapbert import SapbertError, build_kb, load_kb
from spacy_sapbert.kb.building import row_vectors
from spacy_sapbert.kb.indexes import faiss_graph

concepts, encoder, old, work = map(Path, sys.argv[1:5])
index = json.loads(sys.argv[5])
folder = work / "kb"
row_vectors.SHARD_ROWS, row_vectors.SHARDS_AT_ONCE = 8, 2
faiss_graph.BLOCK_ROWS = faiss_graph.PART_ROWS = 8
def build(target):
    build_kb(concepts, target, str(encoder), threads=1, force=True, **index)

def digest(path):
    return load_kb(path).manifest.digest

build(work / "new")
before, after = digest(old), digest(work / "new")
assert before != after

def stop_at(moment):
    global left
    child = os.fork()
    if not child:
        code = 3
        try:
            if how == "limit":
                signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
                resource.setrlimit(resource.RLIMIT_FSIZE, (moment, moment))
            else:
                left = moment
            build(folder)
            code = 0 if how == "limit" or left > 0 else 4
        except SapbertError as error:
            code = 1
            print(how, moment, error, file=sys.stderr, flush=True)
        except BaseException as error:
            # tokenizers and safetensors have no other; the command names it
            code = 1 if "(os error" in str(error) else 3
            if code == 3:
                import traceback
                traceback.print_exc()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

for how in ("kill", "full", "limit"):
    moments = range(2 if how == "kill" else 9, 1000, 17)
    if how == "limit":
        moments = [300, 3000, 30_000, 1_000_000]
    seen = []
    for moment in moments:
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(old, folder)
        seen.append(stop_at(moment))
        found = digest(folder)
        assert found in (before, after), (how, moment)
        assert found == before or seen[-1] != 1, (how, moment)
        good = {"kill": (-9, 0), "full": (0, 1, 4), "limit": (0, 1)}[how]
        assert seen[-1] in good, (how, moment, seen)
        if seen[-1] == 0:
            break
    print(how, len(seen), seen)
    assert seen[-1] == 0 and seen[0] == (-9 if how == "kill" else 1), (how, seen)
    # What the stopped ones left is used, or does no harm.
    build(folder)
    assert digest(folder) == after
    rest = {path.name for path in work.iterdir()}
    assert rest <= {"kb", "new"}, rest
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.parametrize(
    "index",
    [
        {"backend": "exact", "backend_settings": {"compact": 1}},
        {"backend": "hnsw", "backend_settings": {"pca": 8}},
        {"backend": "faiss", "backend_settings": {"pca": 8}},
    ],
    ids=["exact", "hnsw", "faiss"],
)
def test_build_kb_stopped_at_any_write_leaves_the_old_or_the_new_kb(
    index: dict[str, Any],
    concepts_file: Path,
    tiny_encoder: Path,
    sample_kb: Path,
    tmp_path: Path,
    new_process: Any,
    stop_at_write: str,
) -> None:
    if index["backend"] == "faiss":
        pytest.importorskip("faiss")
    one = {"TOKENIZERS_PARALLELISM": "false", "OMP_NUM_THREADS": "1"}
    arguments = [concepts_file, tiny_encoder, sample_kb, tmp_path, json.dumps(index)]
    done = new_process.python(
        stop_at_write + STOP, *arguments, env={**os.environ, **one}, timeout=580
    )
    assert done.returncode == 0, done.stdout + done.stderr
