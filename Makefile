# Everything sets itself up in .venv: Python 3.11 or newer and make are all that a machine needs.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --quiet --disable-pip-version-check --no-input
LOCKED := $(PIP) install --require-hashes --no-deps -r

MADE    := $(VENV)/.made
RUN     := $(VENV)/.run
TEST    := $(VENV)/.test
CHECK   := $(VENV)/.check
PROJECT := .editable/.installed

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.SUFFIXES:
.PHONY: help demo test fuzz test-real test-whatif test-real-prometheus test-real-collector prometheus otelcol check bench bench-search bench-engines soak clean requirements

help:
	@echo "make demo          real turns under every recall policy, and the table measured from their metrics"
	@echo "make test          all tests that need Python only"
	@echo "make fuzz          the property tests, with new examples and ten times as many (TESTS=tests/recall)"
	@echo "make test-real     tests on real outside programs and package registries (-prometheus, -collector, -jaeger, -browser: these alone)"
	@echo "make test-whatif   predictions of what-if against 936 real turns (two minutes)"
	@echo "make otelcol       the OpenTelemetry Collector of these tests, in build/otelcol (needs Go)"
	@echo "make soak          memory under change by two processes, for SECONDS=600 (SEED=1 makes the same changes again)"
	@echo "make check         ruff, mypy, pyright and the import contracts"
	@echo "make bench         the benchmarks, as ratios within one run (a quarter of an hour)"
	@echo "make bench-search  the search alone, at 1,000, 10,000 and 100,000 notes (NOTES=\"1000 10000\")"
	@echo "make bench-engines full-text engines side by side (SIZES=\"10000 100000\")"
	@echo "make corpus        what the search reaches on the labelled corpus; corpus-curve writes it into docs/ranking.md"
	@echo "make dashboards    write the generated files below dashboards/ anew"
	@echo "make dashboards-preview   the dashboards with figures of real traffic, as pictures in build/preview"
	@echo "make docs          write the generated parts of docs/*.md anew"
	@echo "make requirements  write requirements/*.txt anew (UPGRADE=--upgrade takes newer versions)"
	@echo "make clean         remove .venv and everything else that was made"

demo: $(PROJECT)
	@$(BIN)/recallscope compare

test: $(PROJECT) $(TEST)
	@$(BIN)/pytest -q -m "not real"

fuzz: $(PROJECT) $(TEST)
	@$(BIN)/pytest -q -m "hypothesis and not real" --timeout 1800 --hypothesis-profile=searching $(TESTS)

test-real: $(PROJECT) $(TEST) prometheus otelcol jaeger chromium
	@$(BIN)/pytest -q -m real

test-whatif: $(PROJECT) $(TEST)
	@$(BIN)/pytest -q -m real tests/real/test_whatif.py

test-real-prometheus: $(PROJECT) $(TEST) prometheus
	@$(BIN)/pytest -q -m real tests/real/test_prometheus.py tests/real/test_rules.py tests/real/test_live_traffic.py

test-real-collector: $(PROJECT) $(TEST) prometheus otelcol
	@$(BIN)/pytest -q -m real tests/real/test_collector*.py

test-real-jaeger: $(PROJECT) $(TEST) jaeger
	@$(BIN)/pytest -q -m real tests/real/test_jaeger.py

prometheus:
	@command -v prometheus >/dev/null || { echo "installing prometheus" && apt-get update -qq && \
	  apt-get install -qq -y --no-install-recommends prometheus >/dev/null; } || { \
	  echo "The tests need the program prometheus on the path; install it, then type make $(MAKECMDGOALS)." >&2; exit 1; }

OTELCOL := build/otelcol/otelcol
otelcol: $(OTELCOL)

$(OTELCOL): tests/otelcol/go.mod tests/otelcol/go.sum tests/otelcol/main.go
	@command -v go >/dev/null || { echo "The tests need an OpenTelemetry Collector, which is built with Go 1.26 or newer:" \
	  "install Go, then type make $(MAKECMDGOALS)." >&2; exit 1; }
	@echo "building the collector of the tests (minutes the first time, kept in build/otelcol)"
	@mkdir -p $(@D)
	@cd tests/otelcol && CGO_ENABLED=0 GOTOOLCHAIN=local timeout 1800 \
	  go build -mod=readonly -buildvcs=false -trimpath -ldflags="-s -w" -o ../../$@ . || { \
	  echo "The collector of the tests was not built within half an hour, or not at all; see above." >&2; exit 1; }

.PHONY: test-real-jaeger jaeger
JAEGER := build/jaeger/all-in-one
jaeger: $(JAEGER)

