# Everything from a bare clone: `make demo` wants Python 3.11 or newer with venv; `make test` also wants Java 17 with
# Maven for a real Kafka (or NEARSTREAM_KAFKA pointing to one). A Redis comes from PATH or from a package.

PYTHON ?= python3
BIN := .venv/bin
STACK ?= build/stack
SIGNER := $(wildcard streams/*.[ch])
SPACE := $() $()

.PHONY: demo test faults soak fuzz check format stack stack-stop bench clean help

help: ## what there is
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

demo: .venv/installed ## real documents through the main job, in this process; known against seen relations
	@$(BIN)/nearstream demo

test: .venv/installed-test ## every test, on a real Kafka and a real Redis that are started and stopped here
	@$(BIN)/pytest

faults: .venv/installed-test ## every fault against a single process; FAULTS="f04 f12" DOCUMENTS=20000 SEED=7 choose
	@DOCUMENTS=$(or $(DOCUMENTS),20000) $(BIN)/pytest tests/fault -q -o timeout=1800 -m "not soak" \
		$(if $(FAULTS),-k "$(subst $(SPACE), or ,$(strip $(FAULTS)))")

soak: .venv/installed-test ## an hour of random faults; SOAK_SECONDS=600 for ten minutes
	@$(BIN)/pytest tests/fault -q -m soak

fuzz: .venv/installed-test ## ten minutes of random texts through both ways of signing; FUZZ_SECONDS=60 for one
	@$(BIN)/python -m tests.fuzz_native --seconds $(or $(FUZZ_SECONDS),600)

check: .venv/installed-dev ## linters, types, import contracts, dependencies
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/deptry .

bench: .venv/installed-bench ## races against other libraries and the sources; JSON in build/, 1 if a gate is missed
	@mkdir -p build
	@$(BIN)/python -m benchmarks.signing > build/bench-signing.json; signing=$$?; \
		$(BIN)/python -m benchmarks.ld > build/bench-ld.json && exit $$signing

format: .venv/installed-dev ## let ruff mend what it can
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

stack: .venv/installed-test ## a local Kafka and Redis in the background: eval "$(make -s stack)"
	@$(BIN)/python -m workers.local_stack start --folder $(STACK)

stack-stop: .venv/installed-test ## stop them; their data stay in build/stack
	@$(BIN)/python -m workers.local_stack stop --folder $(STACK)

clean: ## remove what was built here; a running stack is stopped first
	@if [ -x $(BIN)/python ] && [ -d $(STACK) ]; then $(BIN)/python -m workers.local_stack stop --folder $(STACK); fi
	@rm -rf .venv build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache

.venv/installed: pyproject.toml $(SIGNER) | .venv/bin/python
	@$(BIN)/pip install --quiet --editable .
	@touch $@

.venv/installed-test: pyproject.toml $(SIGNER) | .venv/bin/python
	@$(BIN)/pip install --quiet --editable '.[test]'
	@touch $@ .venv/installed

.venv/installed-dev: pyproject.toml $(SIGNER) | .venv/bin/python
	@$(BIN)/pip install --quiet --editable '.[dev]'
	@touch $@ .venv/installed .venv/installed-test

.venv/installed-bench: pyproject.toml $(SIGNER) | .venv/bin/python
	@$(BIN)/pip install --quiet --editable '.[bench]'
	@touch $@ .venv/installed

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Python 3.11 or newer expected, this is " + sys.version.split()[0] + ": make PYTHON=python3.12 ...")'
	@echo "making .venv; a minute, once" >&2
	@$(PYTHON) -m venv .venv
