"""The version of the package, which any module can import."""

__version__ = "0.1.0"
