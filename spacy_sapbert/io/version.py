"""The version of the package and the address of its site, for any module."""

__version__ = "0.1.0"
# Help and messages name pages of the site, since an installation has no other ones.
SITE = "https://spacy-sapbert.github.io/spacy-sapbert/"
