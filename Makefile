# The short way to everything; each line calls a tool that can be called on its own (--help).

# Two goals at once would build in one folder.
.NOTPARALLEL:
.PHONY: help demo test test-asan test-cuda test-long test-without faults fuzz fuzz-groups soak check setup

help:
	@echo 'make demo       set up, build all that is shipped, and run SqueezeNet beside its peers'
	@echo 'make test       set up, build, and run all tests; parts of them under asan too'
	@echo 'make test-asan  set up, build, and run all tests under asan'
	@echo 'make test-cuda  fused groups on an NVIDIA device, where there is one'
	@echo 'make test-long  the tests that have a long version, in that version'
	@echo 'make test-without  all tests without native, onednn, openvino, and without all three'
	@echo 'make fuzz       an hour of fuzzing under sanitizers; FUZZ_ARGUMENTS="--minutes 600" for longer'
	@echo 'make fuzz-groups  a million random groups through jit, 100,000 through each other backend'
	@echo 'make faults     an hour of calls to the system that fail; FAULTS_ARGUMENTS="--minutes 5" for less'
	@echo 'make soak       an hour of processes that bind, run and are killed, and then whether memory grows;'
	@echo '                SOAK_ARGUMENTS="--minutes 5" GROWTH_ARGUMENTS="--minutes 1"'
	@echo 'make check      formatting, layers, clang-tidy over what changed since HEAD~1'
	@echo 'make setup      install what is missing, build nothing'

setup:
	@tools/setup

demo:
	@tools/demo

test:
	@tools/setup check
	@tools/run_tests $(TEST_ARGUMENTS)

test-asan:
	@tools/setup check
	@tools/run_tests --asan-all

test-cuda:
	@tools/setup check
	@tools/build release cuda_groups
	build/release/bin/cuda_groups

test-long:
	@tools/setup
	@tools/build release
	.venv/bin/python -m pytest --long tests/place tests/models tests/conformance tests/cache

test-without:
	@tools/setup check
	@tools/test_without

fuzz:
	@tools/setup check
	@tools/build fuzz fuzzers
	@tools/fuzz $(FUZZ_ARGUMENTS)

fuzz-groups:
	@tools/setup check
	@tools/build release fuzzers
	@tools/fuzz --bin-dir build/release/bin --out build/release/findings --only groups --groups 1000000 $(FUZZ_ARGUMENTS)

faults:
	@tools/setup check
	@tools/build release
	@tools/faults $(FAULTS_ARGUMENTS)

soak:
	@tools/setup check
	@tools/build release
	@tools/soak $(SOAK_ARGUMENTS)
	@tools/growth $(GROWTH_ARGUMENTS)

check:
	@tools/setup check
	@tools/check
