"""The command line of training: `python -m training COMMAND …`.

A command is imported when it is called, so `python -m training train` needs no spaCy.
"""

import inspect
from importlib import import_module
from typing import Any, NamedTuple

import typer

from spacy_sapbert.cli.app import ErrorReportingGroup, make_app, name_pages
from spacy_sapbert.errors import SapbertError


class CommandInfo(NamedTuple):
    """Where a command is defined, and its `input -> output` line of help."""

    target: str  # module:function in `training`
    help: str
    pages: str = "training"  # of the site, which have more about it


COMMANDS = {  # in the order of work
    "check": CommandInfo(
        "check:check_command",
        "vocabulary + settings -> what would stop `spacy project run all`",
    ),
    "convert-dictionary": CommandInfo(
        "corpora.convert:convert_dictionary",
        "lines id||name -> concepts.jsonl",
        "corpora",
    ),
    "convert-corpus": CommandInfo(
        "corpora.convert:convert_research",
        "COMETA, XL-BEL, BioSyn -> mentions.tsv or docs.spacy",
        "corpora",
    ),
    "sample": CommandInfo(
        "data.sample:sample_command",
        "concepts.jsonl + mentions.tsv -> their concepts, and some others",
    ),
    "hold-out": CommandInfo(
        "data.hold_out:hold_out",
        "concepts.jsonl -> trained.jsonl + held_out.jsonl",
        "hierarchies",
    ),
    "hold-out-names": CommandInfo(
        "data.hold_out:hold_out_names",
        "concepts.jsonl -> trained.jsonl + mentions.tsv of names that it lacks",
    ),
    "pairs": CommandInfo("data.pairs:pairs_command", "concepts.jsonl -> pairs.tsv"),
    "finetune-pairs": CommandInfo(
        "data.training_mentions:write_finetune_pairs",
        "mentions.tsv + concepts.jsonl -> pairs.tsv",
    ),
    "translation-pairs": CommandInfo(
        "data.translation_pairs:write_translation_pairs",
        "word lists, parallel titles -> pairs.tsv",
    ),
    "families": CommandInfo(
        "data.families:write_families",
        "concepts.jsonl -> families.tsv",
        "hierarchies",
    ),
    "relations": CommandInfo(
        "data.relations:write_relations",
        "concepts.jsonl + MRREL.RRF -> relations.tsv",
        "hierarchies",
    ),
    "train": CommandInfo(
        "trainer.command:train_command",
        "pairs.tsv + base encoder -> encoder folder",
    ),
    "model-card": CommandInfo(
        "compare:model_card_command",
        "evaluation.json + encoder -> table, in its model card",
    ),
    "results-table": CommandInfo(
        "results_table:results_table",
        "results.json of linkers, seeds, languages -> table, Markdown",
        "evaluation",
    ),
}


class LazyGroup(ErrorReportingGroup):
    """Imports a command when it is called."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.rich_markup_mode = None  # panels would ask, and so import, all commands

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        info = COMMANDS.get(cmd_name)
        if info is None:
            return None
        module, _, name = info.target.partition(":")
        try:
            target = getattr(import_module(f"training.{module}"), name)
        except ModuleNotFoundError as error:
            raise SapbertError(
                "E521",
                f"Expected the packages of `{cmd_name}`, but got: {error}. Run `pip "
                'install -e ".[full]"`.',
            ) from None
        single = make_app(add_completion=False)
        # `--training.seed 1` and the like
        takes_settings = cmd_name in ("check", "train")
        single.command(
            cmd_name,
            help=f"{info.help}\n\n{inspect.getdoc(target)}",
            epilog=name_pages(info.pages),
            context_settings={
                "allow_extra_args": takes_settings,
                "ignore_unknown_options": takes_settings,
            },
        )(target)
        return typer.main.get_command(single)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, info.help) for name, info in COMMANDS.items()])


app = make_app(
    name="training", cls=LazyGroup, add_completion=False, no_args_is_help=True
)


@app.callback()
def main() -> None:
    """Train encoders, prepare their data, and compare them."""


if __name__ == "__main__":
    app(prog_name="python -m training")
