# make demo   install what is needed and optimise a real kernel (no GPU, CUDA or key needed)
# make test   install what is needed and run every check and test
# make unit   the fast tests alone

PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3; do \
  command -v $$p >/dev/null 2>&1 && $$p -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))' 2>/dev/null \
  && echo $$p && break; done)
VENV ?= .venv
BIN := $(VENV)/bin
# The compiler comes from pip only where the machine has none.
NVCC := $(shell command -v nvcc 2>/dev/null || ls /usr/local/cuda/bin/nvcc 2>/dev/null)
EXTRAS := $(if $(NVCC),,nvcc)
comma := ,
DEMO ?= matmul
DEMO_OUT ?= out/demo

# Programs that the tests start need not compile our modules each time, even where Python was told to keep no bytecode.
BYTECODE = $(BIN)/python -m compileall -q kernelskill skills tests/flow tests/fakes

.PHONY: demo test lint unit clean

demo: $(VENV)/.installed
	@rm -rf $(DEMO_OUT)
	$(BIN)/kernelskill run benchmarks/core/$(DEMO)/kernel.cu --tests benchmarks/core/$(DEMO)/test.py \
	  --device emulated --rounds 1 --out $(DEMO_OUT)

test: $(VENV)/.installed-dev lint
	@$(BYTECODE)
	$(BIN)/pytest -n 2 --dist loadfile --no-loadscope-reorder --durations=25

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

unit: $(VENV)/.installed-dev
	@$(BYTECODE)
	$(BIN)/pytest -n 2 --dist worksteal tests/unit

$(VENV)/bin/python:
	@test -n "$(PYTHON)" || { echo "make: Python 3.11, 3.12 or 3.13 is needed; give it with PYTHON=..." >&2; exit 3; }
	@command -v g++ >/dev/null || { echo "make: g++ is needed; for example: apt install g++" >&2; exit 3; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.$(if $(EXTRAS),[$(EXTRAS)])'
	@touch $@

$(VENV)/.installed-dev: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev$(if $(EXTRAS),$(comma)$(EXTRAS))]'
	@touch $@ $(VENV)/.installed

clean:
	rm -rf $(VENV) out build dist
