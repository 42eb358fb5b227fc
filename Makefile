# Every target says what it does in `make help`.
SHELL       := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS   += --no-print-directory

# The version that the binary prints. A tree without git has none.
VERSION     := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS     := -s -w -X github.com/echoeval/echoeval/cmd/echoeval/internal/cli.Version=$(VERSION)
STATICCHECK := go tool -modfile=ci/tools/go.mod staticcheck
GO_DIRS     := $(wildcard ci cmd core harness providers reports)

.PHONY: help build test kill check fmt tidy vet lint rules bench record golden demo

help: ## list the targets (the default)
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "%-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build the static binary bin/echoeval
	CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags '$(LDFLAGS)' -o bin/echoeval ./cmd/echoeval

test: ## run all tests with the race detector, in random order
	go test -race -count=1 -shuffle=on -timeout=30m ./...

kill: ## kill 500 commands at random and go on with each; the suite kills a few
	ECHOEVAL_KILLS=500 go test -count=1 -v -timeout 90m ./cmd/echoeval -ginkgo.v -ginkgo.focus 'kill -9 at random'

check: fmt tidy vet lint rules ## everything but the tests of the packages: format, modules, vet, lint, rules of the tree

fmt: ## say which Go files gofmt would change
	@unformatted=$$(gofmt -l $(GO_DIRS)); \
	if [ -n "$$unformatted" ]; then printf 'gofmt would change these, run gofmt -w on them:\n%s\n' "$$unformatted"; exit 1; fi

tidy: ## say what go mod tidy would change
	go mod tidy -diff
	cd ci/tools && go mod tidy -diff
	cd docs/examples/gotest && go mod tidy -diff

vet: ## go vet
	go vet ./...

lint: ## staticcheck, in the version that ci/tools/go.mod pins
	$(STATICCHECK) ./...

rules: ## import directions, doors to the process, docs drift, owners of cassettes
	go test -count=1 ./ci/archtest ./ci/cassettetest

bench: ## write the simulation tables of docs/statistics.md anew, run the benchmarks and print their ratios
	ECHOEVAL_GOLDEN=update go test -count=1 -p=1 ./harness/stats ./harness/noise -ginkgo.focus 'by simulation'
	go run ./ci/bench

record: build ## record the committed cassettes again, against the emulator
	ci/record.sh

golden: ## rewrite the golden files, once; look at the difference before committing it
	ECHOEVAL_GOLDEN=update go test -count=1 ./...

demo: ## run the example dataset from its cassettes
	go run ./cmd/echoeval run datasets/quickstart.yaml
