# Quercus. Needs Python 3.11 or newer and make, nothing else; everything is installed into .venv.
.DEFAULT_GOAL := help
.PHONY: help demo checks test tests test-all compiled-tests docs pictures screens serve proto generator released kernels client estimators bench floors examples release audit chart release-checks torture fuzz leases faults flood laws release-tests power-cuts labelling-trial wheels soak cluster-torture clean
.DELETE_ON_ERROR:

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/installed.stamp
DEMO_STAMP := $(VENV)/demo.stamp
# Peers live in an environment of their own: CapyMOA wants an older pandas than Quercus has.
PEERS_VENV := .venv-bench
PEERS_STAMP := $(PEERS_VENV)/installed.stamp
# The generator decides which protobuf and grpcio Quercus runs on: its own version and all later ones, up to protobuf's next
# major but one. This is the oldest with wheels for Python 3.14. It wants an older protobuf than developers have, and needs
# none to run, so it is beside their packages rather than among them.
GENERATOR_VERSION := 1.75.1
GENERATOR := $(VENV)/generator
GENERATOR_STAMP := $(GENERATOR)/$(GENERATOR_VERSION).stamp
# The oldest releases that pyproject.toml allows, and what tests Quercus on them.
FLOORS_VENV := .venv-floors
FLOORS_EXTRAS := server console mqtt redis webhook postgres archive estimators dask tracing
FLOORS_TOOLS := pytest pytest-timeout pytest-xdist hypothesis trustme packaging pandas polars openapi-spec-validator \
    'tritonclient<2.66' geventhttpclient python-rapidjson buf-bin setuptools nanobind
FLOORS_TESTS := tests/unit/cli tests/unit/client tests/unit/console tests/unit/server tests/unit/specification \
    tests/unit/storage tests/unit/view tests/contract/storage tests/integration/client/test_client.py \
    tests/integration/client/test_aio.py tests/integration/client/test_redis.py tests/integration/server/test_http.py tests/integration/server/test_tls.py \
    tests/integration/server/test_push_batch.py tests/integration/server/test_inference.py
