# A newcomer needs two commands: `make demo` and `make test`. `make help` lists the others.
# Underneath are the presets of CMakePresets.json; scripts/install-deps installs what is missing.

JOBS ?= $(shell nproc)
SEKALI := build/release/sekali
BUILD := cmake --build --parallel $(JOBS) --preset

.DEFAULT_GOAL := build
.NOTPARALLEL:
.PHONY: build demo test test-interop mutations torture bench sanitize asan tsan format lint lint-deep install clean help

build: ## builds the command, build/release/sekali
	@scripts/install-deps build
	cmake --preset release --log-level=NOTICE -DSEKALI_TESTS=OFF
	$(BUILD) release

demo: build ## shows the main job: duplicates, kill -9 of real workers, then the proof
	$(SEKALI) demo

test: ## builds and runs every test
	@scripts/install-deps build test
	cmake --preset release --log-level=NOTICE
	$(BUILD) release
	ctest --preset release --parallel $(JOBS)

test-interop: ## shares locks on Redis with Redisson, Laravel and redis-py
	@scripts/install-deps build test interop
	cmake --preset release --log-level=NOTICE
	$(BUILD) release --target lock_peer
	tests/interop/run build/release

mutations: ## takes each guard of the protocol out and shows which test misses it
	@scripts/install-deps build test
	@tests/mutations/mutations.py --jobs $(JOBS)

MINUTES ?= 1
PAIRING ?= all
torture: ## kills, stops, cuts off and fills up real workers and servers (MINUTES=30 PAIRING=sqlite)
	@scripts/install-deps build test
	cmake --preset release --log-level=NOTICE
	$(BUILD) release --target sekali --target torture_worker
	tests/torture/torture.py build/release --minutes $(MINUTES) --pairing $(PAIRING) \
	    --report build/torture/report.md

bench: build ## measures throughput and latency beside the raw limit of this machine
	$(SEKALI) bench

sanitize: asan tsan ## runs the fast tiers of the tests under ASan with UBSan, and under TSan

asan tsan:
	@scripts/install-deps build test sanitize
	cmake --preset $@ --log-level=NOTICE
	$(BUILD) $@
	ctest --preset $@ --parallel $(JOBS)

format: ## formats every C++ file
	@scripts/install-deps lint
	@scripts/format

lint: ## checks format, house rules and scripts
	@scripts/install-deps lint
	@scripts/format --check
	@tests/tidy/tidy.py
	@shellcheck .ci/run $$(grep -lE '^#!.*(ba)?sh$$' scripts/*)

lint-deep: ## runs clang-tidy on every source
	@scripts/install-deps build test lint lint-deep
	cmake --preset dev --log-level=NOTICE
	run-clang-tidy-19 -quiet -p build/dev -j $(JOBS) '/(src|tests)/.*\.cpp$$'

PREFIX ?= /usr/local
install: build ## installs command, library and CMake package below PREFIX (/usr/local)
	cmake --install build/release --prefix $(PREFIX)

clean: ## removes what was built
	rm -rf build

help: ## lists the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20
