# Every target sets up what it needs in .venv: python3 and make are enough.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test lint bench figures pictures sizes clean

demo: $(READY)
	$(BIN)/linsketch demo

test: $(READY)
	$(BIN)/pytest -n 2 --dist loadfile --no-loadscope-reorder tests/test_flower.py tests src # it waits most

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(READY)
	$(BIN)/python bench/speed.py
	$(BIN)/python bench/campaigns.py
	$(BIN)/python bench/rounds.py
	$(BIN)/python bench/securesum.py
	$(BIN)/python bench/cluster.py

figures: $(READY)
	$(BIN)/python -m experiments fig1 fig2 fig3 fig4 drift table1 results
	cp experiments/out/fig1.png experiments/out/table1.png docs/figures/

# The picture of a page in the README; needs Debian's chromium.
pictures: $(READY)
	$(BIN)/linsketch demo --out $(VENV)/pictures
	chromium --headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-sync --hide-scrollbars \
	    --disable-background-networking --disable-component-update --user-data-dir=$(VENV)/profile --window-size=1000,1150 \
	    --screenshot=docs/figures/page.png file://$(CURDIR)/$(VENV)/pictures/report.html

sizes: $(READY)
	$(BIN)/python bench/sizes.py

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	-$(BIN)/linsketch demo --rounds 2 --users 100 --out $(VENV)/warm-up > /dev/null 2>&1 # compiles the loops
	touch $@

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
