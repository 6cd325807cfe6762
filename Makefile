# SPDX-License-Identifier: Apache-2.0
#
# make demo     set up what the demo needs, then: checkpoint -> firmware -> proofs -> a story under QEMU
# make test     set up everything, then the test suite
# make test-all the same, and the tests marked slow: more of what the suite samples
# make setup    only the set-up of both; it leaves .venv/bin/colibri
# make lint     ruff and mypy
# make fuzz     every fuzzer for ten minutes; SECONDS=60: shorter; ARGS="gguf engine": some of them
# make bench    instructions per token of the demo on its boards
# make bench-budgets   measure again and rewrite linker/instructions.toml (minutes); ARGS="--board mps2-an386": a part
# make verify-matrix   every board, compiler, optimisation level and format, bit for bit (hours); ARGS="--board microbit": a part
# make wheel    dist/colibri_firmware-*.whl
# make bare     try demo and test on a bare Debian 12, in a chroot (root only, downloads about 700 MB)
# make clean    remove what builds and tests wrote; make distclean: .venv too

.NOTPARALLEL:
.PHONY: help demo test test-all setup lint fuzz bench bench-budgets verify-matrix wheel bare clean distclean

python = .venv/bin/python

help:
	@sed -n 's/^# \(make .*\)/\1/p' Makefile

demo:
	@sh scripts/setup.sh demo
	@.venv/bin/colibri demo

setup:
	@sh scripts/setup.sh test

# The fast tests first: what they find costs seconds, not minutes.
test: setup
	@$(python) -m pytest -n auto --dist loadfile -m "not qemu and not fuzz and not slow"
	@$(python) -m pytest -n auto --dist loadfile -m "(qemu or fuzz) and not slow"

test-all: test
	@$(python) -m pytest -n auto --dist loadfile -m slow

lint: setup
	@$(python) -m ruff check .
	@$(python) -m mypy

SECONDS = 600

fuzz: setup
	@PYTHONPATH=tests $(python) -m fuzz.run --seconds $(SECONDS) $(ARGS)

bench: setup
	@$(python) -m colibri.cli.main bench weights/stories-moe-3m

bench-budgets: setup
	@PYTHONPATH=tests $(python) -m bench.budgets $(ARGS)

# Exit code 1 of the script where anything differs (make's own is 2).
verify-matrix: setup
	@PYTHONPATH=tests $(python) -m verify.matrix $(ARGS)

# pip fetches the build backend by itself: a wheel needs no compiler of the test suite.
wheel:
	@sh scripts/setup.sh demo
	@$(python) -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .

bare:
	@sh tests/packaging/bare_debian.sh

clean:
	@rm -rf dist out colibri-demo .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find scripts sim tests -name __pycache__ -prune -exec rm -rf {} +

distclean: clean
	@rm -rf .venv
