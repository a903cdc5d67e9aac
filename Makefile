# Everything from a bare clone. `make demo` needs Python 3.11 or newer with venv. `make test` also needs Java 17 with
# Maven for a real Kafka (or NEARSTREAM_KAFKA with the address of one). Redis comes from a package. `make test-foreign`
# downloads further programs, such as mail servers and a browser, into ~/.cache.

SHELL := bash
.SHELLFLAGS := -o pipefail -c
PYTHON ?= python3
BIN := .venv/bin
STACK ?= build/stack
SIGNER := $(wildcard src/nearstream/streams/native/*.[ch] src/nearstream/streams/native/*/*.h build_backend/*.py)
SPACE := $() $()
# What pip does goes to stderr line by line, because a first install takes minutes, and `make -s stack` is evaluated.
SHOWN = | $(BIN)/python tests/devstack/shown.py
WRITABLE = test -w . || { echo "cannot write $(CURDIR): copy the checkout to a folder of yours" >&2; exit 1; }

export PYTHONDONTWRITEBYTECODE := # what was compiled once need not be compiled by each command that tests start

.PHONY: demo test test-foreign faults servers soak simulate contract docs sbom release fuzz sanitize check format stack stack-stop bench clean help

help: ## list these commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

demo: .venv/installed ## scan the example documents in one process
	@$(BIN)/nearstream demo

test: .venv/installed-test ## run the tests that need Kafka and Redis alone, which are started here: JOBS=1 for one at a time
	@$(BIN)/pytest -n $(or $(JOBS),4) --dist loadfile --no-loadscope-reorder

test-foreign: .venv/installed-test ## run the tests with mail servers, browsers and other programs: ONLY="chart sinks"
	@$(BIN)/pytest -n $(or $(JOBS),4) --dist loadfile --no-loadscope-reorder -o timeout=1200 -m foreign \
		$(if $(ONLY),-k "$(subst $(SPACE), or ,$(strip $(ONLY)))")

faults: .venv/installed-test ## run every fault and compare with a single process: FAULTS="f04 f12" DOCUMENTS=20000 SEED=7
	@DOCUMENTS=$(or $(DOCUMENTS),20000) $(BIN)/pytest tests/fault -q -o timeout=1800 -m "not soak" \
		$(if $(FAULTS),-k "$(subst $(SPACE), or ,$(strip $(FAULTS)))")

servers: .venv/installed-test ## run the tests of the index on each Redis and Valkey that packages give: SERVERS="Redis 8"
	@$(BIN)/python -m tests.devstack.redis_servers $(if $(SERVERS),"$(SERVERS)")

soak: .venv/installed-test ## run random faults for an hour: SOAK_SECONDS=600 for ten minutes
	@$(BIN)/pytest tests/fault -q -m soak

simulate: .venv/installed-test ## play the protocol of matching under an adversary: SCHEDULES=100000 SEED=1
	@$(BIN)/python -m tests.simulation --schedules $(or $(SCHEDULES),100000) --seed $(or $(SEED),1)

contract: .venv/installed-test ## write anew what is made of messages: their schemas, OpenAPI, example events
	@$(BIN)/python -m tests.support.event_examples

docs: .venv/installed-test ## build the documentation site in build/site, and check that a broken link ends the build
	@$(BIN)/python -m tests.devstack.site
	@$(BIN)/pytest tests/project/test_site.py -q -n 0 -m "foreign or not foreign"

sbom: .venv/installed-test ## write build/nearstream.cdx.json, a CycloneDX list of what the image holds
	@$(BIN)/python -m tests.devstack.parts

release: .venv/installed-test ## write what a release has to dist/: wheels for x86-64 and aarch64, sources, list of parts, notes
	@$(BIN)/python -m tests.devstack.release dist

fuzz: .venv/installed-test ## compare the C code with the reference on random texts for ten minutes: FUZZ_SECONDS=60 for one
	@$(BIN)/python -m tests.fuzz_native --seconds $(or $(FUZZ_SECONDS),600)

sanitize: .venv/installed-test ## fuzz the C code for a minute under AddressSanitizer and UBSan: FUZZ_SECONDS=600
	@CFLAGS="-g -fsanitize=address,undefined -fno-sanitize-recover=all" $(BIN)/pip install --quiet --editable .
	@ASAN_OPTIONS=detect_leaks=0 LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libubsan.so)" \
		$(BIN)/python -m tests.fuzz_native --seconds $(or $(FUZZ_SECONDS),60); found=$$?; \
		$(BIN)/pip install --quiet --editable . && exit $$found

check: .venv/installed-dev ## run linters, type checker, import contracts, dependency check
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/pytest -q --durations=0 tests/project/test_language.py
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/deptry .

bench: .venv/installed-bench ## compare the speed with other libraries, write JSON to build/, fail if a gate is missed
	@mkdir -p build
	@$(BIN)/python -m benchmarks.speed.signing > build/bench-signing.json

format: .venv/installed-dev ## let ruff fix and format the code
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

stack: .venv/installed-test ## start a local Kafka and Redis in the background: eval "$(make -s stack)"
	@$(BIN)/python -m tests.devstack start --folder $(STACK)

stack-stop: .venv/installed-test ## stop them, the data stay in build/stack
	@$(BIN)/python -m tests.devstack stop --folder $(STACK)

clean: ## stop the stack and remove what was built
	@if [ -x $(BIN)/python ] && [ -d $(STACK) ]; then $(BIN)/python -m tests.devstack stop --folder $(STACK); fi
	@rm -rf .venv build dist src/*.egg-info src/nearstream/streams/native/*.so \
		.pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache

.venv/installed: pyproject.toml $(SIGNER) | .venv/bin/python
	@$(WRITABLE)
	@echo "installing . into .venv, which takes some minutes the first time" >&2
	@$(BIN)/pip install --disable-pip-version-check --editable . $(SHOWN)
	@touch $@

.venv/installed-test: pyproject.toml $(SIGNER) | .venv/bin/python
	@$(WRITABLE)
	@echo "installing .[test] into .venv, which takes some minutes the first time" >&2
	@$(BIN)/pip install --disable-pip-version-check --editable '.[test]' $(SHOWN)
	@touch $@ .venv/installed

.venv/installed-dev: pyproject.toml $(SIGNER) | .venv/bin/python
	@$(WRITABLE)
	@echo "installing .[dev] into .venv, which takes some minutes the first time" >&2
	@$(BIN)/pip install --disable-pip-version-check --editable '.[dev]' $(SHOWN)
	@touch $@ .venv/installed .venv/installed-test

.venv/installed-bench: pyproject.toml $(SIGNER) | .venv/bin/python
	@$(WRITABLE)
	@echo "installing .[bench] into .venv, which takes some minutes the first time" >&2
	@$(BIN)/pip install --disable-pip-version-check --editable '.[bench]' $(SHOWN)
	@touch $@ .venv/installed

.venv/bin/python:
	@$(WRITABLE)
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Python 3.11 or newer expected, this is " + sys.version.split()[0] + ": make PYTHON=python3.12 ...")'
	@echo "making .venv" >&2
	@$(PYTHON) -m venv .venv
