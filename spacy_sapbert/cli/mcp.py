"""`spacy sapbert mcp`: linking and concepts as tools of an agent."""

from ..io.plugins import require
from .app import app
from .options import (
    SETTING,
    Engine,
    KbOrPipeline,
    Lang,
    Pipeline,
    choose_pipeline,
    gather_options,
)
from .serve import LIBRARIES as SERVE_LIBRARIES

LIBRARIES = (*SERVE_LIBRARIES, "mcp")
INSTALL = '-c constraints.txt -e ".[mcp]"'


@app.command("mcp")
def mcp(
    kb: KbOrPipeline,
    pipeline: Pipeline = None,
    lang: Lang = None,
    engine: Engine = None,
    setting: list[str] = SETTING,
) -> None:
    """kb/ or pipeline -> tools of an agent (MCP)

    It speaks the Model Context Protocol on the standard input and output, for an agent
    that starts it on this machine, until the input ends. It opens no port, sends
    nothing, and logs nothing.

    Example: spacy sapbert mcp models/kb

    Exit code: 0 = the input ended; 1 = an error, printed in one line; 2 = wrong
    options.
    """
    for library in LIBRARIES:
        require(library, INSTALL)
    from ..pipeline.running import open_pipeline
    from ..serve.agent import run_agent_server
    from ..serve.service import Service

    options = gather_options(setting)
    detector, name = choose_pipeline(kb, pipeline)
    nlp, linker = open_pipeline(
        detector, lang=lang, kb=name, options=options, engine=engine
    )
    service = Service(nlp, linker)
    service.start()
    run_agent_server(service)
