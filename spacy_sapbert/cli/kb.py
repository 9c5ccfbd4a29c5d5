"""`spacy sapbert kb …`: build, inspect, verify and package a knowledge base."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import typer

from ..encoder.huggingface import EncoderSettings, check_settings, read_settings
from ..errors import Errors, SapbertError
from ..kb.folder.installed import find_kb
from ..kb.folder.manifest import read_manifest
from ..kb.folder.records import Manifest, Teaching
from ..kb.opening import check_digest, open_kb
from ..system.progress import format_count
from ..system.terminal import format_json, msg
from ..system.writing import check_outputs
from .app import app, make_app

kb_app = make_app(
    name="kb", help="Build, inspect, verify and package a knowledge base."
)
app.add_typer(kb_app)
GOOD_RECALL = 0.99


def parse_settings(values: list[str], option: str = "--setting") -> dict[str, int]:
    """Parse `NAME=NUMBER` settings of the index backend.

    option (str): How they are given, for the error.
    """
    settings: dict[str, int] = {}
    for value in values:
        name, equals, number = value.partition("=")
        if not equals or not number.isdecimal():
            raise SapbertError(Errors.E320.format(setting=option, value=value))
        settings[name] = int(number)
    return settings


def choose_settings(
    encoder: str,
    pooling: str | None,
    max_length: int | None,
    lowercase: bool | None,
) -> EncoderSettings:
    """Return the settings of an encoder, replaced by options that are not None."""
    given = {"pooling": pooling, "max_length": max_length, "lowercase": lowercase}
    settings = asdict(read_settings(Path(encoder)))
    settings.update((key, value) for key, value in given.items() if value is not None)
    return check_settings(settings)


def describe_manifest(manifest: Manifest) -> list[tuple[str, Any]]:
    """Return the rows of `kb info`: what, and its value."""
    counts, encoder, index = manifest.counts, manifest.encoder, manifest.index
    size = sum(record.size for record in manifest.files.values())
    settings = ", ".join(f"{key} {value}" for key, value in index.settings.items())
    overlay = manifest.overlay
    rows = [
        ("Concepts", f"{counts.concepts:,}"),
        ("Concepts changed or added since", f"{overlay.concepts if overlay else 0:,}"),
        (
            "Concepts removed since, or names of them",
            f"{overlay.removed if overlay else 0:,}",
        ),
        ("Names", f"{counts.aliases:,}"),
        ("Distinct names in the index", f"{counts.rows:,}"),
        ("Names that the encoder cannot read", f"{counts.unreadable:,}"),
        ("Index", f"{index.backend} ({settings})" if settings else index.backend),
        ("Character 3-grams", "yes" if manifest.ngrams else "no"),
        ("Encoder", f"{encoder.base} ({encoder.fingerprint})"),
        ("Engines", ", ".join(manifest.engines)),
        ("Vectors", f"{encoder.width} wide, {encoder.pooling} pooling"),
        (
            "Threshold",
            "none: every mention is linked"
            if manifest.threshold is None
            else manifest.threshold,
        ),
    ]
    if recall := manifest.recall:
        shares = f"{recall.at_1:.1%} of the nearest names, {recall.at_10:.1%} of ten"
        rows.insert(
            7, ("Found by the index", f"{shares} ({recall.queries:,} misspelt names)")
        )
    if estimate := manifest.estimate:
        rows.append(
            (
                "Estimated by",
                f"{estimate.names:,} names, each searched for without itself: "
                f"{estimate.right:,} find a name of their concept; of those with the "
                f"score of the threshold, {estimate.probability:.0%} do",
            )
        )
    if taught := manifest.taught:
        rows += describe_teaching(taught)
    if found := manifest.calibration:
        files = ", ".join(each.file for each in found.files)
        rows.append(
            (
                "Calibrated by",
                f"{found.criterion} on {found.mentions:,} mentions of {files}: "
                f"precision {found.precision:.3f}, recall {found.recall:.3f} "
                f"({found.date})",
            )
        )
    return [
        *rows,
        ("Sources", "; ".join(manifest.sources) or "not named"),
        ("Size", f"{size / 1e6:,.1f} MB"),
        ("Digest", manifest.digest),
        ("Made with", f"spacy-sapbert {manifest.package_version}"),
    ]


def describe_teaching(taught: Teaching) -> list[tuple[str, str]]:
    """Return what a knowledge base has learned, for a table."""
    sources = "; ".join(
        f"{file.source or 'Docs'}: {format_count(file.documents, 'document')}, "
        f"{format_count(file.mentions, 'mention')}"
        for file in taught.files
    )
    order = (
        "" if taught.after is None else f", with the learned order {taught.after:.3f}"
    )
    return [
        ("Taught by", f"{sources} ({taught.date})"),
        (
            "Right first answers",
            f"{taught.before:.3f} without, {taught.names:.3f} with the annotated "
            f"mentions as names{order} (cross-validated)",
        ),
    ]


def require_gpu(gpu_id: int) -> None:
    """Let spaCy and torch use a GPU.

    RAISES (SapbertError): If there is none, or CuPy is not installed.
    """
    import spacy

    try:
        spacy.require_gpu(gpu_id)
    except Exception as error:  # CuPy and CUDA have many
        reason = str(error).strip().partition("\n")[0]
        raise SapbertError(Errors.E357.format(gpu=gpu_id, reason=reason)) from None


@kb_app.command("build")
def build(
    concepts: Path = typer.Argument(..., help="concepts.jsonl"),
    kb: Path = typer.Argument(..., help="Folder to write."),
    encoder: str = typer.Option(..., help="Folder or hub id of the encoder."),
    pooling: str | None = typer.Option(
        None, help="cls or mean. [as in the folder of the encoder, else cls]"
    ),
    max_length: int | None = typer.Option(None, min=3, help="Tokens of a name. [25]"),
    lowercase: bool | None = typer.Option(None, help="Lower-case names. [yes]"),
    backend: str | None = typer.Option(
        None, help="Index: exact, hnsw or faiss. [by number of names and memory]"
    ),
    setting: list[str] = typer.Option(
        [], help="Of the backend, like M=32; may be repeated."
    ),
    threshold: float | None = typer.Option(
        None,
        help="Cosine below which a mention has no concept; 0 = none. [estimated]",
    ),
    source: list[str] = typer.Option(
        [], help="A vocabulary and its release, for `kb info`; may be repeated."
    ),
    engine: str = typer.Option(
        "torch", help="Runs the encoder: torch, or openvino, which is faster on a CPU."
    ),
    names_per_pass: int = typer.Option(64, min=1, help="Names embedded at once."),
    precision: str = typer.Option("float32", help="Of the encoder: float32 or bf16."),
    threads: int = typer.Option(
        0, min=0, help="For the index, 0 = all; with 1 the bytes are always the same."
    ),
    ngrams: bool = typer.Option(
        False, "--ngrams", help="Index character 3-grams too, for hybrid search."
    ),
    reuse: Path | None = typer.Option(
        None, help="Knowledge base of the same encoder; only other names are embedded."
    ),
    gpu_id: int = typer.Option(
        -1, "--gpu-id", "-g", help="GPU for the encoder, -1 = the CPU; needs CuPy."
    ),
    force: bool = typer.Option(False, "--force", help="Replace a folder."),
    quiet: bool = typer.Option(False, "--quiet", help="Print nothing but errors."),
) -> None:
    """concepts.jsonl + encoder -> kb/

    The same command continues a build that was stopped.

    Example: spacy sapbert kb build assets/concepts.jsonl models/kb --encoder
    cambridgeltl/SapBERT-from-PubMedBERT-fulltext --source "UMLS 2024AA"
    """
    from ..kb.build import build_kb

    check_outputs(kb, force=force)
    if gpu_id >= 0:
        require_gpu(gpu_id)
    manifest = build_kb(
        concepts,
        kb,
        encoder,
        settings=choose_settings(encoder, pooling, max_length, lowercase),
        backend=backend,
        backend_settings=parse_settings(setting),
        threshold=threshold,
        sources=source,
        engine=engine,
        names_per_pass=names_per_pass,
        precision=precision,
        threads=threads,
        ngrams=ngrams,
        reuse=reuse,
        force=force,
        progress=not quiet,
    )
    if not quiet:
        msg.table(describe_manifest(manifest))
        warn_of_recall(kb, manifest)
        msg.good(f"Wrote {kb}")


def warn_of_recall(kb: Path, manifest: Manifest) -> None:
    """Print how to find more, if the index misses more than one name in a hundred."""
    if manifest.recall and manifest.recall.at_1 < GOOD_RECALL:
        ef = 2 * manifest.index.settings["ef"]
        msg.warn(
            f"The index finds {manifest.recall.at_1:.1%} of the nearest names. A "
            f"slower search finds more: spacy sapbert kb set {kb} ef={ef}"
        )


@kb_app.command("info")
def info(
    kb: str | None = typer.Argument(None, help="Folder or name. [the installed]"),
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """kb/ -> table

    Example: spacy sapbert kb info models/kb
    """
    folder = find_kb(kb)
    manifest = read_manifest(folder)
    if as_json:
        typer.echo(format_json(manifest.model_dump()))
    else:
        msg.table([("Folder", str(folder)), *describe_manifest(manifest)])


@kb_app.command("verify")
def verify(
    kb: str | None = typer.Argument(None, help="Folder or name. [the installed]"),
    digest: str | None = typer.Option(
        None, help="The digest that it must have; `kb info` prints it."
    ),
    quiet: bool = typer.Option(False, "--quiet", help="Print nothing but errors."),
) -> None:
    """kb/ -> exit code 0 if no file is damaged and names find their concepts

    Example: spacy sapbert kb verify models/kb
    """
    from ..kb.probe import probe_kb

    opened = open_kb(find_kb(kb), whole=True)
    check_digest(opened, digest)
    opened.store.check()
    found = probe_kb(opened)
    if not quiet:
        msg.good(
            f"{len(opened.manifest.files) + 1} files are valid; the index finds "
            f"{found.rows:.1%} of its rows, and {found.names:.1%} of the names find "
            "their concept"
        )


@kb_app.command("package")
def package(
    kb: Path = typer.Argument(..., help="Folder of the knowledge base."),
    output: Path = typer.Argument(..., help="Folder for the wheel."),
    name: str = typer.Option(..., help='Name for `kb = "…"`.'),
    version: str = typer.Option("0.1.0", help="Of the package."),
    force: bool = typer.Option(False, "--force", help="Replace the wheel."),
    quiet: bool = typer.Option(False, "--quiet", help="Print nothing but errors."),
) -> None:
    """kb/ -> wheel

    Example: spacy sapbert kb package models/kb packages --name umls_2024aa
    """
    from ..kb.folder.packaging import package_kb

    wheel = package_kb(kb, output, name=name, version=version, force=force)
    if not quiet:
        msg.good(f"Wrote {wheel}", f"pip install {wheel}")
