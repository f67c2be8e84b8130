# Thin names for what scripts/ and cargo do; `make help` lists them.

SEEDS ?= 20000
FUZZ_SECONDS ?= 60
TARGETS ?=

.DEFAULT_GOAL := help
.PHONY: help demo check test bench million soak fuzz peers drivers package build fmt clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-7s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## Climb the default rungs against a private MariaDB; writes climb.html and climb.json
	@bash scripts/demo.sh

check: ## Format, tidy, lints, units, simulation, the oracle on MariaDB: minutes on a built tree
	@bash scripts/test.sh check

test: ## Everything a change must pass: format, tidy, lints, unit, simulation, end-to-end
	@bash scripts/test.sh

bench: ## Measure the figures; results go to bench-results/
	@bash scripts/bench.sh

million: ## A million executing connections through the pool; 8 GiB of memory
	@bash scripts/million.sh

soak: ## Many simulations, many compared scripts, real walls: make soak SEEDS=20000
	ONRAMP_SEEDS=$(SEEDS) cargo test --locked --release -p testkit
	ONRAMP_ORACLE_SEEDS=$(SEEDS) cargo test --locked --release --test e2e oracle -- --nocapture
	ONRAMP_WALLS=1 cargo test --locked --test e2e -- walls:: stopped_server::

fuzz: ## libFuzzer on each parser: make fuzz FUZZ_SECONDS=60 [TARGETS="lexer reply"]
	@bash scripts/fuzz.sh $(FUZZ_SECONDS) $(TARGETS)

peers: ## Measure HAProxy, MySQL Router and MySQL's own pool beside Onramp; writes docs/peers.md
	@bash scripts/peers.sh

drivers: ## Drivers' own test suites, directly and through the pool; about an hour
	@bash scripts/get-mysql.sh || true
	@python3 scripts/suites.py

package: ## Build the packages (.deb, .rpm) and the list of what is in them
	@bash scripts/package.sh

build: ## Build the release binary
	cargo build --locked --release

fmt: ## Format the sources
	cargo fmt --all

clean: ## Remove what builds and demos leave; keeps bench-results/
	cargo clean
	rm -f climb.html climb.json
