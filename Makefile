# The targets of this project. `make check` is what .ci/run calls.
GO        ?= go
TESTFLAGS ?=
# Of make torture: operations on the store, and on claims, of which each takes some ten processes of git.
OPS       ?= 1000000
CLAIMOPS  ?= 10000
FUZZTIME  ?= 30s
# Of make scale: the sizes. Without them it tries sizes that take a minute.
LARGE     ?= INTERLOCK_FILES=50000 INTERLOCK_COMMITS=50000 INTERLOCK_BRANCHES=20000 INTERLOCK_RUNS=100000 INTERLOCK_BLOB=500
.DEFAULT_GOAL := help
# Of make bench: rows (all when empty), rounds of each side, seconds of load in one; LONG=1 adds the rows that take
# minutes, JSON=1 prints JSON. DIR is where files are made: the filesystem there is measured.
ROWS      ?=
ROUNDS    ?= 5
SECONDS   ?= 1
DIR       ?= /var/tmp
.PHONY: help build man tools check fmt vet house test cover race resume hostile crash rows scale installations races torture fuzz bench clean
# Where make test leaves which statements it ran.
COVERAGE  := $(CURDIR)/bin/coverage

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  \1\t\2/p' $(MAKEFILE_LIST) | expand -t 12

build: ## build the static binary into ./bin
	CGO_ENABLED=0 $(GO) build -trimpath -o bin/ ./cmd/...

man: ## write the manual pages of all commands into ./bin/man
	$(GO) run ./cmd/interlock man bin/man

tools: ## install bubblewrap, strace and a C compiler where that can be done, else say what is missing
	@./.ci/tools

check: tools fmt vet house test race resume cover ## fmt, vet, house, test, race, resume and cover: what has to be green before a commit

fmt: ## list the files that gofmt would change, and fail if there are any
	@gofmt="$$($(GO) env GOROOT)/bin/gofmt"; [ -x "$$gofmt" ] || gofmt=gofmt; \
	found=$$("$$gofmt" -l bench cmd internal *.go) || exit 1; \
	[ -z "$$found" ] || { echo "gofmt would change:"; echo "$$found"; exit 1; }

vet: ## go vet, with and without failpoints
	$(GO) vet ./...
	$(GO) vet -tags failpoint ./...
	$(GO) vet -tags coverage .

house: ## the rules of the house: layers, budgets, documents
	$(GO) test $(TESTFLAGS) -vet=off .

test: ## all tests but those of make hostile, crash, scale, rows and installations, and which statements they run
	@rm -rf $(COVERAGE) && mkdir -p $(COVERAGE)
	$(GO) test $(TESTFLAGS) -vet=off -timeout 20m -parallel 4 -skip '^(TestHostile|TestScale.*|TestRowsMeasure|TestTwoInstallations30)$$' -cover -coverpkg=./... ./... -args -test.gocoverdir=$(COVERAGE)

cover: ## judge what make test and make resume have covered: every package has a floor
	@COVERAGE=$(COVERAGE) $(GO) test -vet=off -tags coverage -count=1 -run '^TestCoverage$$' .

# Left out here, because they start processes of their own, where the detector looks at one process: TestFairTurns, which
# measures how long clients of four processes wait, and TestPowerLoss, which replays what a traced process has written. Of
# TestLinear a tenth is done: what it judges is judged in full above.
race: ## the store, and a whole run through the engine, under the race detector (needs a C compiler)
	@if command -v "$$($(GO) env CC)" >/dev/null; then \
	  export CGO_ENABLED=1; set -ex; \
	  $(GO) test $(TESTFLAGS) -vet=off -race -skip 'FairTurns|PowerLoss|TestLinear$$' ./internal/store/... ./internal/claim; \
	  INTERLOCK_OPS=5000 INTERLOCK_CLAIM_OPS=50 $(GO) test $(TESTFLAGS) -vet=off -race -run 'TestLinear$$' ./internal/store/sqlite ./internal/claim; \
	  $(GO) test $(TESTFLAGS) -vet=off -race -run TestScripts/work ./internal/cli; \
	elif [ -n "$$INTERLOCK_CI" ]; then echo "race: no C compiler, and this is CI: failed"; exit 1; \
	else echo "race: SKIPPED, there is no C compiler here (install gcc)"; fi

