"""The command line `jev`: results on stdout, everything else on stderr. One module a command; `main.py` lists them."""

from .main import build_parser, compact_main, entry, main

__all__ = ["build_parser", "compact_main", "entry", "main"]
