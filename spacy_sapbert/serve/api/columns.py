"""/column: tables of terms, read, mapped and written."""

from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool

from ...errors import Errors
from ...linking.candidates import Candidate
from ...linking.options import change_options
from ...mapping.found import Found
from ...mapping.lookup import Query as Term
from ...mapping.lookup import map_batch
from ...pipeline.linker import fit_language
from ..columns import ENDINGS, FORMATS, MOST_ROWS, Table, read_table, write_mapped
from ..depends import ServiceDep
from ..problems import RequestError
from ..requests import LONGEST_VALUE, LinkSettings, check_texts, read_settings
from .answers import describe_file, to_file, to_json

router = APIRouter(tags=["column"], prefix="/column")


class TermsRequest(LinkSettings):
    """Terms to look up, as `map` does."""

    terms: list[str]


class FoundTerm(BaseModel):
    """What /column/map found for a term."""

    model_config = ConfigDict(extra="forbid")

    read_as: str
    status: Annotated[str, Field(max_length=20)]
    cui: str | None
    note: str | None
    candidates: list[Candidate]


class FoundTerms(BaseModel):
    """What was found for each term, in order."""

    found: list[FoundTerm]


class TableRequest(BaseModel):
    """A table, the term of each row, what was found for it, and what was chosen."""

    model_config = ConfigDict(extra="forbid")

    header: list[str]
    rows: list[list[str]]
    terms: list[str]
    found: list[FoundTerm]
    chosen: list[Annotated[str, Field(max_length=LONGEST_VALUE)]]


class ColumnFormats(BaseModel):
    """Formats of files that are written, endings of those that are read, most rows."""

    formats: list[str]
    endings: list[str]
    rows: int


@router.post(
    "/read",
    response_model=Table,
    openapi_extra={"requestBody": {"content": {"*/*": {}}}},
)
async def read(
    request: Request, name: Annotated[str, Query(max_length=LONGEST_VALUE)]
) -> Response:
    """The rows of a CSV, TSV, Excel or Parquet file, which is the body."""
    data = await request.body()
    table = await run_in_threadpool(read_table, name, data)
    return to_json(asdict(table))


@router.get("/formats", response_model=ColumnFormats)
async def formats() -> Response:
    """What /column/read takes and /column/write returns."""
    offered = {"formats": [*FORMATS], "endings": [*ENDINGS], "rows": MOST_ROWS}
    return to_json(offered)


@router.post("/map", response_model=FoundTerms)
async def map_column(service: ServiceDep, body: TermsRequest) -> Response:
    """What is found for each term, by the best of its readings."""
    check_texts(body.terms, service.limits, "terms")

    def run() -> list[Found]:
        options = change_options(service.options, read_settings(body))
        fitting = fit_language(options, service.nlp.vocab.lang)
        return map_batch(service.kb, [Term(text) for text in body.terms], fitting)

    found = [one._asdict() for one in await service.call(run)]
    return to_json({"found": found})


@router.post(
    "/write",
    response_class=Response,
    responses=describe_file(*FORMATS.values()),
)
async def write(
    service: ServiceDep,
    body: TableRequest,
    format: Annotated[str, Query(max_length=LONGEST_VALUE)] = "csv",
) -> Response:
    """The table with columns `match_…` as CSV or Excel, or its mappings as SSSOM."""
    parts = (body.rows, body.terms, body.found, body.chosen)
    lengths = {len(part) for part in parts}
    widths = {len(body.header), *map(len, body.rows)}
    if len(lengths) > 1 or len(widths) > 1:
        expected = "as many `rows`, `terms`, `found` and `chosen`"
        raise RequestError(Errors.E457.format(expected=expected), 422)
    found = [Found(**one.model_dump()) for one in body.found]
    columns = (body.header, body.rows, body.terms, found, body.chosen)
    data = await run_in_threadpool(write_mapped, service.kb, format, *columns)
    return to_file(data, f"mapped.{format}", FORMATS[format])