# Later clients of Triton want a newer grpcio. Of older releases: Typer lays help out otherwise, and the library of gRPC has fewer options to bound. Two need generators.
FLOORS_LEFT_OUT := not test_help and not the_library_knows_every_option and not test_generated and not any_compiler_reads
OUT := src
# Where it is set, each of the many processes that tests and the demo start would compile all modules again.
unexport PYTHONDONTWRITEBYTECODE
PROTO_FILES = $(sort $(wildcard src/quercus/v1/*.proto src/quercus/inference/*.proto))

help: ## Show this list
	@echo "Quercus: streaming active learning with evidential decision trees."
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

demo: $(DEMO_STAMP) ## See the whole thing work on real data: server, sensor, two labellers, classifier
	$(BIN)/quercus demo $(ARGS)

checks: $(STAMP)
	$(BIN)/buf lint && $(BIN)/buf breaking --against proto/released.binpb && $(BIN)/ruff check && $(BIN)/ruff format --check && $(BIN)/clang-format --dry-run -Werror $(wildcard kernels/*.?pp kernels/*/*.hpp) && $(BIN)/mypy && $(BIN)/lint-imports

# Tests wait for other processes, slow ones most of all: more workers than the machine has cores keep the cores busy. Each
# costs 11 seconds of CPU: it imports all tests, and has servers of its own.
WAITING = $(if $(filter-out $(QUICK),$(SELECTED)),3,1)
WORKERS = $(shell $(BIN)/python -c 'import os; print((os.cpu_count() or 1) + $(WAITING))')
PYTEST = $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder

QUICK := -m "not slow"
SELECTED := $(QUICK)
test: checks tests ## Run every check, and the tests that every change needs

tests: $(STAMP)
	$(PYTEST) $(SELECTED) $(ARGS)

# For a checkout without bytecode: each worker would compile all tests itself.
compiled-tests: $(STAMP) ## Compile the tests once, which each worker would do for itself
	@$(BIN)/python -m pytest --collect-only -q > /dev/null || true

test-all: SELECTED := -m "not release"
test-all: checks tests ## Run every check, and every test that is no trial of a release: as continuous integration does

release-tests: $(STAMP) ## Run the tests that are trials of a release: large models, many kills, services of others
	$(PYTEST) -m release $(ARGS)

laws: $(STAMP) ## Try N=200 cases of every law that Hypothesis tests
	LAW_EXAMPLES=$(or $(N),200) $(PYTEST) --timeout 1800 tests/property $(ARGS)

wheels: $(STAMP) ## Build a wheel for this Python into dist; cibuildwheel builds those for all platforms
	$(BIN)/python -m build --wheel --outdir dist .

docs: $(STAMP) ## Build the site of the documentation into build/docs; warnings are errors
	$(BIN)/python -m sphinx -q -W --keep-going -j auto -b html docs build/docs
	@echo "open build/docs/index.html"

pictures: $(STAMP) ## Draw the pictures of the documentation again, those of the screens too (Chromium); look at them
	$(BIN)/python docs/pictures/draw.py && $(BIN)/python docs/pictures/diagrams.py && $(BIN)/python docs/pictures/screens.py

screens: $(STAMP) ## Take pictures of every page of the console, in every state, into build/screens; look at them
	mkdir -p build/screens && SCREENS=build/screens $(BIN)/python -m pytest -q tests/browser/test_every_page.py

serve: $(DEMO_STAMP) ## Run a server; pass flags as in: make serve ARGS="--port 50052"
	$(BIN)/quercus serve $(ARGS)

proto: $(STAMP) $(GENERATOR_STAMP) ## Generate the Python code from proto/*/*.proto, and the results of the client
	PYTHONPATH=$(GENERATOR) $(BIN)/python -m grpc_tools.protoc -I src -I proto \
	    --plugin=protoc-gen-mypy=$(BIN)/protoc-gen-mypy \
	    --plugin=protoc-gen-mypy_grpc=$(BIN)/protoc-gen-mypy_grpc \
	    --python_out=$(OUT) --grpc_python_out=$(OUT) --mypy_out=$(OUT) --mypy_grpc_out=$(OUT) $(PROTO_FILES)
	$(BIN)/python -m quercus.client.generate_results $(OUT)/quercus/client

generator: $(GENERATOR_STAMP)

released: $(STAMP) ## Keep what the protocol is now as that of a release: later changes must not break it
	$(BIN)/buf build --exclude-source-info --output proto/released.binpb

kernels: $(STAMP) ## Build the compiled kernels, and generate their stubs
	$(foreach group,likelihood growth forest,$(BIN)/python -m nanobind.stubgen -q -m quercus.kernels.compiled.$(group) -o kernels/$(group).pyi && ) true

client: $(STAMP) ## Generate the synchronous client, client/sync, from client/aio
	$(BIN)/python client/generate_sync.py

estimators: $(STAMP) ## Generate the estimators, estimators/classifiers.py, from what the learners declare
	$(BIN)/python estimators/generate.py

bench: $(STAMP) $(PEERS_STAMP) ## Measure Quercus beside its peers; writes bench/RESULTS.md (ARGS=--quick: a look)
	$(BIN)/python bench $(ARGS)

torture: $(STAMP) ## Kill server and grower under load, N=200 times, and check that nothing is lost
	$(BIN)/python tests/support/torture.py $(or $(N),200)

cluster-torture: $(STAMP) ## Kill, stop and cut off two servers on one PostgreSQL, N=200 rounds, and check that nothing is lost
	$(BIN)/python tests/support/cluster_torture.py $(or $(N),200)

fuzz: $(STAMP) ## Feed every RPC N=10000 mutated messages
	$(BIN)/python tests/support/fuzz.py $(or $(N),10000)

power-cuts: $(STAMP) ## Cut the power N=2000 times in the writes of a server under load, and check that nothing is lost
	$(BIN)/python tests/support/power_cuts.py $(or $(N),2000)

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
	rm -rf $(VENV) $(PEERS_VENV) $(FLOORS_VENV) build dist src/*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
	rm -f kernels/*.so

define check_python
$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
    echo "Quercus needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) --version 2>&1)." \
         "Name another with: make PYTHON=python3.12 ..." >&2; exit 1; }
endef

# uv unpacks with all cores what pip unpacks with one; where it cannot be had, or finds no package, pip installs (its
# 25.1 is the first that knows groups).
PIP_INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check
define install
$(PIP_INSTALL) uv > /dev/null 2>&1 && $(BIN)/uv pip install --quiet --python $(BIN)/python $(1) 2> /dev/null \
    || { $(PIP_INSTALL) 'pip>=25.1' && $(PIP_INSTALL) $(1); }
endef

# The kernels are built first, for then the progress shows; the installation finds them, and what builds them, there.
COMPILER = $(shell command -v $(firstword $(CXX)) c++ g++ clang++ | head -n 1)
define build_kernels
$(call install,'setuptools>=77' 'nanobind>=3.1' 'numpy>=2.0' $(if $(COMPILER),,'ziglang>=0.15'))
$(BIN)/python setup.py -q build_ext --inplace
endef

# A stamp is written last: an interrupted installation is taken up again, a finished one is not repeated. Sources of
# kernels that have changed are compiled again.
INSTALLED = pyproject.toml setup.py $(wildcard kernels/*.py kernels/*.?pp kernels/*/*.hpp)
$(DEMO_STAMP): $(INSTALLED)
	@$(check_python)
	@echo "Installing what a server and its demo need into $(VENV) (once; about 0.5 GB, some minutes) ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(build_kernels)
	@$(call install,--no-build-isolation --editable '.[demo]')
	@touch $@

$(STAMP): $(INSTALLED)
	@$(check_python)
	@echo "Installing what developers need into $(VENV) (once; about 1.2 GB, some minutes) ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(build_kernels)
	@$(call install,--no-build-isolation --group dev --editable '.[all]')
	@touch $(DEMO_STAMP) $@

