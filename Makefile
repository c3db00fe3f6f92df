# The commands of this project; `make help` lists them. CMake and its presets do the work.
# V=1 shows what they print.
PREFIX ?= /usr/local
BENCH ?= db
DIR ?= sample
Q ?=
FUZZ_SECONDS ?= 60
MAKEFLAGS += --no-print-directory

.PHONY: run run-jobs run-db test build build-failpoints check bench test-long mutate install fuzz clean help

run: ## index a folder and answer a question; DIR=~/Documents Q="what do I look for"
	@tools/setup build
	@tools/build release quire quire_reader
	@tools/tour build/quire "$(DIR)" "$(Q)"

run-jobs: ## the layer below: 10,000 jobs, SIGKILL in the middle, and each takes effect exactly once
	@tools/setup build
	@tools/build release quire job_demo
	@folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && trap 'exit 130' INT TERM && build/tests/job_demo "$$folder"

run-db: ## the layer below that: writes under load, SIGKILL, and nothing acknowledged is lost
	@tools/setup build
	@tools/build release quire db_demo
	@folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && trap 'exit 130' INT TERM && build/tests/db_demo "$$folder"

test: ## build with sanitizers and run all tests
	@tools/setup test
	@tools/build asan
	@tools/build tsan
	@tests/run build-asan build-tsan

build: ## build/quire, optimised
	@tools/setup build
	@tools/build release

build-failpoints: ## build-failpoints/quire, with the failure switch for tests
	@tools/setup build
	@tools/build failpoints

check: ## format, clang-tidy, cppcheck, -fanalyzer, clang, layers, promises
	@tools/setup check
	@tools/check

bench: ## measure; BENCH=db
	@bench/run $(BENCH)

test-long: ## the tests with many more repetitions, then fuzzing
	@tools/setup test fuzz
	@tools/build asan
	@tools/build tsan
	@QUIRE_TEST_LONG=1 tests/run build-asan build-tsan
	@$(MAKE) fuzz FUZZ_SECONDS=600

mutate: ## apply each known fault to a copy of the source: some test must catch it
	@tools/setup test
	@tools/mutate

fuzz: ## fuzz every parser of foreign bytes for FUZZ_SECONDS each
	@tools/setup fuzz
	@tools/build fuzz
	@tools/fuzz $(FUZZ_SECONDS)

install: build ## to PREFIX (and DESTDIR)
	@tools/quiet "configuring for $(PREFIX)" cmake -DCMAKE_INSTALL_PREFIX="$(PREFIX)" build
	@tools/build release
	@cmake --install build

clean: ## remove everything built
	@rm -rf build build-*

help: ## this list
	@sed -n 's/^\([a-z-]*\):[^#]*## /  make \1|/p' Makefile | awk -F'|' '{ printf "%-26s %s\n", $$1, $$2 }'
