# Every target sets up what it needs: on a fresh machine `make gym` is the first and only command.
PYTHON ?= python3.11
BIN := .venv/bin
READY := .venv/.ready

.PHONY: gym test lint format bench docs clean

gym: $(READY)            ## the main job: a backtest from data to report, end to end
	$(BIN)/agent-gym demo

test: $(READY)           ## all tests, in parallel, with doctests
	$(BIN)/pytest

lint: $(READY)           ## style, types, import order, file sizes
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python scripts/check_sizes.py

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(READY)          ## speed against the bare loop and every installed peer
	$(BIN)/python -m benchmarks

docs: $(READY)           ## the documentation site, into site/
	$(BIN)/mkdocs build --strict

$(READY): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[dev]' -c constraints.txt
	touch $@

clean:
	rm -rf .venv results site .mypy_cache .ruff_cache .pytest_cache .hypothesis
