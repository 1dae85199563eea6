# make setup | demo | test | test-all | lint | clean
PYTHON ?= python3
BIN := .venv/bin

.PHONY: setup demo test test-all lint types clean

setup: .venv/.done

.venv/.done: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "amber needs Python 3.11 or newer: make PYTHON=python3.11 setup")'
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/pip install --quiet --constraint constraints.txt torch
	$(BIN)/pip install --quiet --constraint constraints.txt --editable . --group dev
	touch $@

demo: setup
	$(BIN)/amber demo --out demo

test: setup
	$(BIN)/python -m pytest --cov --cov-report=term:skip-covered

test-all: setup
	$(BIN)/python -m pytest -m "slow or not slow"

lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: setup
	$(BIN)/basedpyright

clean:
	rm -rf .venv build demo src/*.egg-info .pytest_cache .ruff_cache .coverage
