# Quercus. Needs Python 3.11 or newer and make, nothing else; everything is installed into .venv.
.DEFAULT_GOAL := help
.PHONY: help demo checks test test-all docs serve proto client bench torture fuzz leases faults flood labelling-trial soak cluster-demo cluster-torture clean
.DELETE_ON_ERROR:

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/installed.stamp
DEMO_STAMP := $(VENV)/demo.stamp
BENCH_STAMP := $(VENV)/bench.stamp
COLLECTED := $(VENV)/collected.stamp
OUT := src
# Where it is set, each of the many processes that tests and the demo start would compile all modules again.
unexport PYTHONDONTWRITEBYTECODE
PROTO_FILES = $(sort $(wildcard src/quercus/proto/v1/*.proto src/quercus/proto/inference/*.proto))

help: ## Show this list
	@echo "Quercus: streaming active learning with evidential decision trees."
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

demo: $(DEMO_STAMP) ## See the whole thing work on real data: server, sensor, two labellers, classifier
	$(BIN)/quercus demo $(ARGS)

# Kernels and tests are compiled beside the checks, so that no worker has to: a minute once, and again when they change.
CHANGED = $(shell find belief tests trees -name '*.py' -newer $(COLLECTED) 2>&1)
COMPILE = $(if $(CHANGED),found=$$($(BIN)/python -m pytest -q --collect-only 2>&1) || { echo "$$found" | tail -30; exit 1; },true)
checks: $(STAMP)
	@{ $(COMPILE); } & compiling=$$!; \
	set -x; \
	{ $(BIN)/ruff check && $(BIN)/ruff format --check && $(BIN)/mypy && $(BIN)/lint-imports; } \
	    || { kill $$compiling; exit 1; }; \
	wait $$compiling && touch $(COLLECTED)

# Tests wait for other processes, slow ones most of all: more workers than the machine has cores keep the cores busy. Each
# costs 11 seconds of CPU: it imports all tests, and has servers of its own.
WAITING = $(if $(SELECTED),1,2)
WORKERS = $(shell $(BIN)/python -c 'import os; print((os.cpu_count() or 1) + $(WAITING))')
PYTEST = $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder

SELECTED := -m "not slow"
test: checks ## Run every check, and the tests that every change needs
	$(PYTEST) $(SELECTED) $(ARGS)

test-all: SELECTED :=
test-all: test ## Run every check and every test, as continuous integration does

docs: $(STAMP) ## Build the site of the documentation into build/docs; warnings are errors
	$(BIN)/python -m sphinx -q -W --keep-going -j auto -b html docs build/docs
	@echo "open build/docs/index.html"

serve: $(DEMO_STAMP) ## Run a server; pass flags as in: make serve ARGS="--port 50052"
	$(BIN)/quercus serve $(ARGS)

proto: $(STAMP) ## Generate the Python code from proto/*/*.proto
	$(BIN)/python -m grpc_tools.protoc -I src \
	    --plugin=protoc-gen-mypy=$(BIN)/protoc-gen-mypy \
	    --plugin=protoc-gen-mypy_grpc=$(BIN)/protoc-gen-mypy_grpc \
	    --python_out=$(OUT) --grpc_python_out=$(OUT) --mypy_out=$(OUT) --mypy_grpc_out=$(OUT) $(PROTO_FILES)

client: $(STAMP) ## Generate the synchronous client, client/sync, from client/aio
	$(BIN)/python client/generate_sync.py

bench: $(BENCH_STAMP) ## Measure Quercus beside its peers; writes bench/RESULTS.md (ARGS=--quick: a look)
	$(BIN)/python bench $(ARGS)

torture: $(STAMP) ## Kill server and grower under load, N=200 times, and check that nothing is lost
	$(BIN)/python tests/support/torture.py $(or $(N),200)

cluster-demo: $(STAMP) ## Label through two servers on PostgreSQL, kill one, grow on Dask, and compare the trees with that of SQLite
	$(BIN)/python tests/support/cluster_demo.py

cluster-torture: $(STAMP) ## Kill, stop and cut off two servers on one PostgreSQL, N=200 rounds, and check that nothing is lost
	$(BIN)/python tests/support/cluster_torture.py $(or $(N),200)

fuzz: $(STAMP) ## Feed every RPC N=10000 mutated messages
	$(BIN)/python tests/support/fuzz.py $(or $(N),10000)

leases: $(STAMP) ## Let 32 labellers answer N=2000 queries with delays, deaths and clock jumps
	$(BIN)/python tests/support/leases.py $(or $(N),2000)

faults: $(STAMP) ## Disk full, read-only, stopped processes, slow and silent clients: what callers see (root)
	$(BIN)/python tests/support/faults.py

flood: $(STAMP) ## Flood a server as strangers do, S=5 seconds an attack: what others get, and its memory
	$(BIN)/python tests/support/flood.py $(or $(S),5)

labelling-trial: $(STAMP) ## The same 60 queries by terminal and console at human speed, and a thousand answers in one page
	$(BIN)/python tests/support/labelling_trial.py $(PARTS)

soak: $(STAMP) ## Push, label, classify and watch for MINUTES=20, and see whether memory is flat
	$(BIN)/python tests/support/soak.py $(or $(MINUTES),20)

clean: ## Remove .venv, caches and build leftovers
	rm -rf $(VENV) build dist src/*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

comma := ,
define check_python
$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
    echo "Quercus needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) --version 2>&1)." \
         "Name another with: make PYTHON=python3.12 ..." >&2; exit 1; }
endef

# uv unpacks with all cores what pip unpacks with one; where it cannot be had, or finds no package, pip installs.
PIP_INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check
define install
$(PIP_INSTALL) uv > /dev/null 2>&1 && $(BIN)/uv pip install --quiet --python $(BIN)/python --editable '$(1)' 2> /dev/null \
    || $(PIP_INSTALL) --editable '$(1)'
endef

# A stamp is written last: an interrupted installation is taken up again, a finished one is not repeated.
$(DEMO_STAMP): pyproject.toml
	@$(check_python)
	@echo "Installing what a server and its demo need into $(VENV) (once; about 0.8 GB, some minutes) ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(call install,.[demo])
	@touch $@

$(STAMP): pyproject.toml
	@$(check_python)
	@echo "Installing what developers need into $(VENV) (once; about 1.4 GB, some minutes) ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(call install,.[dev])
	@touch $(DEMO_STAMP) $@

$(BENCH_STAMP): $(STAMP)
	@echo "Installing the peers that bench/ measures beside Quercus ..."
	@$(call install,.[dev$(comma)bench])
	@touch $@
