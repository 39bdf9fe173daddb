# make demo: a personal pool from nothing to results.   make test: all the tests.
PYTHON ?= python3
VENV   := .venv
BIN    := $(CURDIR)/$(VENV)/bin
STAMP  := $(VENV)/.installed
NATIVE := $(shell find native -type f -not -name '*.o' 2>/dev/null)

.PHONY: demo test install bytecode manual lint types docs seeds sites fuzz fuzz-parsers fuzz-native families mutants soak bench clean wheel
.DEFAULT_GOAL := install

install: bytecode manual     ## virtual environment with everything built, condor_* in .venv/bin

# Tools start twice as fast from compiled modules, and their users may not be allowed to write them; those that are
# called most have theirs in one file.
bytecode: $(STAMP)
	@$(BIN)/python -m compileall -q condor_actors twisted
	@$(BIN)/python -m condor_actors.tools.bundle

# man finds the pages where the commands are on the PATH; completion: see docs/manual-pages.md.
manual: $(STAMP)
	@$(BIN)/python -P -m condor_actors.tools.manual $(VENV)/share >/dev/null

$(STAMP): setup.cfg setup.py pyproject.toml $(NATIVE)
	./etc/install-system-packages build
	[ -x $(BIN)/python ] || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --upgrade pip setuptools wheel cffi
	$(BIN)/python -m pip install -q --no-build-isolation -e '.[test]'
	touch $(STAMP)

demo: install                ## start a pool, run the examples, show what happens
	$(BIN)/python examples/demo.py

test: install                ## all the tests
	./etc/install-system-packages test
	$(BIN)/python -m tests.harness.compiled
	$(BIN)/python -m pytest -n auto --dist loadfile --durations=20

seeds: install               ## simulated pools of twenty machines, every fault on; always the same ones (SEEDS=number)
	$(BIN)/condor_simulate seeds --first 1 --count $(or $(SEEDS),2000) --machines 20 --workers 2

sites: install               ## the six sites of 1994 as real pools, far from one another and in trouble (JOBS=number SEED=number KEEP=folder)
	./etc/install-system-packages test
	SITES_JOBS=$(or $(JOBS),100) SITES_SEED=$(or $(SEED),1) SITES_KEEP=$(KEEP) \
		$(BIN)/python -m pytest -m soak -s tests/integration/test_six_sites.py

fuzz: fuzz-parsers fuzz-native ## every parser, the native shadow and its journal, a minute each (SECONDS=number, OTHERS=number for all but those that everything goes through, SEED=number)

fuzz-parsers: install
	$(BIN)/python -m tests.fuzz.parsers --seconds $(or $(SECONDS),60) $(if $(OTHERS),--others $(OTHERS)) --seed $(or $(SEED),1)

fuzz-native: install
	$(BIN)/python -m tests.native.fuzz --seconds $(or $(SECONDS),60) --seed $(or $(SEED),1)

families: install           ## random families of processes, moved at random moments (CHECKPOINTS=number SEED=number)
	$(BIN)/python -m tests.native.random_families --checkpoints $(or $(CHECKPOINTS),1000) --seed $(or $(SEED),1)

mutants: install             ## bugs put into the code on purpose, each of which its own tests must notice (ONLY=name)
	./etc/install-system-packages test
	$(BIN)/python -m tests.mutants.runner $(if $(ONLY),--only "$(ONLY)")

soak: install                ## the long runs
	$(BIN)/python -m pytest -m soak --timeout=3600

corpus: install              ## some 190 programs from Debian, moved at random moments; makes docs/corpus.md (CORPUS=--continue)
	./etc/install-system-packages corpus
	$(BIN)/python -m tests.native.corpus_run $(CORPUS)

lint: install
	$(BIN)/ruff check .

types: install
	$(BIN)/mypy -p condor_actors

docs: install
	$(BIN)/mkdocs build --strict

bench: install               ## the table of docs/performance.md
	$(BIN)/python benchmarks/table.py

wheel: install
	$(BIN)/python -m pip wheel -q --no-deps --no-build-isolation -w dist .

clean:
	rm -rf build dist site *.egg-info .mypy_cache .ruff_cache .pytest_cache .demo