floors: $(STAMP) ## Test Quercus on the oldest releases that pyproject.toml allows, in an environment of its own
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python $(FLOORS_VENV)
	$(BIN)/uv pip compile --quiet --resolution lowest-direct --no-header --no-annotate \
	    $(addprefix --extra ,$(FLOORS_EXTRAS)) pyproject.toml --output-file $(FLOORS_VENV)/floors.txt
	$(BIN)/uv pip install --quiet --python $(FLOORS_VENV)/bin/python -r $(FLOORS_VENV)/floors.txt
	$(BIN)/uv pip install --quiet --python $(FLOORS_VENV)/bin/python -c $(FLOORS_VENV)/floors.txt $(FLOORS_TOOLS)
	$(BIN)/uv pip install --quiet --python $(FLOORS_VENV)/bin/python --no-deps --no-build-isolation --editable .
	$(FLOORS_VENV)/bin/python -m pytest -q -n 2 -m "not slow" -o filterwarnings=default -p no:cacheprovider \
	    -k "$(FLOORS_LEFT_OUT)" $(FLOORS_TESTS)

examples: $(STAMP) ## Write the published retry policy, and run the clients in other languages (npm, Go)
	$(BIN)/python -c 'import json; from quercus.client.retrying import service_config as c; print(json.dumps(c(), indent=2))' \
	    > examples/service_config.json
	$(BIN)/python -m pytest -q tests/integration/docs/test_examples.py

# Tools of a release that developers do not need.
RELEASE_TOOLS := $(VENV)/release
$(RELEASE_TOOLS)/release.stamp:
	@$(call install,--target $(RELEASE_TOOLS) twine pyroma pip-audit pip-licenses helm-python-sdk kubernetes-validate)
	@touch $@

release: released ## Build wheel and sdist, check them and what they depend on, and say what to do next
	rm -rf dist
	$(BIN)/python -m build --outdir dist .
	PYTHONPATH=$(RELEASE_TOOLS) $(BIN)/python -m twine check --strict dist/*
	PYTHONPATH=$(RELEASE_TOOLS) $(BIN)/python -m pyroma --min 9 dist/*.tar.gz
	$(MAKE) audit
	@version=$$($(BIN)/python -c 'import tomllib; print(tomllib.load(open("pyproject.toml", "rb"))["project"]["version"])'); \
	    echo; echo "Built and checked. Next, in this order:"; \
	    echo "  git commit proto/released.binpb   # if git status names it"; \
	    echo "  make release-checks"; \
	    echo "  git tag --sign v$$version && git push origin v$$version"; \
	    echo "  pipx run cibuildwheel --platform linux   # and macos, windows: wheels of all platforms"; \
	    echo "  $(BIN)/python -m twine upload dist/*.tar.gz wheelhouse/*.whl"

chart: $(STAMP) $(RELEASE_TOOLS)/release.stamp ## Render the chart for Kubernetes by Helm's engine, and compare it with the schemas
	PYTHONPATH=$(RELEASE_TOOLS) $(BIN)/python -m pytest -q tests/integration/deploy/test_chart.py

# Advisories against what is installed (PyPI has them), and the licence of each package.
audit: $(STAMP) $(RELEASE_TOOLS)/release.stamp ## List known weaknesses and the licences of dependencies
	mkdir -p build && $(BIN)/uv pip freeze --python $(BIN)/python --exclude-editable > build/audited.txt
	PYTHONPATH=$(RELEASE_TOOLS) $(BIN)/python -m pip_audit --strict --no-deps --disable-pip --requirement build/audited.txt
	PYTHONPATH=$(RELEASE_TOOLS) $(BIN)/python -m piplicenses --python $(BIN)/python --order license

# What does not fit the quarter of an hour of continuous integration: targets above, each of which can be run alone.
release-checks: $(STAMP) ## Before a release: all trials, about two hours (CHECKS="torture fuzz": some; N=5: small ones)
	$(BIN)/python tests/support/release_checks.py $(CHECKS)

$(GENERATOR_STAMP):
	@$(call install,--target $(GENERATOR) --no-deps grpcio-tools==$(GENERATOR_VERSION))
	@touch $@

$(PEERS_STAMP): bench/requirements.txt | $(STAMP)
	@echo "Installing the peers that bench/ measures beside Quercus into $(PEERS_VENV) (once) ..."
	@command -v java > /dev/null || echo "There is no Java, so MOA's forests will not be measured:" \
	    "on Debian, apt-get install --no-install-recommends default-jre-headless"
	@test -x $(PEERS_VENV)/bin/python || $(PYTHON) -m venv $(PEERS_VENV)
	@$(PIP_INSTALL) uv > /dev/null 2>&1 \
	    && $(BIN)/uv pip install --quiet --python $(PEERS_VENV)/bin/python -r $< 2> /dev/null \
	    || $(PEERS_VENV)/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	@touch $@
