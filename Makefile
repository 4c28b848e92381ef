# A thin front to CMake and ctest. Each target first installs what it misses (.ci/packages says what).
BUILD ?= build
JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 600
WERROR ?= OFF
options = -DLH_TESTS=ON -DLH_WERROR=$(WERROR) -DCMAKE_INSTALL_PREFIX=$(PREFIX)
# CTEST_ARGS: more for ctest, for instance CTEST_ARGS='-L unit -R prng'
CTEST_ARGS ?=
# Each word quoted: patterns like unit|sim are not for the shell.
ctest_words = $(foreach word,$(CTEST_ARGS),'$(word)')

.DEFAULT_GOAL := all
.PHONY: all demo test test-slow test-vm test-asan test-tsan build-tsan soak mutation bench figures install wheel fuzz format lint clean help

all: ## build the library, the command and the tests
	@.ci/install-deps build test
	@.ci/build $(BUILD) $(options)

demo: ## see it work: a transfer over an emulated ocean, on this machine
	@.ci/install-deps build
	@TARGETS=longhaul .ci/build $(BUILD) $(if $(wildcard $(BUILD)/CMakeCache.txt),,-DLH_TESTS=OFF)
	@$(BUILD)/longhaul demo

test: ## build and run the tests; ends with "N passed, N failed"
	@.ci/install-deps build test
	@.ci/build $(BUILD) $(options)
	@.ci/ctest $(BUILD) -LE 'vm|slow' $(ctest_words)

test-slow: ## the tests that "make test" leaves out: virtual machines, and what is slow and rarely fails
	@.ci/install-deps build test vm
	@.ci/build $(BUILD) $(options)
	@.ci/ctest $(BUILD) -L 'vm|slow' $(ctest_words)

test-vm: ## the tests that run in virtual machines with RDMA (tests/vm)
	@.ci/install-deps build test vm
	@.ci/build $(BUILD) $(options)
	@.ci/ctest $(BUILD) -L vm $(ctest_words)

test-asan: ## the same tests under the address and undefined behaviour sanitizers
	@.ci/install-deps build test
	@.ci/build $(BUILD)-asan -DLH_WERROR=ON -DLH_BENCH=OFF -DLH_SANITIZE=address,undefined
	@.ci/ctest $(BUILD)-asan $(ctest_words)

test-tsan: build-tsan ## the same tests under the thread sanitizer
	@.ci/ctest $(BUILD)-tsan $(ctest_words)

build-tsan:
	@.ci/install-deps build test
	@.ci/build $(BUILD)-tsan -DLH_WERROR=ON -DLH_BENCH=OFF -DLH_SANITIZE=thread

soak: ## the fault world: half an hour of recorded seeds, then others until stopped (SOAK_ARGS: more for test_world, for instance '--first 5000000000000000000')
	@.ci/install-deps build test
	@.ci/build $(BUILD) $(options)
	@$(if $(SOAK_ARGS),,bash tests/world/recorded.sh $(BUILD)/tests/world/test_world)
	@$(BUILD)/tests/world/test_world --soak $(SOAK_ARGS)

SEED ?= 1
COUNT ?= 200
mutation: ## plant one-line faults in COUNT functions of src, drawn by SEED: which do tests find? (MUTATION_ARGS: more for tests/mutation/mutation.py)
	@.ci/install-deps build test
	@python3 tests/mutation/mutation.py --seed $(SEED) --count $(COUNT) --build $(BUILD)-mutation --jobs $(JOBS) $(MUTATION_ARGS)

bench: ## build and run the benchmarks (bench/run)
	@.ci/install-deps build test bench
	@TARGETS='all benchmarks' .ci/build $(BUILD) $(options)
	@BUILD=$(BUILD) bench/run $(BENCH_ARGS)

figures: all ## the experiments of the Bifrost paper, simulated (FIGURES: which ones, and other arguments)
	@netsim/scenarios/bifrost/figures --longhaul $(BUILD)/longhaul --out $(BUILD)/bifrost $(FIGURES)

install: ## install to PREFIX (default /usr/local), below DESTDIR when set
	@.ci/install-deps build
	@TARGETS=installed .ci/build $(BUILD) $(if $(wildcard $(BUILD)/CMakeCache.txt),,-DLH_TESTS=OFF) \
	    -DCMAKE_INSTALL_PREFIX=$(PREFIX)
	@cmake --install $(BUILD) --prefix $(PREFIX)
	@if [ -z "$(DESTDIR)" ] && [ "$$(id -u)" -eq 0 ]; then ldconfig; fi

wheel: ## build/wheel: a wheel of the Python package with all libraries inside
	@.ci/install-deps build test
	@JOBS=$(JOBS) src/plugins/python/wheel.sh $(BUILD)/wheel

fuzz: ## run each fuzz target for FUZZ_SECONDS (default 600)
	@.ci/install-deps build test fuzz
	@.ci/fuzz $(BUILD)-fuzz $(FUZZ_SECONDS)

format: ## format every C file
	@.ci/install-deps format
	@git ls-files -z '*.c' '*.h' '*.cu' '*.cuh' | xargs -0 -r clang-format -i

lint: ## check the format, run clang-tidy and the structure tests
	@.ci/install-deps build test format
	@.ci/build $(BUILD) $(options)
	@.ci/lint $(BUILD)

clean: ## remove what was built
	@rm -rf $(BUILD) $(BUILD)-asan $(BUILD)-tsan $(BUILD)-fuzz $(BUILD)-mutation

help: ## this list
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 20
