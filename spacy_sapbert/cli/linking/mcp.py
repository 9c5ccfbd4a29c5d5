"""`spacy sapbert mcp`: linking and concepts as tools of an agent."""

import typer

from ...io.plugins import require
from ...pipeline.running import open_pipeline
from ..app import app
from ..link_options import SETTING, gather_options
from .serve import LIBRARIES as SERVE_LIBRARIES

LIBRARIES = (*SERVE_LIBRARIES, "mcp")
INSTALL = '".[mcp]"'


@app.command("mcp")
def mcp(
    pipeline: str | None = typer.Option(
        None, help="Folder or package. [blank, detects the names of the kb]"
    ),
    kb: str | None = typer.Option(
        None, help="Folder or name of a knowledge base. [that of the pipeline]"
    ),
    lang: str | None = typer.Option(
        None, help="Language of the blank pipeline, e.g. es. [en]"
    ),
    engine: str | None = typer.Option(
        None,
        help="Engine of the encoder: auto, torch or openvino. [as the linker: auto]",
    ),
    setting: list[str] = SETTING,
) -> None:
    """pipeline + kb/ -> tools of an agent (Model Context Protocol)

    It speaks the protocol on the standard input and output, for an agent that starts it
    on this machine, until the input ends. It opens no port, sends nothing, and logs
    nothing.

    Example: spacy sapbert mcp --kb models/kb

    Exit code: 0 = the input ended; 1 = an error, printed in one line; 2 = wrong
    options.
    """
    for library in LIBRARIES:
        require(library, INSTALL)
    from ...serve.agent import run_agent_server
    from ...serve.service import Service

    options = gather_options(setting)
    nlp, linker = open_pipeline(
        pipeline, lang=lang, kb=kb, options=options, engine=engine
    )
    service = Service(nlp, linker)
    service.start()
    run_agent_server(service)
