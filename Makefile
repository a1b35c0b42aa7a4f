# Each target does its own set-up. Written for GNU make 3.81, which is what macOS has.

VENV := .venv
PATCH ?= patches/plasma.weft
MINUTES ?= 60

.DEFAULT_GOAL := help
.PHONY: help run test test-all test-windows windows-tests lint type bench gallery soak listen clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo 'ARGS="…" goes to weft (run, bench), pytest (test, test-all) or names patches (gallery); PYTHON=… names the Python to build on.'

# Without these packages there is no window, but all else runs; setup says what is missing.
run: $(VENV)/.ready ## play PATCH=… (default: patches/plasma.weft)
	@scripts/setup system run || true
	$(VENV)/bin/weft run $(ARGS) $(PATCH)

# Tests start hundreds of processes, each of which would compile weft for itself if Python were told to keep no bytecode.
# Four workers keep two processors busy, since many tests mostly wait.
PYTEST := PYTHONDONTWRITEBYTECODE= scripts/headless --if-needed $(VENV)/bin/pytest -n 4 --dist loadgroup

# Tests that are named in ARGS run, long or not; and -m in ARGS takes the place of this one.
test: $(VENV)/.ready ## run the tests but those that take long, without a display where there is none
	@scripts/setup system run test
	@scripts/setup node
	$(PYTEST) $(if $(findstring tests/,$(ARGS)),,-m 'not long') $(ARGS)

test-all: $(VENV)/.ready ## run all tests; with CI=true, those of make test and one in eight of the rest
	@scripts/setup system run test
	@scripts/setup node
	$(PYTEST) $(ARGS)

# The language on the reference machine, as arrays and as machine code; messages, files, saves, children, films, a window.
WINDOWS_TESTS := tests/windows tests/test_programs.py tests/syntax/test_error_programs.py tests/graph/test_error_programs.py \
	tests/test_platform.py

test-windows: $(VENV)/.ready ## run the tests that tell about Windows, by its Python, under Wine
	@scripts/setup system run test windows
	PYTHON=$(abspath $(VENV))/bin/python scripts/headless --if-needed scripts/windows python -m pytest -p no:cacheprovider --timeout 300 \
		$(if $(findstring tests/,$(ARGS)),,$(WINDOWS_TESTS)) $(ARGS)

windows-tests: # which those are, for Windows itself
	@echo $(WINDOWS_TESTS)

lint: $(VENV)/.ready ## check style and common mistakes
	$(VENV)/bin/ruff check
	$(VENV)/bin/isort --check --quiet benchmarks scripts tests weft

type: $(VENV)/.ready ## check types
	$(VENV)/bin/mypy
	$(VENV)/bin/mypy --platform win32 weft/platform/windows.py weft/platform/own_terminal.py
	$(VENV)/bin/mypy --platform darwin weft/platform/macos.py weft/platform/own_terminal.py

bench: $(VENV)/.ready ## measure every backend on this machine
	@scripts/setup system run || true
	$(VENV)/bin/weft bench $(ARGS)

gallery: $(VENV)/.ready ## write docs/gallery.md and its pictures, and a page for a browser for each patch
	$(VENV)/bin/python scripts/gallery.py $(ARGS)

soak: $(VENV)/.ready ## perform for MINUTES=60 with a save a second, and report how memory grows
	@scripts/setup system run test
	scripts/headless $(VENV)/bin/python -m benchmarks.saves --seconds $$(( $(MINUTES) * 60 )) --control 10 --size 160x90 $(ARGS)

listen: $(VENV)/.ready ## play for 10 minutes with a save a second, and report gaps in the sound
	@scripts/setup system run test
	$(VENV)/bin/python -m benchmarks.listening $(ARGS)

clean: ## remove all that make has made
	rm -rf $(VENV) build dist docs/gallery/pages editors/vscode/node_modules .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.ready: pyproject.toml scripts/setup
	@scripts/setup venv
	@touch $@
