"""A pipeline without components, for tests that do not change it."""

import spacy

NLP = spacy.blank("en")
