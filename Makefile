# The commands of this project; what they need is installed into .venv from requirements.lock.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
COMPILED := build/compiled
RELEASE := build/release
# The compiled form is tested where a C compiler and Python's headers are, and always in continuous integration.
COMPILER := $(shell command -v cc >/dev/null && $(PYTHON) -c \
	'import glob, sysconfig; print(*glob.glob(sysconfig.get_path("include") + "/Python.h"))')
PARTS := spark integration interop chaos gateway unit $(if $(COMPILER)$(CI),compiled) fuzz

# Each part reads its tests from bytecode; without it pytest takes them apart again in each.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup run test $(PARTS:%=test-%) check compiled soak release bench kerberos lint format docs generated lock lowest clean

help: ## Show this help
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY) ## Make .venv with everything that is needed

$(READY): requirements.lock pyproject.toml protocol/pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "kafka-dt needs Python 3.11 or newer; name one with PYTHON=/path/to/python3" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable protocol --editable .
	@touch $@

run: $(READY) ## Start ZooKeeper and kafka-dt, make a token, log in with it, show how to use it (PORT=number, 0 is any)
	@$(BIN)/kafka-dt run $(if $(PORT),--port $(PORT))

test: $(READY) ## Run the tests (real ZooKeeper, brokers and clients where Java is at hand)
	@rm -f build/test-*.log
	@$(MAKE) --no-print-directory --keep-going -j 4 $(PARTS:%=test-%) || { \
		grep -hE '^(FAILED|ERROR) tests/' build/test-*.log >&2; exit 1; }

# Four parts run at a time, the longest first: tests with servers wait half of their time. Each part ends with its ten
# slowest tests. Parts without servers of ours run where the others leave time, since some of the others break off what
# takes too long; Spark gets some time even so, or it would be the last one and run alone.
test-unit test-fuzz: NICE = nice
test-spark: NICE = nice -n 4
test-spark: CHOICE = tests/integration/pipeline
test-integration: CHOICE = tests/integration --ignore tests/integration/pipeline
test-interop: CHOICE = tests/interop --ignore tests/interop/gateway
test-gateway: CHOICE = tests/interop/gateway
test-chaos: CHOICE = tests/chaos
test-unit: CHOICE = tests/unit
test-fuzz: CHOICE = tests/fuzz
test-compiled: CHOICE = tests/unit/protocol
test-compiled: NICE = PYTHONPATH=$(CURDIR)/$(COMPILED) nice
test-compiled: $(COMPILED)/.ready

$(PARTS:%=test-%): test-%: $(READY)
	@mkdir -p build
	@$(NICE) $(BIN)/python -m pytest --durations=10 $(CHOICE) >build/test-$*.log 2>&1; status=$$?; cat build/test-$*.log; exit $$status

check: $(READY) ## Lint, and run the unit tests of what changed since main
	@$(BIN)/ruff format --check -q . && $(BIN)/ruff check -q . && $(BIN)/mypy && $(BIN)/lint-imports >/dev/null
	@$(BIN)/python -m checks.prose
	@$(BIN)/python -m checks.changed | xargs -r $(BIN)/python -m pytest -q -n auto

# The same source as a compiled wheel, in a folder that stands before the checkout on Python's path.
compiled: $(COMPILED)/.ready ## Compile the protocol by mypyc into build/compiled (needs a C compiler and Python's headers)

