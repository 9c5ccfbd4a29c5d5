"""The programs of five pages print what the pages say."""

import os
import re
from contextlib import suppress
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
RECIPES = "\n".join(
    (DOCS / f"{page}.md").read_text("utf8")
    for page in ("first_hour", "recipes", "deployment", "migration", "linker")
)
PROGRAM = re.compile(
    r"^```python\n(.*?)^```\n+```text\n(.*?)^```", re.DOTALL | re.MULTILINE
)
ENDS = ("out", "err")  # of the files with what a program prints
FOUND = ("fever", "heart", "attack")  # words that the stand-ins of detectors know


def test_recipes_have_a_program_and_its_output():
    programs = PROGRAM.findall(RECIPES)
    assert len(programs) == RECIPES.count("```python") == RECIPES.count("```text") > 0


# Opening spaCy takes seconds: one process does it, and forks for each program.
PROGRAMS = """
import os, sys, traceback
import spacy
spacy.blank("en")

number = 0
for code in eval(sys.stdin.read()):
    number += 1
    child = os.fork()
    if not child:
        with open(f"{number}.out", "w") as out, open(f"{number}.err", "w") as err:
            os.dup2(out.fileno(), 1)
            os.dup2(err.fileno(), 2)
        try:
            exec(compile(code, "program", "exec"), {"__name__": "__main__"})
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(0)
    os.waitpid(child, 0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_recipes_print_their_output(demo_folder, new_process, subtests):
    folder = demo_folder
    make_token_classifier(folder / "models" / "disease-ner")
    with suppress(ImportError):
        make_gliner(folder / "models" / "disease-gliner")
    programs = PROGRAM.findall(RECIPES)
    # that model is not trained: all its scores are about 0.5
    codes = [code.replace("threshold=0.5", "threshold=0.0") for code, _ in programs]
    done = new_process.python(PROGRAMS, cwd=folder, input=repr(codes))
    assert done.returncode == 0, done.stderr
    for number, (code, output) in enumerate(programs, 1):
        with subtests.test(f"program {number}"):
            for module in re.findall(r"^(?:import|from) (\S+)", code, re.MULTILINE):
                pytest.importorskip(module, exc_type=ImportError)
            found, errors = (
                (folder / f"{number}.{end}").read_text("utf8") for end in ENDS
            )
            if "gliner" in code:
                assert "fever" in found, errors
            else:
                assert found == output, errors


def make_words(folder: Path) -> list[str]:
    """Write a tokenizer that knows a few words."""
    from transformers import BertTokenizerFast

    folder.mkdir(parents=True)
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *FOUND, "a", "."]
    (folder / "vocab.txt").write_text("\n".join(words), "utf8")
    tokenizer = BertTokenizerFast(str(folder / "vocab.txt"), model_max_length=64)
    tokenizer.save_pretrained(folder)
    return words


def make_token_classifier(folder: Path) -> None:
    """Save a BERT without layers that finds the words of `FOUND`."""
    import torch
    from transformers import BertConfig, BertForTokenClassification

    words = make_words(folder)
    config = BertConfig(
        vocab_size=len(words),
        hidden_size=2,
        num_hidden_layers=0,
        num_attention_heads=1,
        max_position_embeddings=64,
        id2label={0: "O", 1: "I-Disease"},
        label2id={"O": 0, "I-Disease": 1},
    )
    model = BertForTokenClassification(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        embeddings = model.bert.embeddings
        embeddings.LayerNorm.weight.fill_(1)
        vectors = [[-1.0, 1.0] if word in FOUND else [1.0, -1.0] for word in words]
        embeddings.word_embeddings.weight[:] = torch.tensor(vectors)
        model.classifier.weight[:] = torch.eye(2) * 9
    model.save_pretrained(folder)


def make_gliner(folder: Path) -> None:
    """Save a GLiNER that was not trained."""
    import torch
    from gliner import GLiNER
    from gliner.config import GLiNERConfig
    from transformers import BertConfig, BertModel

    base = folder.with_name("bert")
    size = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1}
    words = len(make_words(base))
    torch.manual_seed(0)
    BertModel(
        BertConfig(vocab_size=words, num_attention_heads=1, **size)
    ).save_pretrained(base)
    config = GLiNERConfig(
        model_name=str(base), max_width=3, hidden_size=16, max_len=64, dropout=0.0
    )
    GLiNER.from_config(config).save_pretrained(folder)
