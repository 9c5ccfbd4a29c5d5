"""Why a mention has its concept, for the requests and the tools that ask."""

from pathlib import Path

from ..errors import SapbertError
from ..evaluation.explain import Explanation, explain_mention
from ..evaluation.regression import read_context
from ..evaluation.regression_cases import Case, place_mention
from ..linking.options import change_options
from ..pipeline.linker import fit_language
from .problems import wrong_request
from .requests import ExplainRequest, check_texts, read_settings
from .service import Service, require_open


def cut_mention(body: ExplainRequest) -> tuple[str, str, int]:
    """Return mention, text and where it starts, by the offsets of a request.

    Raises:
        RequestError: If they are not in the text, or `mention` is another text.
    """
    text, start, end = body.context or "", body.start or 0, body.end or 0
    mention = text[start:end]
    if not start < end <= len(text) or body.mention not in (None, mention):
        expected = "`start` and `end` of the mention in `context`"
        raise wrong_request(expected)
    return mention, text, start


async def explain(service: Service, body: ExplainRequest) -> Explanation:
    """Explain why a mention has its concept, or not the expected one.

    Raises:
        SapbertError: If there is no mention, or a setting is not possible.
    """
    require_open(service)
    texts = [text for text in (body.mention, body.context) if text is not None]
    check_texts(texts, service.limits, "texts")

    def fail(what: str, _: str) -> SapbertError:
        return wrong_request(what)

    if body.start is None and body.end is None:
        mention, text, start = place_mention(body.mention, body.context, fail)
    else:
        mention, text, start = cut_mention(body)
    if not mention.strip():
        raise fail("a mention that is not blank", "")
    case = Case(Path("request"), 1, text, start, mention, (), body.label, None)

    def run() -> Explanation:
        options = change_options(service.options, read_settings(body))
        return explain_mention(
            service.kb,
            read_context(service.nlp, service.linker, case),
            options=fit_language(options, service.nlp.vocab.lang),
            expected=body.expected,
        )

    return await service.call(run)