$(JAEGER): tests/jaeger/go.mod tests/jaeger/go.sum
	@command -v go >/dev/null || { echo "The tests need a Jaeger, which is built with Go 1.26 or newer:" \
	  "install Go, then type make $(MAKECMDGOALS)." >&2; exit 1; }
	@echo "building the Jaeger of the tests (minutes the first time, kept in build/jaeger)"
	@mkdir -p $(@D)
	@cd tests/jaeger && CGO_ENABLED=0 GOTOOLCHAIN=local timeout 1800 go build -mod=readonly -buildvcs=false \
	  -ldflags="-s -w" -o ../../$@ github.com/jaegertracing/jaeger/cmd/all-in-one || { \
	  echo "The Jaeger of the tests was not built within half an hour, or not at all; see above." >&2; exit 1; }

corpus: $(PROJECT)
	@$(BIN)/python tests/corpus/table.py

corpus-curve: $(PROJECT)
	@$(BIN)/python tests/corpus/table.py --write

corpus-rules: $(PROJECT)
	@$(BIN)/python tests/corpus/ablation.py

bench: $(PROJECT) $(TEST)
	@$(BIN)/python tests/bench/run.py

bench-search: $(PROJECT) $(TEST)
	@$(BIN)/python tests/bench/search.py $(NOTES)

SIZES   ?= 10000
ENGINES := build/engines
bench-engines: $(PROJECT) $(TEST) $(ENGINES)/.made
	@PYTHONPATH=$(ENGINES) $(BIN)/python tests/bench/engines.py $(SIZES)

$(ENGINES)/.made: $(MADE)
	@echo "installing the engines that are compared"
	@$(PIP) install --upgrade --target $(ENGINES) tantivy==0.27.0 bm25s==0.3.16
	@touch $@

SECONDS ?= 600
soak: $(PROJECT) $(TEST)
	@$(BIN)/python tests/e2e/soak.py $(SECONDS) $(SEED)

check: $(PROJECT) $(CHECK)
	@echo "ruff: rules"
	@$(BIN)/ruff check --quiet .
	@echo "ruff: format"
	@$(BIN)/ruff format --quiet --check .
	@echo "mypy"
	@$(BIN)/mypy --no-error-summary
	@echo "pyright"
	@PYRIGHT_PYTHON_IGNORE_WARNINGS=1 $(BIN)/pyright
	@echo "import contracts"
	@$(BIN)/lint-imports --no-logo

# Set-up: a stamp file for each step, so that a step runs again only when what it reads has changed.

$(MADE):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Recallscope needs Python 3.11 or newer, and '$(PYTHON)' is not that:" \
	    "$$($(PYTHON) --version 2>&1 || true)." >&2; \
	  echo "Name another one, for instance: make $(or $(MAKECMDGOALS),demo) PYTHON=python3.12" >&2; exit 1; }
	@echo "making $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@touch $@

$(RUN): requirements/run.txt $(MADE)
	@echo "installing what Recallscope needs"
	@$(LOCKED) requirements/run.txt
	@touch $@

$(TEST): requirements/test.txt $(RUN)
	@echo "installing what the tests need"
	@$(LOCKED) requirements/test.txt
	@touch $@

$(CHECK): requirements/check.txt $(TEST)
	@echo "installing what the checks need"
	@$(LOCKED) requirements/check.txt
	@touch $@

$(PROJECT): pyproject.toml hatch_build.py $(RUN)
	@echo "installing Recallscope, linked to this folder"
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

# The pins carry hashes and no address, so that an install is repeatable from any index.

UV      := build/uv/bin/uv
COMPILE := $(UV) pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-header --no-annotate \
	--python-version 3.11 $(UPGRADE) pyproject.toml

requirements: $(UV)
	@echo "resolving"
	@$(COMPILE) --group build -o requirements/run.txt
	@$(COMPILE) --group build --group test -c requirements/run.txt -o requirements/test.txt
	@$(COMPILE) --group build --group test --group check -c requirements/test.txt -o requirements/check.txt

$(UV):
	@echo "making build/uv"
	@$(PYTHON) -m venv build/uv
	@build/uv/bin/python -m pip --quiet --disable-pip-version-check install uv==0.13.9

.PHONY: dashboards
dashboards: $(PROJECT) $(TEST)
	@$(BIN)/python -W ignore::DeprecationWarning -m recallscope.dashboards.generate

.PHONY: dashboards-preview test-real-browser chromium
dashboards-preview: $(PROJECT) $(TEST) prometheus otelcol chromium
	@PYTHONPATH=tests/real $(BIN)/python tests/preview/preview.py

test-real-browser: $(PROJECT) $(TEST) prometheus otelcol chromium
	@$(BIN)/pytest -q -m real tests/real/test_browser*.py

chromium:
	@command -v chromium >/dev/null || { echo "installing chromium" && apt-get update -qq && \
	  apt-get install -qq -y --no-install-recommends chromium >/dev/null; } || { \
	  echo "The tests need the program chromium on the path; install it, then type make $(MAKECMDGOALS)." >&2; exit 1; }

.PHONY: docs
docs: $(PROJECT)
	@$(BIN)/python docs/generate.py

clean:
	@rm -rf $(VENV) .editable build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
