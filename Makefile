# The same commands for people and for CI. Each does its own set-up, in a virtual environment of its own.
PYTHON ?= python3
VENV ?= .venv
BASE_VENV ?= .venv-base
BIN := $(VENV)/bin
DATA ?=
TEST_WORKERS ?= 2
# the tests' files lie in memory where that has room and may run programs: they sync thousands of times, as indexes do
TEST_TMP = $(or $(TMPDIR),$(shell file=$$(mktemp /dev/shm/XXXXXX 2>/dev/null) && echo exit >$$file && \
	chmod +x $$file && $$file 2>/dev/null && [ $$(df -Pk /dev/shm | awk 'NR == 2 {print $$4}') -gt 8000000 ] && \
	echo /dev/shm; rm -f "$$file"),/tmp)
PIP_INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: demo demo-evidence test test-built soak lint docs dist bench clean

demo: $(VENV)/.demo  ## compare eight configurations on the collection that comes with the package
	$(BIN)/nlp-retrieval demo --output demo-output

demo-evidence: $(VENV)/.demo  ## audit a report with fifteen citations against the twelve sources that come with the package
	$(BIN)/nlp-retrieval evidence demo --output demo-output

# each process of the tests computes in one thread: there are as many of them as cores
PYTEST = OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 TMPDIR=$(TEST_TMP) $(BIN)/python -m pytest

test: $(VENV)/.dev  ## all tests but those of make test-built
	$(PYTEST) -n $(TEST_WORKERS) --dist worksteal --ignore tests/distribution

# the last command is of a CPU without AVX-512, which one with AMX cannot play: torch goes on in its 16 bits, and takes 20 times as long
test-built: dist $(BASE_VENV)/.base  ## the wheel and the sdist, each installed without extras, and encoders on a CPU with AVX2 alone
	for built in dist/*.whl dist/*.tar.gz; do \
		$(BASE_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --force-reinstall $$built && \
		$(BASE_VENV)/bin/python tests/base_install/check.py || exit 1; \
	done
	$(PYTEST) tests/distribution
	grep -qs amx_bf16 /proc/cpuinfo || ONEDNN_MAX_CPU_ISA=AVX2 $(PYTEST) \
		tests/encoders/test_sentence_transformer.py tests/encoders/test_colbert.py tests/cli/test_demo.py

soak: $(VENV)/.dev  ## all tests, with the long part: kills, damage, attacks and fuzzing, for hours; writes bench/RELIABILITY.md
	$(BIN)/python -m pytest --soak

lint: $(VENV)/.dev  ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(VENV)/.dev  ## the documentation site, in build/site; a broken link or a warning fails
	$(BIN)/python -m sphinx -W --keep-going --quiet -b html -c docs/site . build/site
	@echo "open build/site/index.html"

dist: $(VENV)/.dev  ## the sdist, and the wheel that is built from it, in dist
	rm -rf dist
	$(BIN)/python -m build --no-isolation . >/dev/null
	$(BIN)/twine check --strict dist/*

bench: $(VENV)/.dev  ## measure the project itself: make bench DATA=path/to/collections
	@test -n "$(DATA)" || { echo "name the folder of collections: make bench DATA=path/to/collections"; exit 2; }
	$(BIN)/python -m bench "$(DATA)"

clean:  ## remove what the commands above made
	rm -rf $(VENV) $(BASE_VENV) demo-output build dist

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# torch by itself first, so that its CPU build is taken where one is at hand
$(VENV)/.demo: setup.cfg constraints.txt | $(BIN)/python
	$(PIP_INSTALL) torch==2.13.0
	$(PIP_INSTALL) --editable '.[demo]'
	touch $@

$(VENV)/.dev: setup.cfg constraints.txt | $(BIN)/python
	$(PIP_INSTALL) torch==2.13.0
	$(PIP_INSTALL) --editable '.[dev]'
	touch $@ $(VENV)/.demo

$(BASE_VENV)/.base: setup.cfg constraints.txt
	$(PYTHON) -m venv $(BASE_VENV)
	$(BASE_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt .
	touch $@
