"""The tables of concepts.db."""

KINDS = ("language", "source")  # the parts of the origin of a name

SCHEMA = """
CREATE TABLE concepts (
    id INTEGER PRIMARY KEY, cui TEXT NOT NULL UNIQUE, name TEXT NOT NULL,
    definition TEXT
) STRICT;
CREATE TABLE aliases (
    concept INTEGER NOT NULL, place INTEGER NOT NULL, alias TEXT NOT NULL,
    form TEXT NOT NULL, row INTEGER, origin INTEGER NOT NULL,
    PRIMARY KEY (concept, place)
) STRICT, WITHOUT ROWID;
CREATE TABLE keys (
    key INTEGER NOT NULL, concept INTEGER NOT NULL, place INTEGER NOT NULL,
    PRIMARY KEY (key, concept, place)
) STRICT, WITHOUT ROWID;
CREATE TABLE origins (
    origin INTEGER NOT NULL, kind TEXT NOT NULL, value TEXT NOT NULL,
    PRIMARY KEY (origin, kind, value)
) STRICT, WITHOUT ROWID;
CREATE TABLE rows (row INTEGER PRIMARY KEY, key BLOB NOT NULL) STRICT;
CREATE TABLE types (
    concept INTEGER NOT NULL, type TEXT NOT NULL, PRIMARY KEY (concept, type)
) STRICT, WITHOUT ROWID;
CREATE TABLE codes (
    concept INTEGER NOT NULL, source TEXT NOT NULL, code TEXT NOT NULL,
    rank INTEGER NOT NULL,
    PRIMARY KEY (concept, source, code)
) STRICT, WITHOUT ROWID;
CREATE TABLE parents (
    concept INTEGER NOT NULL, parent TEXT NOT NULL, PRIMARY KEY (concept, parent)
) STRICT, WITHOUT ROWID;
CREATE TABLE retired (
    cui TEXT PRIMARY KEY, concept INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
"""
INDICES = """
CREATE INDEX aliases_by_row ON aliases (row);
CREATE INDEX aliases_by_form ON aliases (form);
CREATE UNIQUE INDEX rows_by_key ON rows (key);
CREATE INDEX concepts_by_type ON types (type);
CREATE INDEX concepts_by_code ON codes (source, code);
CREATE INDEX concepts_by_parent ON parents (parent);
CREATE INDEX retired_by_concept ON retired (concept);
"""
# Of an overlay: concepts of the knowledge base that are replaced or removed, and how
# often a text was annotated with a concept ("" = with none).
OVERLAY_TABLES = """
CREATE TABLE replaced (concept INTEGER PRIMARY KEY) STRICT;
CREATE TABLE annotated (
    form TEXT NOT NULL, cui TEXT NOT NULL, count INTEGER NOT NULL,
    PRIMARY KEY (form, cui)
) STRICT, WITHOUT ROWID;
CREATE INDEX annotated_by_cui ON annotated (cui);
CREATE INDEX keys_by_concept ON keys (concept);
"""
