# Every target makes .venv by itself, once for each change of pyproject.toml or constraints.txt.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
PEERS := .venv/.peers

.DEFAULT_GOAL := help
.PHONY: help demo test test-all lint bench

help:
	@echo 'make demo      run one layer on MT7004 and write its report below out/demo'
	@echo 'make test      lint, types and the quick tests'
	@echo 'make test-all  lint, types and every test (installs PyTorch)'
	@echo 'make lint      lint, formatting and types'
	@echo 'make bench     time the simulator itself'

$(STAMP): pyproject.toml constraints.txt
	@command -v $(PYTHON) >/dev/null || { echo "error: no $(PYTHON) found; say which: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "error: tilesim needs Python 3.11 or newer, $(PYTHON) is %d.%d; say another: make PYTHON=/path/to/python3.11" % sys.version_info[:2])'
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

# What numbers are compared with by the slow tests alone: it is large.
$(PEERS): $(STAMP)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,peers]'
	@touch $@

demo: $(STAMP)
	@$(BIN)/tilesim run conv_backward --target mt7004 \
		--shape n=4,cin=128,h=28,w=28,cout=128,kh=3,kw=3,stride=1,pad=1 \
		--dtype fp16 --grads dx --cores 4 --out out/demo --report

# Two processes share the tests; products in two threads each would only wait for one another.
test test-all: export OPENBLAS_NUM_THREADS = 1

test: $(STAMP)
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/pytest -n 2 -m 'not slow'

test-all: $(PEERS)
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/pytest -n 2

lint: $(STAMP)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

bench: $(STAMP)
	$(BIN)/python -m benchmarks.speed
