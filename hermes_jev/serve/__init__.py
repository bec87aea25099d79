"""The lexical judge behind HTTP, in the words of System One: `jev serve`.

Whoever speaks to Jev can speak to it instead, offline. `schema` reads a request, `recognised` finds tool calls and
turns in a state, `likeness` answers what is about neither, `answering` puts them together, `server` listens.
"""

from .server import Server

__all__ = ["Server"]
