# Every verb installs what it needs and can be the first thing run on a fresh machine. `make help` lists them.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

PYTHON := .venv/bin/python
PYTEST := $(PYTHON) -m pytest
INSTALLED := .venv/.installed
CLUSTERS := 3# that tests/cluster uses at a time: its tests wait more than they work

.PHONY: help setup run stop test lint fmt types unit property cluster e2e karpenter bench chart image pins clean

help: ## list these verbs
	@awk -F ':.*## ' '/^[a-z0-9]+:.*## / {printf "  make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(INSTALLED) ## install everything: Python packages, Debian packages (as root), the lab's Kubernetes
	@scripts/system-packages
	@$(PYTHON) -m lab build

run: setup ## bring up an embedded cluster with two real nodes (simulated ones without root)
	@$(PYTHON) -m lab up

stop: $(INSTALLED) ## take the embedded cluster away again
	@$(PYTHON) -m lab down

test: lint types unit property cluster e2e ## everything that CI runs

lint: $(INSTALLED) ## style, layers, and the format of the lab's Go files
	.venv/bin/ruff check
	.venv/bin/ruff format --check
	.venv/bin/lint-imports
	@scripts/lint-go

fmt: $(INSTALLED) ## format the code
	.venv/bin/ruff check --fix-only
	.venv/bin/ruff format
	if command -v gofmt >/dev/null; then gofmt -w lab/binaries; fi

types: $(INSTALLED) ## check the types
	.venv/bin/mypy

unit: $(INSTALLED) ## tests of single units: seconds
	$(PYTEST) tests/unit

property: $(INSTALLED) ## tests of what must hold for every input
	$(PYTEST) tests/property

cluster: setup ## tests against a real control plane with simulated nodes
	$(PYTEST) --numprocesses=$(CLUSTERS) --dist=loadfile -m "not alone" tests/cluster
	$(PYTEST) -m alone tests/cluster

e2e: setup ## tests on real nodes
	$(PYTEST) tests/e2e

karpenter: setup ## tests with the real Karpenter, which is built first: 4 minutes, once; not part of `make test`
	$(PYTHON) -m lab build --karpenter
	$(PYTEST) -s tests/karpenter

bench: setup ## measure the lab, the worker and the controller
	$(PYTHON) -m bench.lab
	$(PYTHON) -m bench.worker
	$(PYTHON) -m bench.operator all

chart: ## (comes next; see CHANGELOG.md)
image: ## (comes next; see CHANGELOG.md)
chart image:
	@echo "make $@: there is nothing to build yet; it comes next (see CHANGELOG.md)" >&2; exit 1

pins: $(INSTALLED) ## pin the Python packages anew, with hashes
	@scripts/pin-python-packages

clean: ## delete what this checkout made, clusters included; the built programs stay in the user's cache
	@if [ -e $(INSTALLED) ]; then $(PYTHON) -m lab clean --all; fi
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis dist bin
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +

$(INSTALLED): requirements/dev.txt requirements/uv.txt pyproject.toml scripts/python-environment
	@scripts/python-environment
	@touch $@
