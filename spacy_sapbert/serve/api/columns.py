"""/column: tables of terms, read, mapped and written."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool

from ...linking.candidates import Candidate
from ...linking.options import change_options
from ...mapping.lookup import Found, map_batch
from ...mapping.lookup import Query as Term
from ...pipeline.linker import fit_language
from ..access import Access
from ..columns import (
    ENDINGS,
    FORMATS,
    MOST_ROWS,
    MappedTerms,
    Table,
    read_table,
    write_mapped,
)
from ..depends import MappedDep, ServiceDep
from ..problems import wrong_request
from ..requests import LONGEST_VALUE, LinkSettings, check_texts, read_settings
from ..service import Service
from .answers import describe_file, to_file

MOST_CANDIDATES = 100
USUAL_K = 5  # candidates of a term on the page
TOGETHER = 100  # terms that are mapped between other requests
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
    """A table, the term of each row, what was found for it, and what was chosen.

    Without `found` it is what /column/map finds with `k` candidates.

    Attributes:
        reviewer: Who chose, for SSSOM.
    """

    model_config = ConfigDict(extra="forbid")

    header: list[str]
    rows: list[list[str]]
    terms: list[str]
    found: list[FoundTerm] | None = None
    k: Annotated[int, Field(ge=1, le=MOST_CANDIDATES)] = USUAL_K
    chosen: list[Annotated[str, Field(max_length=LONGEST_VALUE)]]
    reviewer: Annotated[str, Field(max_length=LONGEST_VALUE)] = ""


class ColumnFormats(BaseModel):
    """Formats of files that are written, endings of those that are read, most rows."""

    formats: list[str]
    endings: list[str]
    rows: int


@router.post(
    "/read",
    openapi_extra={"requestBody": {"content": {"*/*": {}}}},
)
async def read(
    request: Request, name: Annotated[str, Query(max_length=LONGEST_VALUE)]
) -> Table:
    """The rows of a CSV, TSV, Excel or Parquet file, which is the body."""
    data = await request.body()
    return await run_in_threadpool(read_table, name, data)


@router.get("/formats")
async def formats() -> ColumnFormats:
    """What /column/read takes and /column/write returns."""
    return ColumnFormats(formats=[*FORMATS], endings=[*ENDINGS], rows=MOST_ROWS)


@router.post("/map")
async def map_column(
    service: ServiceDep, mapped: MappedDep, body: TermsRequest
) -> FoundTerms:
    """What is found for each term, by the best of its readings."""
    check_texts(body.terms, service.limits, "terms")

    settings = read_settings(body)
    found = await map_terms(service, mapped, body.terms, settings)
    return FoundTerms(found=[FoundTerm(**one._asdict()) for one in found])


async def map_terms(
    service: Service, mapped: MappedTerms, terms: list[str], settings: dict[str, Any]
) -> list[Found]:
    """Return what is found for terms; it is kept if only `k` is set."""

    def run() -> tuple[str, list[Found]]:
        options = change_options(service.options, settings)
        fitting = fit_language(options, service.nlp.vocab.lang)
        kb = service.kb
        return kb.manifest.digest, map_batch(kb, [Term(one) for one in terms], fitting)

    digest, found = await service.call(run)
    if settings.keys() == {"k"}:
        mapped.keep(digest, settings["k"], dict(zip(terms, found, strict=True)))
    return found


async def find_again(
    service: Service, mapped: MappedTerms, terms: list[str], k: int
) -> list[Found]:
    """Return what was found for terms; those that are not kept are mapped again."""
    digest = service.kb.manifest.digest
    known = {term: mapped.get(digest, k, term) for term in dict.fromkeys(terms)}
    missing = [term for term, one in known.items() if one is None]
    for first in range(0, len(missing), TOGETHER):
        part = missing[first : first + TOGETHER]
        found = await map_terms(service, mapped, part, {"k": k})
        known |= dict(zip(part, found, strict=True))
    return [one for term in terms if (one := known[term]) is not None]


@router.post(
    "/write",
    response_class=Response,
    responses=describe_file(*FORMATS.values()),
)
async def write(
    request: Request,
    service: ServiceDep,
    mapped: MappedDep,
    body: TableRequest,
    format: Annotated[str, Query(max_length=LONGEST_VALUE)] = "csv",
) -> Response:
    """The table with columns `match_…` as CSV or Excel, or its mappings as SSSOM."""
    parts = (body.rows, body.terms, body.found or body.terms, body.chosen)
    lengths = {len(part) for part in parts}
    widths = {len(body.header), *map(len, body.rows)}
    if len(lengths) > 1 or len(widths) > 1:
        expected = "as many `rows`, `terms`, `found` and `chosen`"
        raise wrong_request(expected)
    if body.found is None:
        found = await find_again(service, mapped, body.terms, body.k)
    else:
        found = [Found(**one.model_dump()) for one in body.found]
    access: Access = request.state.access
    reviewer = body.reviewer or access.reviewer or ""
    columns = (body.header, body.rows, body.terms, found, body.chosen, reviewer)
    data = await run_in_threadpool(write_mapped, service.kb, format, *columns)
    return to_file(data, f"mapped.{format}", FORMATS[format])
