"""/column: tables of terms, read, mapped and written."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool

from ...io.excel import text_of
from ...linking.candidates import Candidate
from ...linking.certainty import Certainty
from ...linking.options import change_options
from ...mapping.lookup import Found, map_batch
from ...mapping.lookup import Query as Term
from ...mapping.sssom import make_curie, name_subjects
from ...pipeline.linker import fit_language
from ..access import Access
from ..columns import (
    ENDINGS,
    FORMATS,
    MOST_ROWS,
    Choice,
    JsonCell,
    Table,
    from_json,
    read_table,
    write_mapped,
)
from ..depends import ServiceDep
from ..problems import wrong_request
from ..requests import LONGEST_VALUE, LinkSettings, check_texts, read_settings
from .answers import describe_file, to_file

router = APIRouter(tags=["column"], prefix="/column")
Text = Annotated[str, Field(max_length=LONGEST_VALUE)]


class TermsRequest(LinkSettings):
    """Terms to look up, as `map` does."""

    terms: list[str]


class FoundTerm(BaseModel):
    """What /column/map found for a term; only what is sure is "exact" or "linked"."""

    model_config = ConfigDict(extra="forbid")

    read_as: str
    status: Annotated[str, Field(max_length=20)]
    cui: str | None
    note: str | None
    candidates: list[Candidate]
    certainty: Certainty


class FoundTerms(BaseModel):
    """What was found for each term, in order, and the digest of the knowledge base."""

    kb: str
    found: list[FoundTerm]


class TableRequest(BaseModel):
    """A table, the term of each row, what was shown for it, and what was chosen.

    Attributes:
        terms, chosen, predicates: Of each row. A choice is an id, "NIL", or "".
        found: What /column/map found, by the term.
        kb: The digest of the knowledge base, as /column/map answers it.
        subject: The column with the ids of the rows, for SSSOM; "" = none.
        reviewer: Who chose, for SSSOM.
    """

    model_config = ConfigDict(extra="forbid")

    header: list[str]
    rows: list[list[JsonCell]]
    terms: list[str]
    found: dict[str, FoundTerm]
    kb: Text
    chosen: list[Text]
    predicates: list[Literal["", "exact", "broad", "narrow", "related"]]
    subject: Text = ""
    reviewer: Text = ""


class ColumnFormats(BaseModel):
    """Formats of files that are written, endings of those that are read, most rows."""

    formats: list[str]
    endings: list[str]
    rows: int


@router.post(
    "/read",
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                "application/octet-stream": {
                    "schema": {"type": "string", "format": "binary"}
                }
            },
        }
    },
)
async def read_column(
    request: Request, name: Annotated[str, Query(max_length=LONGEST_VALUE)]
) -> Table:
    """The rows of a CSV, TSV, Excel or Parquet file, which is the body."""
    data = await request.body()
    return await run_in_threadpool(read_table, name, data)


@router.get("/formats")
async def list_formats() -> ColumnFormats:
    """What /column/read takes and /column/write returns."""
    return ColumnFormats(formats=[*FORMATS], endings=[*ENDINGS], rows=MOST_ROWS)


@router.post("/map")
async def map_column(service: ServiceDep, body: TermsRequest) -> FoundTerms:
    """What is found for each term, by the best of its readings."""
    check_texts(body.terms, service.limits, "terms")
    settings = read_settings(body)

    def run() -> FoundTerms:
        options = change_options(service.options, settings)
        fitting = fit_language(options, service.nlp.vocab.lang)
        kb = service.kb
        found = map_batch(kb, [Term(one) for one in body.terms], fitting)
        terms = [FoundTerm(**one._asdict()) for one in found]
        return FoundTerms(kb=kb.manifest.digest, found=terms)

    return await service.call(run)


@router.post(
    "/write",
    response_class=Response,
    responses=describe_file(*FORMATS.values()),
)
def write_column(
    request: Request,
    service: ServiceDep,
    body: TableRequest,
    format: Annotated[str, Query(max_length=LONGEST_VALUE)] = "csv",
) -> Response:
    """The table with columns `match_…` as CSV or Excel, or its mappings as SSSOM."""
    parts = (body.rows, body.terms, body.chosen, body.predicates)
    widths = {len(body.header), *map(len, body.rows)}
    if len({len(part) for part in parts}) > 1 or len(widths) > 1:
        raise wrong_request("as many `rows`, `terms`, `chosen` and `predicates`")
    if not body.found.keys() >= {*body.terms}:
        raise wrong_request("each of `terms` in `found`")
    if body.subject and body.subject not in body.header:
        raise wrong_request("`subject` to be one of `header`")
    try:
        rows = [[*map(from_json, row)] for row in body.rows]
    except ValueError:
        raise wrong_request("dates of ISO 8601 in `rows`") from None
    subjects = [""] * len(rows)
    if body.subject:
        prefix, place = name_subjects(body.subject), body.header.index(body.subject)
        ids = [text_of(row[place]).strip() for row in rows]
        subjects = [make_curie(id, prefix) if id else "" for id in ids]
    access: Access = request.state.access
    data = write_mapped(
        service.kb,
        format,
        body.header,
        rows,
        body.terms,
        {term: Found(**one.model_dump()) for term, one in body.found.items()},
        [*map(Choice, body.chosen, body.predicates, subjects)],
        digest=body.kb,
        reviewer=body.reviewer or access.reviewer or "",
    )
    return to_file(data, f"mapped.{format}", FORMATS[format])
