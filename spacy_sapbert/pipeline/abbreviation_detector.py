"""The component `sapbert_abbreviations`: finds abbreviations and their long forms."""

from typing import Any

from spacy.language import Language
from spacy.tokens import Doc

from .long_forms import find_short_forms, set_extensions
from .schwartz_hearst import find_long_forms


@Language.factory(
    "sapbert_abbreviations",
    assigns=["doc._.abbreviations", "span._.long_form"],
    default_config={
        "long_form_attr": "long_form",
        "abbreviations_attr": "abbreviations",
    },
)
def make_sapbert_abbreviations(
    nlp: Language, name: str, long_form_attr: str, abbreviations_attr: str
) -> "SapbertAbbreviations":
    """Make the component; see `SapbertAbbreviations` for its settings."""
    return SapbertAbbreviations(
        name, long_form_attr=long_form_attr, abbreviations_attr=abbreviations_attr
    )


def restore_abbreviations(name: str, *attrs: str) -> "SapbertAbbreviations":
    """Return a component from a pickle: its name and the names of its attributes."""
    long_form_attr, abbreviations_attr = attrs
    return SapbertAbbreviations(
        name, long_form_attr=long_form_attr, abbreviations_attr=abbreviations_attr
    )


class SapbertAbbreviations:
    """Sets the long form of short forms that the document defines.

    Attributes of spans belong to offsets, so an entity with the offsets of a short form
    has the long form, whether it is detected before or after. All settings are in the
    config of the pipeline, so nothing else is saved.

    Args:
        long_form_attr: Attribute of spans: the long form, a text with single blanks, or
            None. A value that is set is kept.
        abbreviations_attr: Attribute of Docs: the spans with a long form.

    Raises:
        SapbertError: If another component uses the attribute of Docs.
    """

    def __init__(
        self,
        name: str = "sapbert_abbreviations",
        *,
        long_form_attr: str = "long_form",
        abbreviations_attr: str = "abbreviations",
    ) -> None:
        self.name = name
        self.attrs = (long_form_attr, abbreviations_attr)
        set_extensions(*self.attrs)

    def __call__(self, doc: Doc) -> Doc:
        """Set the long forms in one Doc."""
        long_form_attr, _ = self.attrs
        long_forms = find_long_forms(doc.text)
        for span, long in find_short_forms(doc, long_forms) if long_forms else ():
            if not span._.get(long_form_attr):
                span._.set(long_form_attr, long)
        return doc

    def __reduce__(self) -> tuple[Any, ...]:
        # The attributes are registered again in the other process.
        return restore_abbreviations, (self.name, *self.attrs)
