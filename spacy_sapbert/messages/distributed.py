"""Errors and warnings of engines for many machines."""


class DistributedErrors:
    E370 = (
        "Expected one column {name!r} in the documents, but they have {found}. Pass "
        "the names of their columns as `text`, `id` and `keep`."
    )
    E371 = (
        "Expected {expected} in the column {name!r}, but its type is {got}. Convert "
        "the column, or pass another as `text` or `id`."
    )
    E372 = (
        "Expected `keep` to have columns once, which the rows have not of their own, "
        "but got {got}. Correct it, or rename the column."
    )
    E373 = "Expected settings among {known}, but got {got}. Correct the name."
    E374 = (
        "Expected a document of at most {limit:,} characters, but it has {length:,}. "
        "Split it, or pass a larger `max_chars`, up to 1,000,000."
    )
    E375 = "Expected a text in UTF-8, but it has other bytes. Convert the document."
