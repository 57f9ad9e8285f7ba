# One door: every command of the project is a target here, and sets up what it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# Tests compile much and compute little: half of their time is XLA's optimisation. Slow tests, goldens and
# benchmarks run as users do, optimised.
QUICKLY := XLA_FLAGS="--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true --xla_cpu_use_fusion_emitters=false"

.PHONY: help install train test test-thorough test-slow check goldens mutants bench docs tutorial dist clean

help:
	@echo "make install    create $(VENV) with the pinned versions (quick when up to date)"
	@echo "make train      train NeuRD-CIX by self-play in Leduc poker, with NashConv falling"
	@echo "make test       run the test suite: what make check runs of it, and the thorough tests"
	@echo "make test-slow  run the learning curves and long statistics"
	@echo "make check      format, lint, types, import layers, and the tests that are quick (under five minutes)"
	@echo "make goldens    run every way to train a little, and compare with what was recorded (ten minutes)"
	@echo "make mutants    change the code in a hundred places, one by one, and see which tests notice"
	@echo "make docs       build the guides and the reference into build/docs, and check their links"
	@echo "make tutorial   run docs/tutorial.ipynb and write its outputs back (two minutes)"
	@echo "make dist       build the sdist and the wheel into dist/, and check what is in them"
	@echo "make bench      print every headline ratio, measured now (benchmarks/agent_games.py, an hour, by itself)"

install: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "pohp_neurd needs Python 3.11 or newer: try make PYTHON=python3.11 install")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --constraint constraints.txt --editable '.[dev]'
	@# On all cores, which pip does not; without bytecode every process spends a second more on importing JAX.
	-@$(BIN)/python -m compileall -q -j 0 $(VENV)/lib/python*/site-packages pohp_neurd games run_scripts >/dev/null 2>&1
	@touch $@

train: install
	$(BIN)/python run_scripts/train_game.py --game=leduc_poker --output_dir=runs/leduc --overwrite

test: install
	$(QUICKLY) $(BIN)/python -m pytest -q -n 3

test-thorough: install
	$(QUICKLY) $(BIN)/python -m pytest -q -n 3 -m "thorough and not slow"

test-slow: install
	$(BIN)/python -m pytest -q -m slow

check: install
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(QUICKLY) $(BIN)/python -m pytest -q -n 3 -m "not slow and not thorough"

goldens: install
	$(BIN)/python tests/goldens.py

mutants: install
	$(BIN)/python tests/mutants.py

bench: install
	@for script in $(filter-out benchmarks/agent_games.py, $(wildcard benchmarks/*.py)); do \
	  echo "== $$script"; $(BIN)/python $$script || exit 1; done

docs: install
	$(BIN)/python -W error docs/build_site.py build/docs

tutorial: install
	$(BIN)/python tests/tutorial.py

dist: install
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt build twine
	rm -rf build dist
	$(BIN)/python -m build --quiet
	$(BIN)/python -m twine check --strict dist/*
	$(BIN)/python tests/distribution.py dist

clean:
	rm -rf $(VENV) .cache .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist *.egg-info
