"""The answer to an error, in the form that the protocol of its path has."""

from ..problems import encode_problem, status_of
from .fhir_parameters import MEDIA_TYPE, describe_outcome, is_fhir


def describe_answer(error: Exception, path: str) -> tuple[int, str, bytes]:
    """Return status, media type and body of the answer to an error.

    Args:
        path: Of the request.
    """
    if is_fhir(path):
        status, body = describe_outcome(error)
        return status, MEDIA_TYPE, body
    return status_of(error), "application/json", encode_problem(error)
