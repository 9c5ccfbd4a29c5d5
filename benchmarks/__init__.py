"""Runnable comparisons, each of which prints a table and names its machine."""
