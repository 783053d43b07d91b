# Every verb installs what it needs and can be the first thing run on a fresh machine. `make help` lists them.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

PYTHON := .venv/bin/python
PYTEST := $(PYTHON) -m pytest
# In the order of collection; by default, xdist starts files with many tests first, however short these are.
BY_FILE := --dist=loadfile --no-loadscope-reorder
INSTALLED := .venv/.installed
CONTRACT := tests/contract tests/cluster/test_contract.py

.PHONY: help setup run stop test lint fmt proto types unit property cluster shared alone e2e karpenter old-kubernetes bench chart contract docs mutants \
	audit image image-test docker-build build build-controller build-worker build-all pins clean

help: ## list these verbs
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(INSTALLED) ## install everything: Python packages, Debian packages (as root), the lab's Kubernetes
	@scripts/system-packages
	@$(PYTHON) -m lab build

run: setup ## show it on a cluster of the lab: three gated nodes, one of them broken (simulated without root)
	@$(PYTHON) -m demo

stop: $(INSTALLED) ## remove the lab's cluster; all checkouts of a user share it
	@$(PYTHON) -m lab down

# Tests marked `alone` need a machine without other clusters, and mostly wait. Property tests start no clusters, and compute.
test: $(INSTALLED) ## everything that CI runs
	@$(MAKE) --no-print-directory lint types unit
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target property alone
	@$(MAKE) --no-print-directory shared e2e

lint: $(INSTALLED) ## style, layers, the format of the lab's Go files, and the .proto files
	.venv/bin/ruff check
	.venv/bin/ruff format --check
	.venv/bin/lint-imports
	@scripts/lint-go
	@scripts/proto check

fmt: $(INSTALLED) ## format the code
	.venv/bin/ruff check --fix-only
	.venv/bin/ruff format
	if command -v gofmt >/dev/null; then gofmt -w lab/binaries; fi

proto: $(INSTALLED) ## write the Python code and the comments that the .proto files stand for
	@scripts/proto generate

types: $(INSTALLED) ## check the types
	.venv/bin/mypy

unit: setup ## tests of single units: seconds
	$(PYTEST) --numprocesses=logical --dist=worksteal tests/unit tests/contract

property: $(INSTALLED) ## tests of what must hold for every input
	$(PYTEST) --numprocesses=logical tests/property

cluster: shared ## tests and attacks against a real control plane with simulated nodes
	@$(MAKE) --no-print-directory alone

# These tests wait more than they compute, so several clusters run at a time. tests/conftest.py starts the longest files first.
shared: setup
	@$(PYTHON) -m lab build --terraform
	@scripts/test-on-clusters shared --numprocesses=5 $(BY_FILE) -m "not alone" tests/cluster tests/attacks

alone: setup
	@scripts/test-on-clusters alone -m alone tests/cluster

e2e: setup ## tests on real nodes
	@scripts/test-on-clusters e2e --numprocesses=2 $(BY_FILE) tests/e2e

karpenter: setup ## tests with the real Karpenter, which is built first: 4 minutes, once; not part of `make test`
	$(PYTHON) -m lab build --karpenter
	$(PYTEST) -s tests/karpenter

old-kubernetes: setup ## the chart on Kubernetes 1.31, which is built first: 9 minutes, once; not part of `make test`
	$(PYTHON) -m lab build --kubernetes 1.31.4
	$(PYTEST) tests/old_kubernetes

contract: setup ## rewrite the golden files of what users depend on, after an intended change; 2 minutes
	CONTRACT=write $(PYTEST) --numprocesses=logical $(CONTRACT)

docs: $(INSTALLED) ## write the pages that list what the code has, and the tables of CONTRIBUTING.md
	@$(PYTHON) -m tools.docs

mutants: $(INSTALLED) ## check that tests detect small changes to the decision core: minutes; MODULES="removal_budget patches" for some
	@$(PYTHON) -m tests.mutants $(MODULES)

audit: $(INSTALLED) ## query OSV, over the network, for known vulnerabilities of the pinned Python packages
	@$(PYTHON) scripts/audit

bench: setup ## measure everything on a quiet machine and write docs/reference/performance.md: an hour; STEPS="burst idle" for some
	@$(PYTHON) -m bench.all $(STEPS)

image: $(INSTALLED) ## the container image and its bill of materials into dist/, without a container engine
	@$(PYTHON) -m release image $(addprefix --arch=,$(ARCH))

image-test: $(INSTALLED) ## build the image twice and run its programs, as root
	$(PYTEST) tests/image

docker-build: ## the same image by docker or podman: make docker-build VERSION=1.0.0
	@scripts/docker-build

build: $(INSTALLED) ## bin/kube-node-ready, which needs a Python and nothing else; VERSION=1.0.0 sets the version that it prints
	@$(PYTHON) -m release executables kube-node-ready

build-controller: $(INSTALLED) ## bin/kube-node-ready-controller
	@$(PYTHON) -m release executables kube-node-ready-controller

build-worker: $(INSTALLED) ## bin/kube-node-ready-worker
	@$(PYTHON) -m release executables kube-node-ready-worker

build-all: $(INSTALLED) ## all three
	@$(PYTHON) -m release executables

chart: setup ## lint the chart and run its tests
	$(PYTEST) tests/unit/chart

pins: $(INSTALLED) ## update the pinned Python packages, with hashes
	@scripts/pin-python-packages

clean: ## delete what this checkout made, and the cluster of `make run`; the built programs stay in the user's cache
	@if [ -e $(INSTALLED) ]; then $(PYTHON) -m lab down && $(PYTHON) -m lab clean; fi
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis dist bin
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +

$(INSTALLED): requirements/dev.txt requirements/uv.txt pyproject.toml scripts/python-environment
	@scripts/python-environment
	@touch $@
