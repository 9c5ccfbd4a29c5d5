"""/reviews/columns: columns of terms that are kept, and the choices of reviewers."""

from typing import Annotated

from fastapi import APIRouter, Body, Depends, Response

from ..depends import AccessDep, ServiceDep, StoreDep, need_store
from ..lookup import find_concept, name_chosen
from ..problems import RequestError, wrong_request
from ..reviews.kept_columns import (
    ColumnCount,
    KeptColumn,
    NewChoice,
    NewColumn,
    add_choices,
    add_column,
    delete_column,
    latest_choices,
    list_columns,
    read_candidates,
    read_column,
)
from ..reviews.store import ReviewStore
from ..service import Service
from .answers import encode
from .reviews import MOST_DECISIONS, Reviewer

router = APIRouter(
    tags=["reviews"], prefix="/reviews/columns", dependencies=[Depends(need_store)]
)


def unknown_column() -> RequestError:
    return wrong_request("the id of a column of /reviews/columns", 404)


@router.post("")
def keep_column(store: StoreDep, body: NewColumn) -> str:
    """Keep a column that was mapped, and return its id; an equal one is the same."""
    body.check()
    return add_column(store, body)


@router.get("")
def list_kept_columns(store: StoreDep, reviewer: Reviewer = None) -> list[ColumnCount]:
    """The columns, and how many of their terms a reviewer has decided."""
    return list_columns(store, reviewer)


@router.get("/{id}", response_model=KeptColumn)
def read_kept_column(
    service: ServiceDep, store: StoreDep, id: str, reviewer: Reviewer = None
) -> Response:
    """A column as it was mapped, and the choices of a reviewer that count."""
    kept = read_column(store, id)
    if kept is None:
        raise unknown_column()
    name, kb, sheet, terms = kept
    decisions = latest_choices(store, id, reviewer)
    concepts = name_chosen(service.kb, [one.chosen for one in decisions])
    parts = {
        "id": encode(id),
        "name": encode(name),
        "kb": encode(kb),
        "sheet": sheet,
        "terms": f"[{','.join(terms)}]",
        "decisions": encode([dict(one) for one in decisions]),
        "concepts": encode(concepts),
    }
    text = ",".join(f'"{name}":{part}' for name, part in parts.items())
    return Response(f"{{{text}}}", media_type="application/json")


def check_choice(
    service: Service, store: ReviewStore, id: str, choice: NewChoice
) -> None:
    """Raise an error for a choice that is not possible."""
    known = read_candidates(store, id, choice.term)
    if known is None:
        raise wrong_request("a column of /reviews/columns with this `term`", 404)
    if choice.chosen is not None and choice.chosen not in known:
        find_concept(service.kb, choice.chosen)


@router.post("/{id}/choices")
def add_column_choices(
    access: AccessDep,
    service: ServiceDep,
    store: StoreDep,
    id: str,
    decisions: Annotated[
        list[NewChoice], Body(embed=True, min_length=1, max_length=MOST_DECISIONS)
    ],
) -> list[str]:
    """Write choices, all or none, and return their keys when that is done."""
    access.check_names(one.reviewer for one in decisions)
    for one in decisions:
        check_choice(service, store, id, one)
    add_choices(store, id, decisions)
    return [one.key for one in decisions]


@router.delete("/{id}")
def delete_kept_column(store: StoreDep, id: str) -> str:
    """Remove a column for good: table, terms and choices."""
    if not delete_column(store, id):
        raise unknown_column()
    return id
