# Two commands do all the set-up on a fresh machine with Python 3.11+ and git: `make demo` and `make test`.
PYTHON ?= python3
VENV   ?= .venv
OUT    ?= out
TIER   ?= auto
ARGS   ?=
BIN    := $(VENV)/bin
# One BLAS thread per process: test workers share the cores, LeNet's matrices are too small to share, and a pool of threads
# with a busy neighbour is several times slower than one thread.
# Whoever is done takes over what others still have: tests differ in length a thousandfold.
WORKERS := -n auto --maxprocesses 8 --dist worksteal
# The standard tier, for pytest itself. `make test` asks tests/tiers/; on a GPU: make test ARGS="-m gpu -n 0".
ANYWHERE := not slow and not static and not gpu and not peer

.PHONY: help demo test test-all test-oldest test-twice lint docs pages notebooks wheel bench interop other-kernels libraries array-api clean
.DEFAULT_GOAL := help

help:
	@echo "make demo    set up $(VENV), train LeNet on real handwritten digits, draw what it learned"
	@echo "make test    set up $(VENV), run the tests that your changes touch; in a clean tree the quick ones (TIER=quick, TIER=standard: all that .ci/run asks)"
	@echo "make test-all run every test that needs neither a GPU nor PyTorch, under the newest Triton and the oldest"
	@echo "make test-twice run the quick tests with every call made twice, the second time by its plan"
	@echo "make lint    ruff and mypy"
	@echo "make docs    run the examples and the notebooks, build the site into build/site/"
	@echo "make pages   write anew what tools write: the index of ops, exports, stubs, pages, mistakes"
	@echo "make notebooks store what the notebooks say and draw now"
	@echo "make wheel   build wheel and sdist into dist/"
	@echo "make bench   time the host cost of an op and whole training steps"
	@echo "make interop run other projects' released tests with our tensors"
	@echo "make other-kernels fetch Triton kernels of other projects and try them on our tensors"
	@echo "make libraries install public libraries on the stand-in and beside torch, run a quick start of each in both (an hour; docs/libraries.md is its output)"
	@echo "make array-api run the array API standard's suite, scikit-learn and scipy on our tensors"
	@echo "make clean   remove $(VENV) and everything built"

demo: $(VENV)/.examples
	OPENBLAS_NUM_THREADS=1 $(BIN)/python examples/train_digits.py --out $(OUT) $(ARGS)

test: $(VENV)/.test
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m tests.tiers $(TIER) $(WORKERS) $(ARGS)

# Packaging tests install into environments of their own, one after another: --dist loadgroup keeps them on one worker.
test-all: $(VENV)/.test $(VENV)-oldest/.ready
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m tests.tiers standard $(WORKERS)
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -m "static and not gpu" -n auto --maxprocesses 8
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -m "slow and not static and not gpu and not peer" -n auto --maxprocesses 8 --dist loadgroup
	OPENBLAS_NUM_THREADS=1 $(VENV)-oldest/bin/python -m pytest -m "not static and not gpu and not peer" $(WORKERS) $(OLDEST) tests/ops tests/kernels
	$(VENV)-oldest/bin/python -m bench static --figures

# The oldest Triton and numpy in an environment of their own. .ci/run asks it what reads Triton's insides, and an op of each file.
OLDEST := tests/cuda tests/llvm
test-oldest: $(VENV)-oldest/.ready
	OPENBLAS_NUM_THREADS=1 $(VENV)-oldest/bin/python -m pytest -m "$(ANYWHERE)" $(WORKERS) $(OLDEST)
	OPENBLAS_NUM_THREADS=1 $(VENV)-oldest/bin/python -m pytest -m family $(WORKERS) tests/ops

# Every call made twice, the second time by its plan, which is told from the long way by nothing.
TWICE ?=
test-twice: $(VENV)/.test
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -q -p tests.dispatch.twice -m "not standard and $(ANYWHERE)" $(WORKERS) $(TWICE)

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(VENV)/.docs
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m docs.site $(ARGS)

# In this order: stubs, pages and what mistakes print read the index.
pages: $(VENV)/.test
	$(BIN)/python tritensor/tools/exports.py
	$(BIN)/tritensor op-index
	$(BIN)/tritensor stubs
	$(BIN)/python -m tests.pages.api_page
	$(BIN)/python -m tests.pages.ops_page
	$(BIN)/python -m tests.pages.onnx_page
	$(BIN)/python -m tests.kernels.parts.parts_page
	$(BIN)/python -m tests.mistakes.record
	$(BIN)/python -m tests.pages.performance_page
	$(BIN)/python -m tests.pages.floor_plan
	$(BIN)/python -m tests.pages.missing

notebooks: $(VENV)/.docs
	$(BIN)/python -m docs.site.notebooks $(ARGS)

wheel: $(VENV)/.test
	rm -rf dist
	$(BIN)/python -m build --outdir dist .
	@ls -l dist

bench: $(VENV)/.bench
	$(BIN)/python -m bench host $(ARGS)
	$(BIN)/python -m bench train $(ARGS)

interop: $(VENV)/.interop
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m tests.interop.einops_suite
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m tests.interop.opt_einsum_suite
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m tests.interop.pandas_columns

other-kernels: $(VENV)/.interop
	$(BIN)/python -m tests.other_kernels --checkouts $(VENV)/other-kernels --clone $(ARGS)

# Two environments of its own, below .venv-libraries.
libraries: $(VENV)/.test
	$(BIN)/python -m tests.libraries $(ARGS)

# An environment of its own: the suite's versions of pytest and hypothesis are its affair, and scipy reads its switch when imported.
array-api: $(VENV)-array-api/.ready
	OPENBLAS_NUM_THREADS=1 $(VENV)-array-api/bin/python -m tests.array_api.suite $(ARGS)
	OPENBLAS_NUM_THREADS=1 SCIPY_ARRAY_API=1 $(VENV)-array-api/bin/python -m tests.array_api.libraries

$(VENV)-oldest/.ready: pyproject.toml tests/oldest.txt
	$(PYTHON) -m venv $(VENV)-oldest
	$(VENV)-oldest/bin/python -m pip install --editable '.[test]' -c tests/oldest.txt
	@touch $@

$(VENV)-array-api/.ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)-array-api
	$(VENV)-array-api/bin/python -m pip install --editable '.[array-api]'
	@touch $@

clean:
	rm -rf $(VENV) $(VENV)-array-api $(VENV)-libraries $(VENV)-oldest build dist *.egg-info

# One stamp per extra: what is installed stays installed until pyproject.toml changes. The install is editable, so an
# edited file needs no second one.
$(VENV)/.%: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --editable '.[$*]'
	@touch $@

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "tritensor needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1). Name another: make PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV)
