# The targets of this project. `make check` is what .ci/run calls.
GO        ?= go
TESTFLAGS ?=
.DEFAULT_GOAL := help
.PHONY: help build tools check fmt vet house test race resume crash clean

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  \1\t\2/p' $(MAKEFILE_LIST) | expand -t 12

build: ## build the static binary into ./bin
	CGO_ENABLED=0 $(GO) build -trimpath -o bin/ ./cmd/...

tools: ## install bubblewrap, strace and a C compiler where that can be done, else say what is missing
	@./.ci/tools

check: tools fmt vet house test race resume ## everything below: what has to be green before a commit

fmt: ## list the files that gofmt would change, and fail if there are any
	@gofmt="$$($(GO) env GOROOT)/bin/gofmt"; [ -x "$$gofmt" ] || gofmt=gofmt; \
	found=$$("$$gofmt" -l cmd internal *.go) || exit 1; \
	[ -z "$$found" ] || { echo "gofmt would change:"; echo "$$found"; exit 1; }

vet: ## go vet, with and without failpoints
	$(GO) vet ./...
	$(GO) vet -tags failpoint ./...

house: ## the rules of the house: layers, budgets, documents
	$(GO) test $(TESTFLAGS) -vet=off .

test: ## all tests
	$(GO) test $(TESTFLAGS) -vet=off ./...

# Left out here, because they start processes of their own, where the detector looks at one process: TestFairTurns, which
# measures how long clients of four processes wait, and TestPowerLoss, which replays what a traced process has written.
race: ## the store, and a whole run through the engine, under the race detector (needs a C compiler)
	@if command -v "$$($(GO) env CC)" >/dev/null; then \
	  export CGO_ENABLED=1; set -ex; \
	  $(GO) test $(TESTFLAGS) -vet=off -race -skip 'FairTurns|PowerLoss' ./internal/store/... ./internal/claim; \
	  $(GO) test $(TESTFLAGS) -vet=off -race -run TestScripts/work ./internal/cli; \
	elif [ -n "$$INTERLOCK_CI" ]; then echo "race: no C compiler, and this is CI: failed"; exit 1; \
	else echo "race: SKIPPED, there is no C compiler here (install gcc)"; fi

resume: ## kill the engine at the points of the crash table and resume; stop it where its authority goes
	$(GO) test $(TESTFLAGS) -vet=off -tags failpoint -run 'TestResume|TestAuthority' -v ./internal/cli

crash: ## kill each command before and after each write, and type it again; prints the matrix (minutes)
	$(GO) test $(TESTFLAGS) -vet=off -tags failpoint -timeout 30m -run TestCrash -v ./internal/cli

clean: ## remove what build left
	rm -rf bin
