# `make check` is what CI runs, no more and no less. CONTRIBUTING.md says when to
# use the rest. The tools are pinned in tools/go.mod and are built on first use,
# which takes a few minutes.

LINT := go tool -modfile=tools/go.mod golangci-lint
FUZZTIME ?= 30s

.PHONY: check test lint lint-selfcheck tidy fmt-diff fmt bench golden fuzz demo

check: test lint tidy fmt-diff lint-selfcheck

# The race detector watches goroutines, of which the core has none: with -short its
# random histories are a twentieth of what the first run plays.
test:
	go test ./... && go test -race -short ./...

lint: # the root module, then the tools' own
	$(LINT) run ./...
	cd tools && go tool golangci-lint run ./...

lint-selfcheck: # proves that each lint rule reports what it is there to report
	cd tools && go test -count=1 ./...

tidy:
	go mod tidy -diff

fmt-diff: # gofumpt, as golangci-lint carries it
	$(LINT) fmt --diff

fmt:
	$(LINT) fmt

bench: # microbenchmarks, then the whole broker from outside
	go test -run '^$$' -bench . -benchmem ./...
	go run ./cmd/quotabroker bench

# A golden file is rewritten by the flag of the test that owns it: -rewrite for
# datadriven transcripts, -update for our own, and $UPDATE for testscript.
# Then the work begins: git diff.
dirs = $(shell grep -rlE --include='*_test.go' $(1) . | grep -v '^./tools/' | xargs -r -n1 dirname | sort -u)
golden:
	set -e; for d in $(call dirs,'"github.com/cockroachdb/datadriven"'); do go test $$d -rewrite; done
	set -e; for d in $(call dirs,'flag.Bool."update"'); do go test $$d -update; done
	set -e; for d in $(call dirs,'go-internal/testscript"'); do UPDATE=1 go test $$d; done

fuzz: # every target, FUZZTIME each; a failing input lands in the package's testdata
	@go test -list '^Fuzz' ./... \
	| awk '/^Fuzz/ { f[n++] = $$1 } /^ok/ { for (i = 0; i < n; i++) print $$2, f[i]; n = 0 }' \
	| while read -r pkg f; do \
		echo "$$pkg $$f"; \
		go test -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) "$$pkg" </dev/null || exit 1; \
	done

demo: # the README's night, without and with the broker, no key needed
	go run ./cmd/quotabroker demo