$(COMPILED)/.ready: $(READY) protocol/pyproject.toml $(shell find protocol -name '*.py')
	@rm -rf $(COMPILED) && mkdir -p $(COMPILED)
	cd protocol && $(abspath $(BIN))/python -m hatchling build --target sdist --directory ../$(COMPILED)
	HATCH_BUILD_HOOKS_ENABLE=true $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps \
		--no-build-isolation --target $(COMPILED) $(COMPILED)/*.tar.gz
	@touch $@

soak: $(READY) $(if $(COMPILER)$(CI),$(COMPILED)/.ready) ## Run the long tests: faults, fuzzing, the gateway in front of Kafka 4.x and of 3.9, the compiled form
	KAFKA_DT_TEST_SOAK=1 $(BIN)/python -m pytest tests/fuzz tests/chaos
	KAFKA_DT_TEST_SOAK=1 $(BIN)/python -m pytest tests/unit
	KAFKA_DT_TEST_SOAK=1 $(BIN)/python -m pytest -m soak tests/integration
	$(if $(COMPILER)$(CI),KAFKA_DT_TEST_SOAK=1 PYTHONPATH=$(CURDIR)/$(COMPILED) $(BIN)/python -m pytest tests/unit/protocol)
	$(if $(COMPILER)$(CI),PYTHONPATH=$(CURDIR)/$(COMPILED) $(BIN)/python -m pytest tests/integration/test_node_*.py)
	$(if $(COMPILER)$(CI),PYTHONPATH=$(CURDIR)/$(COMPILED) $(BIN)/python -m pytest -m 'not spark' tests/interop tests/chaos tests/fuzz)
	KAFKA_DT_TEST_SOAK=1 $(BIN)/python -m pytest tests/interop/test_manual.py
	KAFKA_DT_TEST_SOAK=1 $(BIN)/python -m pytest tests/interop/gateway tests/interop/kraft
	KAFKA_DT_TEST_SOAK=1 KAFKA_DT_TEST_UPSTREAM=3.9 $(BIN)/python -m pytest tests/interop/gateway tests/interop/kraft
	KAFKA_DT_TEST_SOAK=1 $(BIN)/python -m pytest -m soak tests/interop --ignore tests/interop/test_manual.py \
		--ignore tests/interop/gateway --ignore tests/interop/kraft
	$(BIN)/python -m tests.support.clients # the README's table of clients
	$(BIN)/python -m docs.generators

# What builds a release is locked and has an environment of its own, so that its bytes depend on nothing else.
release: $(RELEASE)/.ready ## Make a release of this commit in dist/, all but the upload (KEY=file signs it)
	@$(RELEASE)/bin/python -m release $(if $(KEY),--key $(KEY))

$(RELEASE)/.ready: requirements-release.lock
	$(PYTHON) -m venv $(RELEASE)
	$(RELEASE)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-release.lock
	@touch $@

bench: $(READY) $(if $(COMPILER),$(COMPILED)/.ready) ## Measure beside a real broker (ONLY=name,... ROUNDS=n QUICK=1 ARGS=...; needs a JDK; two hours)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-bench.lock
	$(if $(COMPILER),PYTHONPATH=$(CURDIR)/$(COMPILED)) $(BIN)/python -m benchmarks $(if $(ONLY),--only $(ONLY)) $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(QUICK),--quick) $(ARGS)

kerberos: $(READY) ## Add the extra for Kerberos to .venv (needs a C compiler and Kerberos' headers: libkrb5-dev)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-kerberos.lock

lint: $(READY) ## Style, types and import directions of the whole tree; known vulnerabilities of locked packages
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/ruff check --preview --select F811 . # names that are imported twice, once for the types
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m checks.prose
	$(BIN)/python -m checks.dependencies

format: $(READY) ## Let ruff lay out the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: generated ## Build the manual into docs/_build/html
	$(BIN)/sphinx-build --fail-on-warning --keep-going -b html docs docs/_build/html

# Packages that the server's are said to need and never import: rich colours code and shows Markdown with them, cffi reads
# C declarations.
UNUSED := pygments markdown-it-py mdurl pycparser

lock: ## Resolve the dependencies again (needs uv)
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --no-annotate --no-header --no-emit-package kafka-dt-protocol pyproject.toml \
		--extra embedded --extra clients --extra otel --extra spark --group build --group compile --group lint --group test --group docs -o requirements.lock
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --no-annotate --no-header --no-emit-package kafka-dt-protocol pyproject.toml \
		--constraint requirements.lock --extra audit-kafka $(patsubst %,--no-emit-package %,$(UNUSED)) -o requirements-server.lock
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --no-annotate --no-header --constraint requirements.lock \
		protocol/pyproject.toml --group pyproject.toml:build --group pyproject.toml:compile -o requirements-build.lock
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --no-annotate --no-header --constraint requirements.lock \
		protocol/pyproject.toml --group pyproject.toml:build --group pyproject.toml:compile --group pyproject.toml:release \
		-o requirements-release.lock
	echo kubernetes-validate | uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --no-annotate --no-header --constraint requirements.lock - -o requirements-kubernetes.lock
	echo pysigma-backend-sqlite | uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --no-annotate --no-header --constraint requirements.lock - -o requirements-sigma.lock
	echo matplotlib | uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --no-annotate --no-header --constraint requirements.lock - -o requirements-bench.lock
	echo gssapi | uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --no-annotate --no-header --constraint requirements.lock - -o requirements-kerberos.lock

lowest: ## Run the unit tests with the lowest versions that pyproject.toml allows (needs uv)
	@mkdir -p build
	uv pip compile --quiet --no-config --python-version 3.11 --resolution lowest-direct --upgrade --no-annotate --no-header \
		--no-emit-index-url --no-emit-package kafka-dt-protocol pyproject.toml \
		--extra embedded --extra clients --extra spark -o build/lowest.txt
	uv venv --quiet --clear --python 3.11 build/lowest
	uv pip install --quiet --python build/lowest -r build/lowest.txt --group build --group test --group docs
	uv pip install --quiet --python build/lowest --no-deps --no-build-isolation --editable protocol --editable .
	build/lowest/bin/python -m pytest -n auto tests/unit

generated: $(READY) ## Write the pages of the manual that are made of the code
	$(BIN)/python -m docs.generators

clean: ## Remove what the other targets made
	rm -rf $(VENV) docs/_build .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
