"""The shared case files, each against the engine in both hosts.

The engine needs a host to be imported, so it runs in a process of the host's python; the scorer runs here.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet
from case_files import Case, folder, load_folder
from case_play import Workers, play, verdict
from hosts import HOSTS, host_python


def _cases() -> list[Case]:
    found = folder()
    return load_folder(found) if found is not None else []


def _parameters() -> list[ParameterSet]:
    return [pytest.param(host, case, id=f"{host}-{case.name}") for host in HOSTS for case in _cases()]


@pytest.fixture(scope="module")
def workers() -> Iterator[Workers]:
    with Workers() as running:
        yield running


@pytest.mark.host
@pytest.mark.parametrize(("host", "case"), _parameters())
def test_case(host: str, case: Case, workers: Workers, tmp_path: Path) -> None:
    worker = workers.get(host_python(host))
    failures = play(case, worker, workers, tmp_path)
    verdict(case, failures)


def test_case_files_are_there() -> None:
    if folder() is None and os.environ.get("CI") != "true":
        pytest.skip("the shared case files are not here; HERMES_JEV_CASES can name others")
    assert _cases(), "no case files: set HERMES_JEV_CASES"
