"""`spacy sapbert serve`: a service that links, and its page."""

from pathlib import Path
from typing import Any

import typer

from ...errors import Errors, SapbertError
from ...io.plugins import require
from ...pipeline.running import NAMES, complete_pipeline, load_pipeline
from ..app import app
from ..link_options import SETTING, gather_options

LIBRARIES = ("fastapi", "prometheus_client", "uvicorn")
INSTALL = '".[serve]"'


@app.command("serve")
def serve(
    pipeline: str | None = typer.Option(
        None, help="Folder or package. [blank, detects the names of the kb]"
    ),
    kb: str | None = typer.Option(
        None, help="Folder or name of a knowledge base. [that of the pipeline]"
    ),
    lang: str | None = typer.Option(
        None, help="Language of the blank pipeline, e.g. es. [en]"
    ),
    host: str = typer.Option("127.0.0.1", help="Address to listen on."),
    port: int = typer.Option(8080, min=0, max=65535, help="0 = any that is free."),
    reviews: Path | None = typer.Option(
        None,
        help="File for the decisions of reviewers, with the texts that they review; it "
        "is created if it is missing. [no reviews]",
    ),
    documents: list[Path] = typer.Option(
        [],
        help="File or folder with documents to review, in a format of `link`; the "
        "concepts of their mentions are proposals. Needs --reviews. May be repeated.",
    ),
    token_file: Path | None = typer.Option(
        None, help="File with a token that clients have to send."
    ),
    allow_remote: bool = typer.Option(
        False, "--allow-remote", help="Let others reach it without a token."
    ),
    allow_host: list[str] = typer.Option(
        [], help="A name of this service besides localhost. May be repeated."
    ),
    allow_origin: list[str] = typer.Option(
        [],
        help="Origin of other pages that may use it, e.g. http://127.0.0.1:3333 for "
        "OpenRefine. May be repeated.",
    ),
    engine: str | None = typer.Option(
        None, help="Engine of the encoder: torch or openvino. [as the linker: torch]"
    ),
    setting: list[str] = SETTING,
) -> None:
    """pipeline + kb/ -> a service on a port of this machine

    It answers until it is stopped by Ctrl-C or SIGTERM, and then finishes the requests
    that it has accepted. A new version of the knowledge base is used when it is there.

    Example: spacy sapbert serve --pipeline models/pipeline

    Example: spacy sapbert serve --kb models/kb --host 0.0.0.0 --token-file token.txt

    Exit code: 0 = stopped; 1 = an error, printed in one line; 2 = wrong options.
    """
    for library in LIBRARIES:
        require(library, INSTALL)
    from ...serve.logs import EventLog
    from ...serve.reviews.imports import import_paths
    from ...serve.reviews.store import ReviewStore
    from ...serve.server import open_socket, run_server
    from ...serve.service import Service
    from ...serve.settings import Settings, check_remote, read_token

    token = None if token_file is None else read_token(token_file)
    check_remote(host, token=token, allow_remote=allow_remote)
    settings = Settings(
        host=host,
        port=port,
        token=token,
        names=frozenset(name.lower() for name in (*allow_host, host)),
        origins=frozenset(origin.rstrip("/") for origin in allow_origin),
    )
    store = None if reviews is None else ReviewStore(reviews)
    if documents:
        if store is None:
            raise SapbertError(Errors.E492)
        import_paths(store, documents)
    bound = open_socket(host, port)
    nlp = load_pipeline(pipeline, lang=lang)
    linker: Any = complete_pipeline(
        nlp,
        kb=kb,
        mentions=NAMES if pipeline is None else None,
        options=gather_options(setting),
        engine=engine,
    )
    service = Service(nlp, linker, limits=settings.limits)
    service.start()
    run_server(service, settings, bound, EventLog(), store)