resume: ## kill the engine at the points of the crash table and resume; stop it where its authority goes
	@mkdir -p $(COVERAGE)
	$(GO) test $(TESTFLAGS) -vet=off -tags failpoint -run 'TestResume|TestAuthority' -v -cover -coverpkg=./... ./internal/cli -args -test.gocoverdir=$(COVERAGE)

hostile: ## each attack of the corpus, by a hostile agent or a hostile repository (minutes)
	$(GO) test $(TESTFLAGS) -vet=off -timeout 20m -parallel 4 -run '^TestHostile' -v ./internal/cli

crash: ## kill each command before and after each write, and type it again; prints the matrix (minutes)
	$(GO) test $(TESTFLAGS) -vet=off -tags failpoint -timeout 30m -parallel 4 -run TestCrash -v ./internal/cli

torture: ## OPS=1000000 and more: kill and pause many processes, and judge what they were told
	INTERLOCK_OPS=$(OPS) $(GO) test $(TESTFLAGS) -vet=off -count=1 -timeout 0 -run TestLinear -v ./internal/store/sqlite
	INTERLOCK_CLAIM_OPS=$(CLAIMOPS) $(GO) test $(TESTFLAGS) -vet=off -count=1 -timeout 0 -run TestLinear -v ./internal/claim

races: ## the races 1,000 times, those of git 100 times, and a repository of 50,000 files (half an hour and more)
	INTERLOCK_ROUNDS=1000 $(GO) test $(TESTFLAGS) -vet=off -timeout 60m -run 'TestConformance/OneWinner$$' ./internal/store/sqlite
	INTERLOCK_ROUNDS=1000 $(GO) test $(TESTFLAGS) -vet=off -timeout 60m -run 'TestPushRace|TestScaleWorkspaces' ./internal/git
	INTERLOCK_ROUNDS=1000 $(GO) test $(TESTFLAGS) -vet=off -timeout 60m -run 'TestClaims/ClaimRace$$' ./internal/forge
	INTERLOCK_FILES=50000 $(GO) test $(TESTFLAGS) -vet=off -timeout 30m -run TestScaleFiles ./internal/cli

scale: ## 50,000 files and commits, 20,000 branches, 100,000 past runs, a file of 500 MB (a quarter of an hour); LARGE= for a minute
	$(LARGE) $(GO) test $(TESTFLAGS) -vet=off -timeout 60m -run TestScale -v ./internal/cli ./internal/git ./internal/store/sqlite

installations: ## two installations work 30 issues of one remote, killed at random (a minute and more)
	$(GO) test $(TESTFLAGS) -vet=off -timeout 20m -run '^TestTwoInstallations30$$' -v ./internal/cli

rows: ## measure each row of make bench once and shortly: that they can be measured, not what they say
	$(GO) test $(TESTFLAGS) -vet=off -timeout 20m -run '^TestRowsMeasure$$' -v ./internal/bench/rows

fuzz: ## FUZZTIME=30s for each: everything that parses, against what nobody has written
	@set -e; for p in $$($(GO) list ./...); do for f in $$($(GO) test -vet=off -list '^Fuzz' $$p | grep '^Fuzz'); do \
	  echo "$$p $$f"; $(GO) test -vet=off -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) $$p; done; done

bench: ## measure speed against floors and rivals, in turns: ROWS=G6,G7 ROUNDS=5 SECONDS=1 LONG=1 JSON=1 (docs/performance.md)
	@CGO_ENABLED=0 $(GO) build -trimpath -o bin/bench ./internal/bench/measure
	@./bin/bench --dir '$(DIR)' --rows '$(ROWS)' --rounds $(ROUNDS) --seconds $(SECONDS) $(if $(LONG),--long) $(if $(JSON),--json)

clean: ## remove what build left
	rm -rf bin
