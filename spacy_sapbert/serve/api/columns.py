"""/column: tables of terms, read, mapped and written."""

import re
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel
from starlette.concurrency import run_in_threadpool

from ...linking.options import change_options
from ...mapping.lookup import Found, map_batch
from ...mapping.lookup import Query as Term
from ...pipeline.linker import fit_language
from ..columns import (
    ENDINGS,
    FORMATS,
    MOST_ROWS,
    MappedTable,
    Table,
    read_table,
    write_mapped,
)
from ..depends import AccessDep, KbDep, ServiceDep
from ..requests import LONGEST_VALUE, LinkSettings, check_texts, read_settings
from .answers import describe_file, to_file

router = APIRouter(tags=["column"], prefix="/column")
ONE_ENDING = f"^({'|'.join(map(re.escape, ENDINGS))})$"


class TermsRequest(LinkSettings):
    """Terms to look up, as `map` does."""

    terms: list[str]


class FoundTerms(BaseModel):
    """What was found for each term, in order, and the digest of the knowledge base."""

    kb: str
    found: list[Found]


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
    request: Request, ending: Annotated[str, Query(pattern=ONE_ENDING)]
) -> Table:
    """The rows of a CSV, TSV, Excel or Parquet file, which is the body.

    The address has the ending of its name alone: a name may have that of a patient.
    """
    data = await request.body()
    return await run_in_threadpool(read_table, ending, data)


@router.get("/formats")
async def list_formats() -> ColumnFormats:
    """What /column/read takes and /column/write returns."""
    return ColumnFormats(formats=[*FORMATS], endings=[*ENDINGS], rows=MOST_ROWS)


@router.post("/map")
async def map_column(service: ServiceDep, body: TermsRequest) -> FoundTerms:
    """What is found for each term, by the best of its readings."""
    check_texts(body.terms, service.limits, "terms")
    options = change_options(service.options, read_settings(body))
    fitting = fit_language(options, service.nlp.vocab.lang)
    kb, terms = service.kb, [Term(one) for one in body.terms]
    found = await service.work(lambda some: map_batch(kb, some, fitting), terms)
    return FoundTerms(kb=kb.manifest.digest, found=found)


@router.post(
    "/write",
    response_class=Response,
    responses=describe_file(*FORMATS.values()),
)
def write_column(
    access: AccessDep,
    kb: KbDep,
    body: MappedTable,
    format: Annotated[str, Query(max_length=LONGEST_VALUE)] = "csv",
) -> Response:
    """The table with columns `match_…` as CSV or Excel, or its mappings as SSSOM."""
    reviewer = body.reviewer or access.reviewer or ""
    access.check_names([reviewer] if reviewer else [])
    data = write_mapped(kb, format, body, reviewer=reviewer)
    return to_file(data, f"mapped.{format}", FORMATS[format])
