"""The component: finds the abbreviations that a document defines."""

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
    """Make a component of what a pickle holds.

    name (str): Of the component.
    attrs (str): The names of its attributes.
    RETURNS (SapbertAbbreviations): The component.
    """
    long_form_attr, abbreviations_attr = attrs
    return SapbertAbbreviations(
        name, long_form_attr=long_form_attr, abbreviations_attr=abbreviations_attr
    )


class SapbertAbbreviations:
    """Gives spans that are short forms the long form that the document defines.

    Attributes of spans go by offsets: an entity that is a short form has its long form,
    whether it was detected before or after. All settings are in the pipeline's config,
    so nothing is saved.

    name (str): Of the component.
    long_form_attr (str): Of spans: the long form, a text with single blanks, or None.
        What is there already stays.
    abbreviations_attr (str): Of Docs: the spans that have one.
    RAISES (SapbertError): If the attribute of Docs belongs to another component.
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
        """Find the abbreviations of one Doc.

        doc (Doc): Any Doc.
        RETURNS (Doc): The same, with long forms.
        """
        long_form_attr, _ = self.attrs
        long_forms = find_long_forms(doc.text)
        for span, long in find_short_forms(doc, long_forms) if long_forms else ():
            if not span._.get(long_form_attr):
                span._.set(long_form_attr, long)
        return doc

    def __reduce__(self) -> tuple[Any, ...]:
        # in another process, the attributes have to be registered again
        return restore_abbreviations, (self.name, *self.attrs)
