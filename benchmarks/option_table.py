"""What `linker_options` measured → Markdown."""

from typing import Any

from benchmarks.compare_linkers import render_row


def render_p(p: float) -> str:
    """Write how likely a difference is by chance."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def render_change(row: dict[str, Any]) -> str:
    """Write the difference of two lines, in points.

    row (dict[str, Any]): From `describe_row`.
    RETURNS (str): With how many mentions it gets right and how many wrong that were not
        before, and how likely that is by chance; a dash for the first line.
    """
    if "difference" not in row:
        return "–"
    if not row["better"] and not row["worse"]:
        return "0"
    mentions = f"+{row['better']:,} −{row['worse']:,}"
    return f"{100 * row['difference']:+.2f} ({mentions}), {render_p(row['p'])}"


def render_accuracy(data: dict[str, Any]) -> list[str]:
    """Write a table of all files by which nothing was chosen.

    data (dict[str, Any]): What linker_options.json says.
    RETURNS (list[str]): Lines of Markdown.
    """
    files = {n: file for n, file in data["files"].items() if not file["chosen_on"]}
    titles = [title for name in files for title in (name, "change", "Acc@5")]
    lines = [
        render_row(["Options", *titles]),
        render_row(["---", *["---:"] * len(titles)]),
    ]
    for name in data["rows"]:
        cells = [f"**{name}**" if name in data["steps"] else name]
        for file in files.values():
            row = file["rows"][name]
            cells += [f"{row['acc@1']:.4f}", render_change(row), f"{row['acc@5']:.4f}"]
        lines.append(render_row(cells))
    return lines


def render_ties(name: str, data: dict[str, Any]) -> list[str]:
    """Write down what decides ties, and how well.

    name (str): Of the file.
    data (dict[str, Any]): What linker_options.json says.
    RETURNS (list[str]): Lines of Markdown.
    """
    file = data["files"][name]
    ties, judged = file["ties"]["ties"], file["judged"]
    share = f"{100 * ties / judged:.1f} %"
    lines = [
        "",
        f"**{name}**: {ties:,} of {judged:,} mentions ({share}) have a first answer "
        f"that shares its score. One of those that share it is right for "
        f"{file['ties']['possible']:,}.",
        "",
        render_row(
            ["Options", "decides", "right there", "by id there", "right of all"]
        ),
        render_row(["---", *["---:"] * 4]),
    ]
    for row, line in file["ties"]["lines"].items():
        way = data["rows"][row]
        if not way["abbreviations"] and not way["settings"].get("fusion"):
            lines.append(render_row([row, *(f"{count:,}" for count in line.values())]))
    return lines


def render_results(data: dict[str, Any]) -> str:
    """Write what was measured down.

    data (dict[str, Any]): What linker_options.json says.
    RETURNS (str): Markdown.
    """
    machine, kb = data["machine"], data["kb"]
    versions = ", ".join(f"{name} {v}" for name, v in machine["versions"].items())
    lines = [
        f"{machine['cpu']}, {machine['cores']} cores, {machine['platform']}; "
        f"{versions}.",
        f"{kb['folder']}: {kb['counts']['concepts']:,} concepts, encoder "
        f"{kb['encoder']['base']}.",
        "",
    ]
    for name, file in data["files"].items():
        unknown = file["mentions"] - file["without_id"] - file["judged"]
        coverage = file["judged"] / (file["mentions"] - file["without_id"])
        use = "to choose on" if file["chosen_on"] else "measured"
        lines.append(
            f"- {name} ({use}): {file['documents']:,} documents, {file['judged']:,} of "
            f"{file['mentions']:,} mentions judged; left out: {file['without_id']:,} "
            f"without an id, {unknown:,} whose id the knowledge base lacks (coverage "
            f"{coverage:.3f}); {file['widened']:,} of all widened to whole tokens."
        )
    lines += [
        "",
        "Acc@1 in the order of the linker. Change: in points, with mentions that "
        "become right and wrong, against the plain linker, of the bold lines, which "
        "were put together by the files to choose on, against the one before; p by "
        "McNemar's exact test.",
        "",
        *render_accuracy(data),
    ]
    for name, file in data["files"].items():
        if not file["chosen_on"]:
            lines += render_ties(name, data)
    return "\n".join(lines)
