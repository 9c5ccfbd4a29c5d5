"""`spacy sapbert serve`: a service that links, and its page."""

from pathlib import Path
from urllib.parse import urlsplit

import typer

from ..errors import SapbertError
from ..io.plugins import require
from .app import app
from .options import (
    SETTING,
    Codes,
    Engine,
    KbOrPipeline,
    Lang,
    Pipeline,
    choose_pipeline,
    gather_options,
)

LIBRARIES = ("fastapi", "prometheus_client", "uvicorn")
INSTALL = '-c constraints.txt -e ".[serve]"'


@app.command("serve")
def serve(
    kb: KbOrPipeline,
    pipeline: Pipeline = None,
    lang: Lang = None,
    engine: Engine = None,
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
        None,
        help="File with a token that clients have to send, or with a line `ROLE TOKEN "
        "[NAME]` for each; roles: reader, reviewer, admin.",
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
    public_url: str | None = typer.Option(
        None,
        help="Address that clients use, if a proxy has another one, e.g. "
        "https://terms.example. [as each request has it]",
    ),
    limit: list[str] = typer.Option(
        [],
        help="NAME=NUMBER: another limit, e.g. seconds=120 or of_client=500. May be "
        "repeated.",
    ),
    workers: int = typer.Option(
        1,
        min=1,
        max=64,
        help="Processes behind the port, each with a pipeline of its own; with several "
        "there is no teaching and no /metrics.",
    ),
    context: list[str] = typer.Option(
        [],
        metavar="ATTRIBUTE=KIND",
        help="Attribute of entities that another component sets, and what it says if "
        "it is true: negated, past, family or suspected; negex, is_negated, "
        "is_historical, is_family and others are known. May be repeated.",
    ),
    codes: Codes = None,
    setting: list[str] = SETTING,
) -> None:
    """kb/ or pipeline -> a service on a port of this machine

    It answers until it is stopped by Ctrl-C or SIGTERM, and then finishes the requests
    that it has accepted. A new version of the knowledge base is used when it is there.

    Example: spacy sapbert serve models/pipeline

    Example: spacy sapbert serve models/kb --host 0.0.0.0 --token-file token.txt

    Exit code: 0 = stopped; 1 = an error, printed in one line; 2 = wrong options.
    """
    for library in LIBRARIES:
        require(library, INSTALL)
    from ..pipeline.running import open_pipeline
    from ..serve.access import read_tokens
    from ..serve.logs import EventLog
    from ..serve.reviews.imports import import_paths
    from ..serve.reviews.store import ReviewStore
    from ..serve.server import open_socket, run_server
    from ..serve.service import Service
    from ..serve.settings import (
        Settings,
        check_remote,
        read_contexts,
        read_limits,
        read_public_url,
    )
    from ..serve.workers import run_workers

    tokens = () if token_file is None else read_tokens(token_file)
    check_remote(host, tokens=tokens, allow_remote=allow_remote)
    public = read_public_url(public_url)
    own = [host, *([urlsplit(public).hostname or ""] if public else [])]
    settings = Settings(
        host=host,
        port=port,
        tokens=tokens,
        names=frozenset(name.lower() for name in (*allow_host, *own)),
        origins=frozenset(origin.rstrip("/") for origin in allow_origin),
        limits=read_limits(limit),
        public_url=public,
        workers=workers,
    )
    contexts = read_contexts(context)
    log = EventLog()
    options = gather_options(setting, codes)
    detector, name = choose_pipeline(kb, pipeline)
    bound = open_socket(host, port)

    def open_store() -> ReviewStore | None:
        kept = settings.limits.kept
        return None if reviews is None else ReviewStore(reviews, most_documents=kept)

    def run(store: ReviewStore | None) -> None:
        nlp, linker = open_pipeline(
            detector, lang=lang, kb=name, options=options, engine=engine
        )
        service = Service(nlp, linker, limits=settings.limits, contexts=contexts)
        service.start()
        run_server(service, settings, bound, log, store)

    store = open_store()  # an error of the file comes first
    if documents:
        if store is None:
            raise SapbertError(
                "E423",
                "Expected `--reviews` with `--documents`, but got none. Pass "
                "`--reviews FILE`, which keeps the documents and what is decided on "
                "them.",
            )
        import_paths(store, documents)
    if workers == 1:
        run(store)
        return
    if store is not None:
        store.close()  # each process opens it
    run_workers(workers, lambda: run(open_store()), log)
