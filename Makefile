# The only commands anyone needs. `make help` lists them.

PYTHON ?= python3
VENV := .venv
MODEL_VENV := .venv-model
BENCH_VENV := .venv-bench
MLFLOW_VENV := .venv-mlflow
S3_VENV := .venv-s3
AIRFLOW_VENV := .venv-airflow
BIN := $(VENV)/bin
# One part of a long suite: make test-stack PART=1/3
PART ?= 0/1
UV := $(shell command -v uv 2>/dev/null)
comma := ,
PROTOS := $(wildcard protos/touchstone/v1/*.proto)
export PATH := $(CURDIR)/$(BIN):$(PATH)
# Where bytecode may not be kept, every process that a test starts would compile its modules again.
export PYTHONDONTWRITEBYTECODE :=
# Quiet about where packages come from; errors still show.
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup setup-dev run demo test test-stack test-rights test-hosts test-images test-model model-env parity parity-env test-mlflow mlflow-env test-s3 s3-env test-airflow airflow-env chaos simulate record bench bench-env calibration simulation certs nightly check format protos protos-release blocking client docs screenshots lock images audit clean

help: ## Show this list
	@echo "Touchstone: self-service benchmarking of AI models. Start with: make run"
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(VENV)/run.stamp $(VENV)/command.stamp ## Prepare .venv, locked packages and front-end assets
	@$(BIN)/python -m web.vendor

run: setup ## Start everything on this machine and run the demo suite; stop with Ctrl-C
	@exec $(BIN)/python -m deploy.local run

demo: setup ## The same, but stop after the leaderboard
	@exec $(BIN)/python -m deploy.local demo

test: setup-dev ## Run the tests
	@$(BIN)/python -m pytest -n 4 --dist loadfile --no-loadscope-reorder -m "not stack and not model and not parity and not mlflow and not s3 and not airflow and not chaos and not hosts and not images and not calibration"

test-stack: setup-dev ## Run every suite, provider kind, engine, limit and reuse through the whole stack
	@$(BIN)/python -m pytest -n 2 --dist loadfile -m stack --part $(PART)

test-rights: setup-dev ## Run the same with the least rights of each service at NATS, which must refuse nothing
	@TOUCHSTONE_LEAST_RIGHTS=1 $(BIN)/python -m pytest -n 2 --dist loadfile -m stack --part $(PART) tests/integration/test_stack_*.py

test-hosts: setup-dev ## Break several hosts under load: NATS x3 and all services in network namespaces (root)
	@$(BIN)/python -m pytest -m hosts -rs -s

test-images: setup-dev ## Build the container images on plain Debian, and run the demo in them with compose (root)
	@$(BIN)/python -m pytest -m images -rs -s

test-model: setup-dev model-env ## Train and serve a small real model, and evaluate it (installs PyTorch)
	@$(BIN)/python -m pytest -m model -rs --part $(PART)

test-airflow: setup-dev airflow-env ## Run the DAG of deploy/airflow in Airflow against a whole installation (installs Airflow)
	@$(BIN)/python -m pytest -m airflow

parity: setup-dev parity-env ## Compare log-likelihood scores with lm_eval on the same rows (installs PyTorch and lm_eval)
	@$(BIN)/python -m pytest -m parity -rs -s --part $(PART)

test-mlflow: setup-dev mlflow-env ## Send experiments to a real MLflow server (installs MLflow)
	@$(BIN)/python -m pytest -m mlflow

test-s3: setup-dev s3-env ## Keep an archive and backups in a local S3 server (installs moto)
	@$(BIN)/python -m pytest -m s3

chaos: setup-dev ## Kill processes at random under load and check that nothing is lost or duplicated
	@$(BIN)/python -m pytest -m chaos -s --part $(PART)

SEEDS ?= 200
simulate: setup-dev ## Simulate SEEDS=200 runs with crashes at any step, or replay SEED=n with its trace
	@$(BIN)/python -m tests.simulator $(if $(SEED),--seed $(SEED),--seeds $(SEEDS) --first $(or $(FIRST),1))

FOLDER ?= var/certificates
certs: ## Make certificates for trials in FOLDER, also for HOSTS="names addresses"; RENEW=1 replaces them
	@$(PYTHON) -m deploy.certificates $(FOLDER) $(if $(RENEW),--renew) $(foreach host,$(HOSTS),--host $(host))

record: setup-dev ## Import published outputs of real models, and compare our scores with their authors'
	@$(BIN)/python -m tests.record

calibration: setup-dev ## Check by simulation the coverage of intervals and the size and power of tests
	@$(BIN)/python -m pytest -n 2 -m calibration -rP --part $(PART)

simulation: setup-dev ## Check by simulation that decisions, races, watches and measured noise keep their error, and what they save
	@$(BIN)/python -m pytest -n 2 -m calibration -rP $(addprefix tests/calibration/test_,deciding.py racing.py watching.py noise.py)

nightly: ## Run all checks and tests in full, which takes hours
	@bash .ci/run nightly

bench: setup-dev bench-env ## Measure speed and memory against a bare loop, lm_eval, Inspect, MLflow and SQLite (installs them)
	@$(BIN)/python -m benchmarks --peers $(BENCH_VENV) --mlflow $(MLFLOW_VENV)

check: setup-dev ## Check style, types, protos, the Dockerfile, and that generated stubs are up to date
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@cd protos && buf lint && buf breaking --against released.txtpb
	@hadolint deploy/images/Dockerfile
	@rm -rf $(VENV)/protos && mkdir -p $(VENV)/protos
	@$(call generate,$(VENV)/protos)
	@diff -r -x __pycache__ $(VENV)/protos protos/gen || { echo "protos/gen differs from the protos. Run: make protos"; exit 1; }

format: setup-dev ## Format the code and apply ruff's fixes
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

protos: setup-dev ## Generate protos/gen from the protos
	@rm -rf protos/gen && mkdir -p protos/gen
	@$(call generate,protos/gen)

# When a release is cut, and after a contract has grown: from then on nothing in the file may be taken away.
protos-release: setup-dev ## Update protos/released.txtpb, the reference of `make check`
	@cd protos && buf build --exclude-source-info --output released.txtpb

blocking: setup-dev ## Generate the blocking client from the asynchronous one
	@$(BIN)/python -m tests.blocking_client

client: setup-dev ## Build the wheel of the Python client and the command line in dist
	@rm -f dist/touchstone_client-*.whl
	@$(BIN)/uv build --quiet --wheel --out-dir dist client && ls dist/*.whl

docs: setup-dev ## Update what is generated from code: tables in docs, and dashboards
	@$(BIN)/python -m tests.api_tables
	@$(BIN)/python -m tests.job_tables
	@$(BIN)/python -m tests.metric_tables
	@$(BIN)/python -m tests.dashboards
	@$(BIN)/python -m tests.chart_schema

screenshots: setup-dev ## Draw all pages in every state into var/screenshots, and those that docs show into docs/images
	@$(BIN)/python -m tests.screenshots --images docs/images

# touchstone-gpu is large: its base has vLLM and CUDA. PIP_CONFIG is a pip.conf that only the build sees.
IMAGES ?= touchstone
BUILDER = $(shell for tool in docker buildah podman; do $$tool info >/dev/null 2>&1 && echo $$tool && break; done)
images: ## Build container images with docker, buildah or podman: IMAGES="touchstone touchstone-gpu" for all
	@builder="$(BUILDER)"; version=$$(sed -n 's/^__version__ = "\(.*\)"/\1/p' services/__init__.py); \
	test -n "$$builder" || { echo "Needs docker with a running daemon, buildah or podman. On Debian: apt install buildah"; exit 1; }; \
	for image in $(IMAGES); do \
	  DOCKER_BUILDKIT=1 $$builder build --file deploy/images/Dockerfile --target $$image \
	    --tag $$image:latest --tag $$image:$$version $(if $(PIP_CONFIG),--secret id=pip.conf$(comma)src=$(PIP_CONFIG)) $(IMAGE_FLAGS) . || exit 1; \
	done

audit: setup-dev ## Write the images' bill of materials to dist, and look for known vulnerabilities
	@$(BIN)/python -m tests.audit

lock: setup-dev ## Update requirements/*.txt from pyproject.toml
	@$(call lock,run,)
	@$(call lock,image,--extra oidc --extra otel --constraint requirements/run.txt)
	@$(call lock,dev,--extra dev --extra oidc --extra otel --constraint requirements/image.txt)

clean: ## Remove environments, caches and fetched assets; results in ./var are kept
	rm -rf $(VENV) $(MODEL_VENV) $(BENCH_VENV) $(MLFLOW_VENV) $(S3_VENV) $(AIRFLOW_VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis web/static/vendor
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# -- how ------------------------------------------------------------------------------------------------------

setup-dev: setup $(VENV)/dev.stamp

model-env: $(MODEL_VENV)/model.stamp

parity-env: $(MODEL_VENV)/parity.stamp

mlflow-env: $(MLFLOW_VENV)/mlflow.stamp

s3-env: $(S3_VENV)/s3.stamp

# The client's wheel is that of this tree, whatever its version.
airflow-env: $(AIRFLOW_VENV)/airflow.stamp client
	@$(AIRFLOW_VENV)/bin/python -m pip install -qq --no-deps --no-index --force-reinstall dist/touchstone_client-*.whl

bench-env: mlflow-env $(BENCH_VENV)/bench.stamp

# uv where the machine has it (a second instead of half a minute), else the environment's own pip.
ifdef UV
create = uv venv --quiet --python $(PYTHON) $(1)
install = uv pip install --quiet --python $(1)/bin/python --require-hashes --requirement $(2)
else
create = $(PYTHON) -m venv $(1)
install = $(1)/bin/python -m pip install -qq --require-hashes --requirement $(2)
endif

# The folder holds every stamp, so removing it starts afresh. The .pth file puts this tree on the path. It also hides
# rfc3987_syntax, which comes with a tool of `make audit`: jsonschema imports it wherever it is, and it takes 1.4 s, in
# every process that a test starts. It checks IRIs, which no schema of ours asks for, and installations do not have it.
$(VENV)/created.stamp:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "Touchstone needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1). Choose another version: make PYTHON=python3.12 run"; exit 1; }
	@rm -rf $(VENV)
	@$(call create,$(VENV)) || { echo "Could not create $(VENV). On Debian and Ubuntu: apt install python3-venv"; exit 1; }
	@site=$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))') && \
	  printf '%s\n' '$(CURDIR)' '$(CURDIR)/protos/gen' '$(CURDIR)/client' \
	    'import sys; sys.modules.setdefault("rfc3987_syntax", None)' > "$$site/touchstone.pth"
	@touch $@

# Written again when this file changes: an environment outlives the module that the command starts from.
$(VENV)/command.stamp: Makefile $(VENV)/created.stamp
	@printf '%s\n' '#!$(CURDIR)/$(BIN)/python' 'import sys' 'from deploy.command import main' \
	  'sys.exit(main())' > $(BIN)/touchstone && chmod +x $(BIN)/touchstone
	@touch $@

$(VENV)/run.stamp: requirements/run.txt $(VENV)/created.stamp
	@echo "Installing packages into $(VENV) (once; about half a minute if they are cached)"
	@$(call install,$(VENV),requirements/run.txt)
	@touch $@

$(VENV)/dev.stamp: requirements/dev.txt $(VENV)/run.stamp
	@echo "Installing the packages for tests and checks into $(VENV)"
	@$(call install,$(VENV),requirements/dev.txt)
	@touch $@

# pip and not uv: only pip knows a PyTorch build that the machine offers (a CPU build saves gigabytes).
$(MODEL_VENV)/model.stamp: requirements/model.txt
	@echo "Installing PyTorch and transformers into $(MODEL_VENV) (once)"
	@test -x $(MODEL_VENV)/bin/python || $(PYTHON) -m venv $(MODEL_VENV)
	@$(MODEL_VENV)/bin/python -m pip install -qq --requirement requirements/model.txt
	@touch $@

$(MODEL_VENV)/parity.stamp: requirements/parity.txt $(MODEL_VENV)/model.stamp
	@echo "Installing lm_eval into $(MODEL_VENV) (once)"
	@$(MODEL_VENV)/bin/python -m pip install -qq --requirement requirements/parity.txt
	@touch $@

$(BENCH_VENV)/bench.stamp: requirements/bench.txt
	@echo "Installing lm_eval and Inspect into $(BENCH_VENV) (once)"
	@test -x $(BENCH_VENV)/bin/python || $(PYTHON) -m venv $(BENCH_VENV)
	@$(BENCH_VENV)/bin/python -m pip install -qq --requirement requirements/bench.txt
	@touch $@

# An environment of its own: beside the pins of the other peers only an old MLflow resolves.
$(MLFLOW_VENV)/mlflow.stamp: requirements/mlflow.txt
	@echo "Installing MLflow into $(MLFLOW_VENV) (once)"
	@test -x $(MLFLOW_VENV)/bin/python || $(PYTHON) -m venv $(MLFLOW_VENV)
	@$(MLFLOW_VENV)/bin/python -m pip install -qq --requirement requirements/mlflow.txt
	@touch $@

# An environment of its own, as it brings fifty packages that nothing else needs.
$(S3_VENV)/s3.stamp: requirements/s3.txt
	@echo "Installing an S3 server into $(S3_VENV) (once)"
	@test -x $(S3_VENV)/bin/python || $(PYTHON) -m venv $(S3_VENV)
	@$(S3_VENV)/bin/python -m pip install -qq --requirement requirements/s3.txt
	@touch $@

$(AIRFLOW_VENV)/airflow.stamp: requirements/airflow.txt
	@echo "Installing Airflow into $(AIRFLOW_VENV) (once)"
	@test -x $(AIRFLOW_VENV)/bin/python || $(PYTHON) -m venv $(AIRFLOW_VENV)
	@$(AIRFLOW_VENV)/bin/python -m pip install -qq --requirement requirements/airflow.txt
	@touch $@

define generate
python -m grpc_tools.protoc -I protos --python_out=$(1) --pyi_out=$(1) $(PROTOS) && \
python -m grpc_tools.protoc -I protos --grpc_python_out=$(1) --mypy_grpc_out=quiet:$(1) $(filter %_service.proto,$(PROTOS))
endef

# Pins and hashes only: where packages come from is each machine's own setting.
define lock
uv pip compile --quiet --no-config --python-version 3.11 --python-platform linux --generate-hashes \
  --no-emit-index-url --no-emit-find-links --no-header --upgrade $(2) --output-file requirements/$(1).txt pyproject.toml
endef
