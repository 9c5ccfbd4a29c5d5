"""The metadata is in pyproject.toml; old tools look for this file."""

from setuptools import setup

setup()
