# make            builds the tools (release)
# make help       says what else there is
PREFIX  ?= /usr/local
DESTDIR ?=
PROFILE ?= release
CARGO   ?= cargo
DIST    ?= dist

# Each tool, and the name of its counterpart in xfsprogs; a test compares this with the registry in src/cli/manual.rs.
TOOLS  := mkfs info db files logprint metadump mdrestore
COMPAT := mkfs:mkfs.xfs info:xfs_info db:xfs_db logprint:xfs_logprint metadump:xfs_metadump mdrestore:xfs_mdrestore

BINDIR  := $(DESTDIR)$(PREFIX)/bin
MANDIR  := $(DESTDIR)$(PREFIX)/share/man/man8
BASHDIR := $(DESTDIR)$(PREFIX)/share/bash-completion/completions
ZSHDIR  := $(DESTDIR)$(PREFIX)/share/zsh/site-functions
FISHDIR := $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d

BUILT   := target/$(PROFILE)
FLAGS   := --locked $(if $(filter release,$(PROFILE)),--release)
SOURCES := $(shell find src -name '*.rs') Cargo.toml Cargo.lock
STATIC  := $(shell rustc -vV 2>/dev/null | sed -n 's/^host: //p')

.PHONY: build help static demo test test-full check oracle bench fuzz man install install-compat uninstall clean
.DELETE_ON_ERROR:

build: $(BUILT)/.tools

# Only built if a source is newer, so that `sudo make install` needs no Rust after `make build man`.
$(BUILT)/.tools: $(SOURCES)
	$(CARGO) build $(FLAGS) --bins
	@touch $@

man: $(DIST)/.manual

$(DIST)/.manual: $(SOURCES) examples/manual.rs $(wildcard man/*.roff)
	$(CARGO) run --quiet $(FLAGS) --example manual -- $(DIST)
	@touch $@

help:
	@echo 'build           the tools, in $(BUILT)'
	@echo 'static          the same without shared libraries, in $(DIST)/static: one file a tool, for an initramfs'
	@echo 'demo            build, make a filesystem, show it, mount it read-only if that is allowed here'
	@echo 'test            all tests, the long ones in a fixed share; test-full: in full length'
	@echo 'check           formatting, lints and documentation'
	@echo 'oracle          install mkfs.xfs, xfs_repair and a guest kernel, and run the tests against them'
	@echo 'bench           the speed of mkfs against mkfs.xfs, and of metadump and mdrestore on IMAGES, if there are any'
	@echo 'fuzz            fuzz each target for a minute (SECONDS=60)'
	@echo 'man             man pages and completions, in $(DIST)'
	@echo 'install         tools, man pages and completions, below PREFIX=$(PREFIX) (and DESTDIR)'
	@echo 'install-compat  links with the names of xfsprogs: $(foreach pair,$(COMPAT),$(lastword $(subst :, ,$(pair))))'
	@echo 'uninstall       remove exactly these'

static:
	RUSTFLAGS='$(RUSTFLAGS) -C target-feature=+crt-static' $(CARGO) build --locked --release --bins --target $(STATIC)
	@mkdir -p $(DIST)/static
	@for tool in $(TOOLS); do \
		file=$(DIST)/static/xfskit-$$tool; \
		cp target/$(STATIC)/release/xfskit-$$tool $$file || exit 1; \
		if ldd $$file 2>/dev/null | grep -q '=>'; then echo "$$file needs shared libraries" >&2; exit 1; fi; \
		$$file --version >/dev/null || exit 1; \
		ls -l $$file; \
	done

demo: build
	@scripts/demo $(BUILT)

test:
	$(CARGO) test --locked --no-fail-fast

test-full:
	XFSKIT_FULL=1 $(CARGO) test --locked --release --no-fail-fast

check:
	$(CARGO) fmt --check
	$(CARGO) clippy --locked --all-targets -- -D warnings
	RUSTDOCFLAGS='-D warnings' $(CARGO) doc --locked --no-deps --document-private-items

oracle:
	tests/oracle/setup
	CI=1 $(CARGO) test --locked --release --test oracle --test oracle_info --test oracle_readers --test oracle_files --test oracle_logprint --test oracle_metadump --test oracle_db --test oracle_logwriter --test oracle_whiteouts -- --nocapture

bench: build
	benches/mkfs $(BUILT)/xfskit-mkfs
	$(if $(IMAGES),benches/db $(IMAGES) -- $(BUILT)/xfskit-db)
	$(if $(IMAGES),benches/metadump $(IMAGES) -- $(BUILT))
	$(if $(IMAGES),benches/logprint $(IMAGES) -- $(BUILT)/xfskit-logprint)

SECONDS ?= 60
fuzz:
	@$(CARGO) fuzz --version >/dev/null || { echo 'needs: cargo install cargo-fuzz; rustup toolchain install nightly' >&2; exit 1; }
	@for target in $$(cd fuzz && $(CARGO) fuzz list); do \
		(cd fuzz && $(CARGO) +nightly fuzz run $$target -- -max_total_time=$(SECONDS) -rss_limit_mb=512 -timeout=1) || exit 1; \
	done

install: $(BUILT)/.tools $(DIST)/.manual
	install -d '$(BINDIR)' '$(MANDIR)' '$(BASHDIR)' '$(ZSHDIR)' '$(FISHDIR)'
	@set -e; for tool in $(TOOLS); do \
		install -m 755 $(BUILT)/xfskit-$$tool '$(BINDIR)'; \
		install -m 644 $(DIST)/man/man8/xfskit-$$tool.8 '$(MANDIR)'; \
		install -m 644 $(DIST)/completions/bash/xfskit-$$tool '$(BASHDIR)'; \
		install -m 644 $(DIST)/completions/zsh/_xfskit-$$tool '$(ZSHDIR)'; \
		install -m 644 $(DIST)/completions/fish/xfskit-$$tool.fish '$(FISHDIR)'; \
		echo "installed $(BINDIR)/xfskit-$$tool"; \
	done

# Links only: what another package has put there is not overwritten.
install-compat: install
	@set -e; for pair in $(COMPAT); do \
		tool=xfskit-$${pair%%:*}; name=$${pair#*:}; \
		for link in "$(BINDIR)/$$name:$$tool" "$(MANDIR)/$$name.8:$$tool.8"; do \
			file=$${link%:*}; target=$${link##*:}; \
			if [ -e "$$file" ] && [ "$$(readlink "$$file")" != "$$target" ]; then \
				echo "$$file is there already, and is not ours" >&2; exit 1; \
			fi; \
			ln -sfn "$$target" "$$file"; echo "linked $$file"; \
		done; \
	done

uninstall:
	@set -e; for tool in $(TOOLS); do \
		rm -f '$(BINDIR)'/xfskit-$$tool '$(MANDIR)'/xfskit-$$tool.8 '$(BASHDIR)'/xfskit-$$tool \
			'$(ZSHDIR)'/_xfskit-$$tool '$(FISHDIR)'/xfskit-$$tool.fish; \
	done
	@set -e; for pair in $(COMPAT); do \
		tool=xfskit-$${pair%%:*}; name=$${pair#*:}; \
		for link in "$(BINDIR)/$$name:$$tool" "$(MANDIR)/$$name.8:$$tool.8"; do \
			file=$${link%:*}; target=$${link##*:}; \
			if [ "$$(readlink "$$file")" = "$$target" ]; then rm "$$file"; fi; \
		done; \
	done

clean:
	$(CARGO) clean
	rm -rf $(DIST)
