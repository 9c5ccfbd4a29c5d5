"""Whether the Hugging Face hub has an encoder, found out within seconds."""

from pathlib import Path

SECONDS = 5.0


def find_hub_problem(
    name: str, *, endpoint: str | None = None, seconds: float = SECONDS
) -> str | None:
    """Return why an encoder cannot be fetched from the hub; None if it can.

    transformers repeats each request, for more than a minute without a network.

    name (str): A hub id; for a folder nothing is asked.
    endpoint (str | None): Address of the hub; None = that of huggingface_hub.
    seconds (float): To wait for the connection, and for the answer.
    """
    if Path(name).is_dir():
        return None
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HFValidationError, RepositoryNotFoundError

    try:
        HfApi(endpoint=endpoint).model_info(name, timeout=seconds)
    except HFValidationError:
        return "this is no folder, and cannot be a hub id."
    except RepositoryNotFoundError:
        return "the hub has no such encoder, or not without a token."
    except Exception as error:  # of requests or httpx, by the version
        return f"the hub did not answer ({type(error).__name__})."
    return None
