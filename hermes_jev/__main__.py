"""`python -m hermes_jev` is `jev`."""

from .cli import entry

entry()
