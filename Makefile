# Everything goes through .venv, which the first target that needs it creates. Needs Python 3.11 to 3.13, and make.
PYTHON ?= python3
PORT ?= 8000
VENV := .venv
BIN := $(VENV)/bin
VERSION := $(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')
READY := $(VENV)/.ready-$(VERSION)
BOOK := book/_build/html
QUICK := tests/test_files.py tests/test_model_parts.py tests/test_schedule.py tests/test_loss.py

.DEFAULT_GOAL := help
.PHONY: help book serve epub pdf export test test-chapters test-quick test-slow coverage check format records readme wheel clean

help:  ## list the targets
	@awk -F ':.*## *' '/^[a-z-]+:.*##/ {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13) and "Python 3.11 to 3.13 is needed; say which with: make PYTHON=python3.12")'
	test -f $(VENV)/lib/python$(VERSION)/site-packages/pip/__init__.py || $(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet -e '.[dev]' -c constraints.txt
	touch $@

book: export  ## run every chapter that changed and render the book to book/_build/html
	$(BIN)/jupyter-book build nbs --all -W -n --keep-going --toc $(CURDIR)/book/_toc.yml --config book/_config.yml --path-output book
	@echo "The book: file://$(CURDIR)/$(BOOK)/index.html"

epub: book  ## one EPUB of the chapters, in book/_build/html
	$(BIN)/python -m tools.print_book epub

pdf: book  ## one PDF of them, by Chromium
	$(BIN)/python -m tools.print_book pdf

export: $(READY)  ## write the package from the chapters
	$(BIN)/nbdev_export

serve: book  ## build the book and serve it on http://localhost:8000 (PORT=…)
	$(BIN)/python -m http.server --directory $(BOOK) --bind 127.0.0.1 $(PORT)

AXE := tests/node_modules/.package-lock.json

$(AXE): tests/package-lock.json
	-npm ci --prefix tests --no-audit --no-fund

# Where npm isn't there, or finds no network, the tests that need axe are skipped.
test: $(READY) $(if $(shell command -v npm),$(AXE))  ## run the test suite; pages are tested where the book is built
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile

test-chapters: $(READY)  ## run the chapters' own tests, as make book does, and render nothing
	OMP_NUM_THREADS=1 $(BIN)/nbdev_test --n_workers 2

test-quick: $(READY)  ## the tests that take under a minute together: parts, layers, files
	$(BIN)/python -m pytest $(QUICK)

test-slow: $(READY)  ## run the tests and the cells marked slow
	$(BIN)/nbdev_test --n_workers 1 --flags slow
	$(BIN)/python -m pytest -m slow

coverage: $(READY)  ## the share of the package's lines that the test suite runs
	$(BIN)/python -m coverage run -m pytest
	$(BIN)/python -m coverage combine
	$(BIN)/python -m coverage report

format: $(READY)  ## ruff format, for chapters and hand-written files
	$(BIN)/ruff format .

check: $(READY)  ## ruff (notebooks too), codespell and mypy
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/codespell
	$(BIN)/mypy

records: $(READY)  ## measure again what takes minutes, at a clean commit; names the other records
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.records

readme: $(READY)  ## fill the tables of the README and of the page Results
	$(BIN)/python tools/readme.py

wheel: $(READY)  ## build the wheel to dist/, of what the last commit holds and nothing else
	rm -rf build/tracked && mkdir -p build/tracked
	git -c tar.umask=0022 archive HEAD | tar -xp -C build/tracked
	umask 022 && SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(BIN)/python -m build --wheel --no-isolation --outdir dist build/tracked
	rm -rf build/tracked

clean:  ## remove what was built (not .venv)
	rm -rf book/_build build dist *.egg-info .pytest_cache .ruff_cache .mypy_cache
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +
