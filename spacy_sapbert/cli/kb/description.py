"""What a knowledge base is, in rows for a table."""

from collections.abc import Sequence
from typing import Any

from ...io.progress import format_count
from ...kb.folder.records import AtThreshold, Manifest, NamesOrder, Teaching
from ...kb.packages import describe_vocabulary

MOST_SHOWN = 20  # vocabularies


def describe_manifest(manifest: Manifest) -> list[tuple[str, Any]]:
    """Return the rows of `kb info`: what, and its value."""
    counts, encoder, index = manifest.counts, manifest.encoder, manifest.index
    size = sum(record.size for record in manifest.files.values())
    settings = ", ".join(f"{key} {value}" for key, value in index.settings.items())
    overlay = manifest.overlay
    rows = [
        ("Concepts, as built", f"{counts.concepts:,}"),
        ("Concepts changed or added since", f"{overlay.concepts if overlay else 0:,}"),
        (
            "Concepts removed since, or names of them",
            f"{overlay.removed if overlay else 0:,}",
        ),
        ("Names, as built", f"{counts.aliases:,}"),
        ("Distinct names in the index", f"{counts.rows:,}"),
        ("Names that the encoder cannot read", f"{counts.unreadable:,}"),
        ("Index", f"{index.backend} ({settings})" if settings else index.backend),
        ("Character 3-grams", "yes" if manifest.ngrams else "no"),
        ("Encoder", f"{encoder.base} ({encoder.fingerprint})"),
        ("Engines", ", ".join(manifest.engines)),
        ("Vectors", f"{encoder.width} wide, {encoder.pooling} pooling"),
        ("Threshold", f"{manifest.threshold:g}, the least probability of a link"),
    ]
    if recall := manifest.recall:
        shares = f"{recall.at_1:.1%} of the nearest names, {recall.at_10:.1%} of ten"
        rows.insert(
            7, ("Found by the index", f"{shares} ({recall.queries:,} misspelt names)")
        )
    rows += describe_thresholds(manifest.thresholds, manifest.threshold)
    if manifest.order is not None:
        rows += describe_order(manifest.order)
    if taught := manifest.taught:
        rows += describe_teaching(taught)
    if found := manifest.calibration:
        files = ", ".join(each.file for each in found.files)
        rows.append(
            (
                "Calibrated by",
                f"{found.criterion} on {found.mentions:,} mentions of {files}: "
                f"threshold {found.threshold:g}, precision {found.precision:.3f}, "
                f"recall {found.recall:.3f} ({found.date})",
            )
        )
    return [
        *rows,
        ("Sources", "; ".join(manifest.sources) or "not named"),
        *(
            ("Names from", describe_vocabulary(each))
            for each in (manifest.vocabularies or ())[:MOST_SHOWN]
        ),
        ("Size", f"{size / 1e6:,.1f} MB"),
        ("Digest", manifest.digest),
        ("Format", f"{manifest.format}, of spacy-sapbert {manifest.package_version}"),
    ]


def describe_order(order: NamesOrder) -> list[tuple[str, str]]:
    """Return what an order was learned from, and what it gains, for a table."""
    return [
        ("Order learned from", f"{order.examples:,} mentions that were made of names"),
        *(
            (
                f"… {gain.kind}",
                f"{gain.order:.3f} right first answers, {gain.cosine:.3f} by cosine "
                f"({format_count(gain.names, 'held-out name')})",
            )
            for gain in order.gains
        ),
        *(
            (
                f"… {nil.kind}",
                f"{nil.recall:.3f} not linked "
                f"({format_count(nil.mentions, 'mention')} without a concept)",
            )
            for nil in order.nils
        ),
    ]


def describe_thresholds(
    figures: Sequence[AtThreshold], used: float
) -> list[tuple[str, str]]:
    """Return what the threshold does that is used, and what others do, for a table."""
    return [
        (
            f"… {at.threshold:g}{' (used)' * (at.threshold == used)}",
            f"precision {format_share(at.precision)}, recall {format_share(at.recall)} "
            f"of links; NIL recall {format_share(at.nil_recall)}",
        )
        for at in figures
    ]


def format_share(share: float | None) -> str:
    return "–" if share is None else f"{share:.3f}"


def describe_teaching(taught: Teaching) -> list[tuple[str, str]]:
    """Return what a knowledge base has learned, for a table."""
    sources = "; ".join(
        f"{file.source or 'Docs'}: {format_count(file.documents, 'document')}, "
        f"{format_count(file.mentions, 'mention')}"
        for file in taught.files
    )
    unused = "" if taught.as_names else ", and not used for other mentions"
    order = (
        "" if taught.after is None else f", with the learned order {taught.after:.3f}"
    )
    return [
        ("Taught by", f"{sources} ({taught.date})"),
        (
            "Right first answers",
            f"{taught.before:.3f} without, {taught.names:.3f} with the annotated "
            f"mentions as names{order} (cross-validated{unused})",
        ),
    ]
