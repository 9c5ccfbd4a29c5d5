"""What a reviewer says of a mention: one declaration for store, requests and page."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from ...formats.entities import Context
from ...formats.gold import NIL

NO_MENTION = "NO_MENTION"  # chosen for a text that is not a mention
OPEN = "OPEN"  # chosen for a text that is marked, and whose concept is not decided
AGREED = "agreed"  # stands for a reviewer in exports: what holds of a document
NO_CONCEPTS = (NIL, NO_MENTION, OPEN)  # chosen without being an id
LONGEST_NAME = 200  # characters
LONGEST_COMMENT = 2_000
MOST_SHOWN = 1_000  # candidates of a decision
Name = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME)]
Spot = tuple[str, int, int]  # id of a document, start and end


class Request(BaseModel):
    """What a request sends, which has these fields and no others."""

    model_config = ConfigDict(strict=True, extra="forbid")


class Shown(Request):
    """A candidate that the reviewer saw."""

    cui: Name
    score: Annotated[float | None, Field(allow_inf_nan=False)] = None


class Decision(Request):
    """What a reviewer says of a mention.

    That is an id, "NIL" = no concept of the vocabulary, "NO_MENTION" = the text is not
    a mention, "OPEN" = the text is a mention and its concept is not decided yet, or
    null to withdraw the decision before. "OPEN" is no answer: nothing counts it.

    Attributes:
        start, end: Offsets in characters.
        settles: It says what holds where reviewers differ, and is no answer of the
            reviewer.
    """

    reviewer: Name
    document: Name
    start: Annotated[int, Field(ge=0, le=10**9)]
    end: Annotated[int, Field(ge=1, le=10**9)]
    label: Annotated[str, Field(max_length=LONGEST_NAME)] = ""
    chosen: Name | None
    settles: bool = False

    @property
    def spot(self) -> Spot:
        """Where it is."""
        return self.document, self.start, self.end

    @property
    def is_mention(self) -> bool:
        """Whether the text is a mention, with a concept or without one."""
        return self.chosen not in (None, NO_MENTION, OPEN)

    def overlaps(self, start: int, end: int) -> bool:
        """Return whether it has a character of a span."""
        return self.start < end and start < self.end


class NewDecision(Decision):
    """A decision to write.

    Attributes:
        key: A random text; a request that is repeated with it is written once.
        shown: The candidates that the reviewer saw.
        kb: The digest of the knowledge base, as the answer of /link has it.
    """

    key: Annotated[str, Field(pattern=r"^[\w-]{8,64}$")]
    shown: Annotated[list[Shown], Field(max_length=MOST_SHOWN)] = []
    kb: Annotated[str, Field(max_length=LONGEST_NAME)] = ""


class Remark(Request):
    """What a reviewer notes on a mention, whatever its concept is.

    Attributes:
        context: What the text says of it; "" = it is so; null = as it was found.
        asks: A colleague should look at it.
    """

    reviewer: Name
    document: Name
    start: Annotated[int, Field(ge=0, le=10**9)]
    end: Annotated[int, Field(ge=1, le=10**9)]
    context: Context | None = None
    comment: Annotated[str, Field(max_length=LONGEST_COMMENT)] = ""
    asks: bool = False


class NewRemark(Remark):
    """A remark to write; `key` is a random text, with which it is written once."""

    key: Annotated[str, Field(pattern=r"^[\w-]{8,64}$")]
