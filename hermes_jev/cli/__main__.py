"""`python -m hermes_jev.cli` is `jev`."""

from .main import entry

if __name__ == "__main__":
    entry()
