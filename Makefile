# SPDX-License-Identifier: LGPL-2.1-or-later
#
# One makefile for the whole tree. `make help` lists what it can do. Everything is built into $(O).

CC      ?= cc
CXX     ?= c++
OBJCOPY ?= objcopy
O       ?= build
CFLAGS  ?= -O2 -g
WARN     = -Wall -Wextra -Wno-unused-parameter -Wshadow -Wvla -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith \
           -Wcast-qual -Wundef -Wformat=2 $(WERROR)
# What VERSION says, and of a clone, which commit.
VERSION := $(file <VERSION)$(addprefix -g,$(shell git describe --always --dirty --exclude '*' 2>/dev/null))
# Of libptdecode: 0.0 promises no ABI.
SO_VERSION = 0.0.0
# glibc's own checks need an optimizer; a sanitizer, which sees more, needs them away.
FORTIFY  = $(if $(findstring -fsanitize,$(CFLAGS)),,$(if $(filter-out -O0,$(filter -O%,$(CFLAGS))),-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3))
HARDEN   = -fstack-protector-strong -fcf-protection=full $(FORTIFY)
ALL_CFLAGS = -std=gnu17 -D_GNU_SOURCE -I. -Iinclude -MMD -MP -fPIC $(HARDEN) $(WARN) $(CFLAGS)
# Objects are -fPIC, for the plugin and for whoever links the archive; what is linked from them is PIE.
HARDEN_LINK = -Wl,-z,relro,-z,now
LINK        = $(CC) $(ALL_CFLAGS) $(HARDEN_LINK) -pie $(LDFLAGS)
LINK_SHARED = $(CC) $(ALL_CFLAGS) $(HARDEN_LINK) -shared -Wl,--exclude-libs,ALL $(LDFLAGS)

# $(call quiet,WORD,FILE): what begins a command, so that WORD and FILE are shown in its place; with V=1 it
# is shown itself.
comma := ,
quiet = $(if $(V),,@$(if $(findstring s,$(firstword -$(MAKEFLAGS))),,printf '  %-3s %s\n' $(1) $(2);) )

# $(call link,COMMAND,OBJECTS,LIBRARIES): link the first prerequisite with more objects, with what they need of
# the archives among the order-only prerequisites, and with libraries. The linker tells which objects it took
# from the archives, which are thin. They become prerequisites of the program, in a file that is included
# below. So a changed object links what contains it, and nothing else.
define link
@mkdir -p $(@D)
$(call quiet,LD,$@)$(1) -o $@ $< $(2) -Wl,--start-group $(filter %.a,$|) -Wl,--end-group $(3) -Wl,-t,-t >$@.objects && \
	awk -v of=$(O)/ 'index($$0, of) == 1 && /\.o$$/ { print "$@: " $$0; print $$0 ":" }' $@.objects >$@.d && rm $@.objects
endef

# --- what is built from what -----------------------------------------------------------------

# The folders are those of tests/layers.
FOLDERS   := $(shell awk '/^[a-z]/ { print $$1 }' tests/layers)
files      = $(filter-out %/main.c,$(foreach f,$(FOLDERS),$(if $(filter $(1),$f),$(if $(filter $(2),$f),,$(wildcard $f/*.c)))))
LIBCOMMON := $(call files,util util/%)
LIBDECODE := $(LIBCOMMON) $(call files,decoder decoder/%,decoder/cmd decoder/dlfilter decoder/examples)
LIBFILTER := $(filter-out %/dlfilter.c,$(call files,decoder/dlfilter))
LIBCMD    := $(call files,decoder/cmd)
LIBPTD    := $(call files,daemon daemon/%,daemon/plugin)
LIBEMU    := $(filter-out %/plugin.c,$(call files,daemon/plugin))
LIBCTL    := $(call files,ctl)
TESTLIB   := $(filter-out %/plugin.c,$(wildcard tests/lib/*.c tests/judge/*.c tests/system/*.c))
UNITS     := $(patsubst tests/unit/test-%.c,%,$(wildcard tests/unit/test-*.c))
FUZZERS   := $(patsubst tests/fuzz/fuzz-%.c,%,$(wildcard tests/fuzz/fuzz-*.c))
TOOLS     := $(patsubst tests/tools/%.c,%,$(wildcard tests/tools/*.c))
TARGETS   := $(patsubst tests/targets/%,%,$(wildcard tests/targets/*.c tests/targets/*.cc))
PROGRAMS   = $(O)/ptd $(O)/ptd-keeper $(O)/ptd-collector $(O)/ptctl $(O)/ptdecode $(O)/ptd-emu.so $(O)/libptd-dlfilter.so
PROVE      = $(O)/prove $(O)/ptd-subject
LIBRARY    = $(O)/libptdecode.so.$(SO_VERSION) $(O)/libptdecode.a

LIBS_DECODE = -lipt -lZydis -ldw -lelf -llzma -liberty -lzstd -lcrypto -lisal -lminizip -llz4 -lz
LIBS_CMD    = $(LIBS_DECODE) -lseccomp
LIBS_DAEMON = -lsystemd -lelf -lcrypto
LIBS_TEST   = -lcmocka $(LIBS_CMD) $(LIBS_DAEMON) -lm

# --- packages ----------------------------------------------------------------------------------

PACKAGES_BUILD = gcc binutils libc6-dev libipt-dev libzydis-dev libelf-dev libdw-dev libiberty-dev \
                 liblzma-dev libzstd-dev zlib1g-dev libminizip-dev liblz4-dev libisal-dev libssl-dev libsystemd-dev libseccomp-dev \
                 libdebuginfod-dev
# Later releases build qemu-user without plugins: "make emulator" has one then.
PACKAGES_DEMO  = $(if $(filter VERSION_CODENAME=bookworm,$(file </etc/os-release)),qemu-user) python3 $(if $(shell command -v node),,nodejs)
PACKAGES_CHECK = libcmocka-dev unzip elfutils lcov mandoc dwz xz-utils g++ gcc-multilib clang llvm libclang-rt-%clang%-dev clang-format linux-perf python3 python3-prometheus-client binutils strace libglib2.0-bin pkg-config \
                 qemu-system-x86 pahole busybox-static cpio systemd php-cli valgrind curl redis-tools
PACKAGES_DEB   = build-essential debhelper lintian
PACKAGES_LONG  = $(PACKAGES_DEB) mmdebstrap libc6-dbg bolt-%newest% chromium rustc default-jdk-headless ocaml-nox golang-go erlang-base \
                 nginx haproxy php-fpm gunicorn postgresql

# What a target builds first is built on all CPUs, unless the user says on how many.
ON_ALL_CPUS = $(if $(findstring jobserver,$(MAKEFLAGS)),,-j$(shell nproc))

all: $(PROGRAMS) $(PROVE) $(LIBRARY) ## the programs and the library, into build/

# Other flags in this file are other objects.
$(O)/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(call quiet,CC,$<)$(CC) $(ALL_CFLAGS) -DPTD_VERSION='"$(VERSION)"' -c -o $@ $<

# The page of the HTML report is part of the program.
$(O)/decoder/sink/html/html.o: $(wildcard decoder/sink/html/*.html decoder/sink/html/*.css decoder/sink/html/*.js)

$(O)/libcommon.a: $(LIBCOMMON:%.c=$(O)/%.o)
$(O)/libdecode.a: $(LIBDECODE:%.c=$(O)/%.o)
$(O)/libfilter.a: $(LIBFILTER:%.c=$(O)/%.o)
$(O)/libcmd.a: $(LIBCMD:%.c=$(O)/%.o)
$(O)/libptd.a: $(LIBPTD:%.c=$(O)/%.o)
$(O)/libemu.a: $(LIBEMU:%.c=$(O)/%.o)
$(O)/libctl.a: $(LIBCTL:%.c=$(O)/%.o)
$(O)/libtest.a: $(TESTLIB:%.c=$(O)/%.o)
$(O)/%.a:
	@rm -f $@
	$(call quiet,AR,$@)$(AR) rcsT $@ $^

# The library, as it is installed, exports what its headers declare and no other name.
$(O)/libptdecode.so.$(SO_VERSION): $(O)/libdecode.a decoder/libptdecode.map
	$(call quiet,LD,$@)$(CC) $(ALL_CFLAGS) $(HARDEN_LINK) -shared -Wl,-soname,libptdecode.so.0 \
		-Wl,--version-script=decoder/libptdecode.map $(LDFLAGS) \
		-o $@ -Wl,--whole-archive $< -Wl,--no-whole-archive $(LIBS_DECODE)
$(O)/libptdecode.a: $(O)/libdecode.a
	@rm -f $@
	$(call quiet,AR,$@)$(LD) -r -o $(O)/libptdecode.o --whole-archive $< && \
		$(OBJCOPY) --wildcard --keep-global-symbol='ptd_*' $(O)/libptdecode.o && \
		$(AR) rcs $@ $(O)/libptdecode.o

$(O)/ptd: $(O)/daemon/main.o | $(O)/libptd.a $(O)/libcommon.a
	$(call link,$(LINK),,$(LIBS_DAEMON))
$(O)/ptd-keeper: $(O)/daemon/helper/keeper/main.o | $(O)/libptd.a $(O)/libcommon.a
	$(call link,$(LINK))
$(O)/ptd-collector: $(O)/daemon/helper/collector/main.o | $(O)/libptd.a $(O)/libcommon.a
	$(call link,$(LINK),,-lelf -lcrypto)
$(O)/ptctl: $(O)/ctl/main.o | $(O)/libctl.a $(O)/libcommon.a
	$(call link,$(LINK),,-lsystemd)
$(O)/ptdecode: $(O)/decoder/cmd/main.o | $(O)/libcmd.a $(O)/libdecode.a
	$(call link,$(LINK),,$(LIBS_CMD))
# perf script loads it.
$(O)/libptd-dlfilter.so: $(O)/decoder/dlfilter/dlfilter.o decoder/dlfilter/dlfilter.map | $(O)/libfilter.a $(O)/libcmd.a $(O)/libdecode.a
	$(call link,$(LINK_SHARED) -Wl$(comma)--version-script=decoder/dlfilter/dlfilter.map,,$(LIBS_DECODE))
# The plugin's undefined symbols are QEMU's.
$(O)/ptd-emu.so: $(O)/daemon/plugin/plugin.o | $(O)/libemu.a $(O)/libdecode.a
	$(call link,$(LINK_SHARED),,-lZydis -lelf)
# The same for a whole guest, for tests.
$(O)/ptd-emu-system.so: $(O)/tests/system/plugin.o | $(O)/libtest.a $(O)/libemu.a $(O)/libdecode.a
	$(call link,$(LINK_SHARED),,-lZydis)

# What make bench compares the plugin with.
$(O)/bench/minimal.so: $(O)/tests/bench/minimal.o | $(O)/libemu.a $(O)/libdecode.a
	@mkdir -p $(@D)
	$(call link,$(LINK_SHARED),,-lZydis)

# What ptctl check --prove records and steps. At fixed addresses and without shared libraries, so that each process has
# the same code at the same place; so no other flags, which may want others.
$(O)/ptd-subject: $(wildcard ctl/prove/*.c ctl/prove/*.h)
	@mkdir -p $(@D)
	$(call quiet,LD,$@)$(CC) -std=gnu17 -D_GNU_SOURCE -I. -Iinclude -O2 -g -ffile-prefix-map=$(CURDIR)=. $(WARN) -static -fno-pie -pthread \
		-o $@ $(filter %.c,$^)
$(O)/prove: ctl/prove/prove
	@mkdir -p $(@D)
	$(call quiet,CP,$@)cp $< $@

# --- tests -------------------------------------------------------------------------------------

# What tests/lib/failing can make fail in units. It also looks for leaks, and tests/lib/heldlock for locks
# that are not held.
FAILING = malloc calloc realloc free strdup strndup asprintf __asprintf_chk vasprintf __vasprintf_chk read pread __pread_chk write pwrite lseek \
          mmap ftruncate fstat stat fstatat fstatvfs fsync mkdirat linkat renameat renameat2 readlink \
          fopen fdopen opendir fdopendir memfd_create eventfd epoll_create1 epoll_ctl socket socketpair \
          pthread_create open openat arena_alloc arena_copy arena_strdup map_put
LINK_UNIT = $(LINK) $(FAILING:%=-Wl,--wrap=%) -Wl,--undefined=__wrap_malloc -Wl,--wrap=pthread_mutex_unlock

# They start the programs that lie beside them.
$(O)/test-collector $(O)/test-jitfile $(O)/test-objectstore: $(O)/ptd-collector
$(O)/test-keeper: $(O)/ptd-keeper
# A disk that does not answer.
$(O)/test-idreader: LINK_UNIT += -Wl,--wrap=buildid_read

$(O)/test-%: $(O)/tests/unit/test-%.o | $(O)/libptd.a $(O)/libctl.a $(O)/libfilter.a $(O)/libcmd.a $(O)/libemu.a $(O)/libdecode.a $(O)/libtest.a
	$(call link,$(LINK_UNIT),,$(LIBS_TEST))
$(O)/replay-%: $(O)/tests/fuzz/fuzz-%.o $(O)/tests/fuzz/replay.o | $(O)/libtest.a $(O)/libptd.a $(O)/libdecode.a
	$(call link,$(LINK),$(O)/tests/fuzz/replay.o,$(LIBS_DECODE) $(LIBS_DAEMON))
$(O)/tools/%: $(O)/tests/tools/%.o | $(O)/libtest.a $(O)/libcmd.a $(O)/libemu.a $(O)/libdecode.a
	$(call link,$(LINK),,$(LIBS_DECODE) $(LIBS_TOOL))
$(O)/tools/attack-pool $(O)/tools/attack-requests: LIBS_TOOL = -lsystemd
$(O)/bench/%: $(O)/tests/bench/%.o | $(O)/libdecode.a
	$(call link,$(LINK),,$(LIBS_DECODE))
# ptdecode itself, but for what its decoder does first.
$(O)/tools/escape: $(O)/tests/tools/escape.o $(O)/decoder/cmd/main.o | $(O)/libcmd.a $(O)/libdecode.a
	$(call link,$(LINK) -Wl$(comma)--wrap=ptd_decoder_next$(comma)--wrap=rawcode_add_elf,$(O)/decoder/cmd/main.o,$(LIBS_CMD))
# ptd itself, but for how it opens PT.
NOPT = source_pt_exists pmu_read pmu_config ring_map_aux ptclock_read
$(O)/tools/ptd-nopt: $(O)/tests/tools/ptd-nopt.o $(O)/daemon/main.o | $(O)/libptd.a $(O)/libcommon.a
	$(call link,$(LINK) $(NOPT:%=-Wl$(comma)--wrap=%),$(O)/daemon/main.o,$(LIBS_DAEMON))
# Programs that are recorded: built as a user would build them, without our flags.
$(O)/targets/%.c: tests/targets/%.c
	@mkdir -p $(@D)
	$(call quiet,CC,$<)$(CC) -O2 -g -pthread -Iinclude -o $@ $<
$(O)/targets/%.c: tests/bench/%.c
	@mkdir -p $(@D)
	$(call quiet,CC,$<)$(CC) -O2 -g -o $@ $<
$(O)/targets/%.cc: tests/targets/%.cc
	@mkdir -p $(@D)
	$(call quiet,CXX,$<)$(CXX) -O2 -g -pthread -o $@ $<

# The library, and a program that decodes to all formats, with what finds races; of a build that has no other sanitizer.
TSAN = $(if $(findstring -fsanitize,$(CFLAGS)),,$(O)/tsan/libptdecode.so.$(SO_VERSION) $(O)/tsan/tools/formats)
$(O)/tsan/tools/formats: $(O)/tsan/libptdecode.so.$(SO_VERSION) ;
$(O)/tsan/libptdecode.so.$(SO_VERSION): FORCE
	@$(MAKE) --no-print-directory O=$(O)/tsan WERROR= CFLAGS='-O1 -g -fsanitize=thread' $@ $(O)/tsan/tools/formats
FORCE:

tests: $(PROGRAMS) $(PROVE) $(LIBRARY) $(TSAN) $(UNITS:%=$(O)/test-%) $(FUZZERS:%=$(O)/replay-%) $(TOOLS:%=$(O)/tools/%) \
       $(TARGETS:%=$(O)/targets/%) $(O)/ptd-emu-system.so

# The servers of packages that would start them: they are unpacked only.
SERVERS = nginx
$(O)/servers/%.deb: | packages-check
	@mkdir -p $(@D) && cd $(@D) && apt-get -qq -o APT::Sandbox::User=root download $* && dpkg-deb -x $*_*.deb . && mv $*_*.deb $*.deb

GET_EMULATOR = @ctl/get-emulator $(O)/qemu
emulator: packages-demo ## an emulator that can record, into $(O)/qemu, if the system's cannot
	$(GET_EMULATOR)

demo: packages-demo ## record a real program, take a snapshot, decode it, show what is in it
	$(GET_EMULATOR)
	@$(MAKE) $(ON_ALL_CPUS) --no-print-directory -s all
	@tests/demo.sh $(O)

check: packages-check $(SERVERS:%=$(O)/servers/%.deb) ## every test but the long ones
	$(GET_EMULATOR)
	$(MAKE) $(ON_ALL_CPUS) tests
	tests/run.sh $(O)

check-guest: packages-check ## those tests of "check" that run in a guest: the real kernel's perf
	$(GET_EMULATOR)
	$(MAKE) $(ON_ALL_CPUS) tests
	tests/run.sh $(O) guest-

check-long: packages-long ## what takes longer: big programs, long mutation runs
	$(GET_EMULATOR)
	$(MAKE) $(ON_ALL_CPUS) tests
	PTD_LONG=1 tests/run.sh $(O)

check-asan: packages-check ## units, corpora and small recordings under ASan and UBSan
	$(GET_EMULATOR)
	$(MAKE) $(ON_ALL_CPUS) all O=build
	$(MAKE) $(ON_ALL_CPUS) tests O=build/asan PTD_SANITIZE=1 WERROR=$(WERROR) \
		CFLAGS='-O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all'
	PTD_ASAN=1 PTD_EMU_SO=$(CURDIR)/build/ptd-emu.so tests/run.sh build/asan

check-clang: packages-check ## everything compiled by clang, and the units and corpora run
	$(MAKE) $(ON_ALL_CPUS) tests O=build/clang CC=clang CXX=clang++ WERROR=$(WERROR)
	PTD_UNITS=1 tests/run.sh build/clang

FUZZ_SOURCES_calls = tests/lib/callcheck.c
FUZZ_SOURCES_fdrlog = tests/lib/callcheck.c tests/lib/loggedcheck.c
FUZZ_SOURCES_tracesource = $(wildcard tests/judge/*.c)
FUZZ_SOURCES_ovnilog = tests/lib/callcheck.c tests/lib/loggedcheck.c tests/lib/tempdir.c
# Whatever a file claims, the search for its build-id takes no memory.
FUZZ_buildid = -malloc_limit_mb=8 -rss_limit_mb=256 -max_len=262144
# The recorder's threads allocate while an input is judged, so that leaks show only when they have ended.
FUZZ_control = -detect_leaks=0
fuzz-%: ## fuzz one parser for T seconds, e.g. make fuzz-perfdata T=60
	@mkdir -p $(O)/found-$*
	clang $(ALL_CFLAGS) -U_FORTIFY_SOURCE -DPTD_VERSION='"fuzz"' -fsanitize=fuzzer,address,undefined \
		-fno-sanitize-recover=all \
		-o $(O)/$@ tests/fuzz/$@.c $(FUZZ_SOURCES_$*) $(LIBDECODE) $(LIBPTD) $(LIBS_DECODE) $(LIBS_DAEMON)
	$(O)/$@ -max_total_time=$(or $(T),60) $(FUZZ_$*) $(O)/found-$* tests/fuzz/corpus/$*

bench: export HEADLINE = yes
bench: bench-all ## speed, as ratios against a peer measured in the same run: what README shows
bench-all: packages-check ## the same of all inputs and outputs: hours
	$(GET_EMULATOR)
	@$(MAKE) $(ON_ALL_CPUS) --no-print-directory -s all $(O)/bench/runs $(O)/bench/iptpeer $(O)/bench/minimal.so $(O)/tools/auxbytes \
		$(O)/tools/reshape $(O)/targets/branchy.c $(O)/targets/numeric.c $(O)/targets/rounds.c $(O)/targets/calls.c \
		$(O)/ptd-emu-system.so
	@O=$(O) tests/bench/run.sh

lint: $(PROGRAMS) $(LIBRARY) $(O)/ptd-emu-system.so ## formatting, columns, messages, layers, golden coverage, headers that stand alone, hardening, exported symbols
	clang-format --dry-run -Werror $$(git ls-files '*.[ch]')
	tests/check-columns.sh
	tests/check-messages.sh
	tests/check-layers.sh
	tests/check-coverage.sh
	tests/check-hardening.sh $(O) $(notdir $(PROGRAMS) $(filter %.so.$(SO_VERSION),$(LIBRARY))) ptd-emu-system.so
	tests/check-symbols.sh $(firstword $(LIBRARY)) decoder/libptdecode.symbols $(file <VERSION)
	for s in $$(git ls-files '*.js' '*.mjs'); do node --check $$s || exit 1; done
	for h in $$(git ls-files 'include/*.h' 'util/*.h' 'decoder/*.h' 'daemon/*.h' 'ctl/*.h'); do \
		$(CC) $(ALL_CFLAGS) -MF /dev/null -fsyntax-only -include $$h -x c /dev/null || exit 1; done
	$(CC) -std=c11 -Iinclude -pedantic -Wall -Wextra -Werror -fsyntax-only decoder/examples/*.c
	$(CXX) -std=c++17 -Iinclude -pedantic -Wall -Wextra -Werror -fsyntax-only decoder/examples/*.cc
	for h in $$(git ls-files 'include/ptd/*.h'); do \
		echo 'extern int alone;' | $(CC) -std=c11 -Iinclude -pedantic -Wall -Wextra -Werror \
			-fsyntax-only -include $$h -x c - || exit 1; \
		echo 'extern int alone;' | $(CXX) -std=c++17 -Iinclude -pedantic -Wall -Wextra -Werror \
			-fsyntax-only -include $$h -x c++ - || exit 1; done

format: ## let clang-format have the last word
	clang-format -i $$(git ls-files '*.[ch]')

packages-demo packages-check packages-long packages-deb: packages-%:
	@tests/packages.sh $(PACKAGES_BUILD) $(if $(filter deb,$*),$(PACKAGES_DEB),$(PACKAGES_DEMO)) \
		$(if $(filter check long,$*),$(PACKAGES_CHECK)) $(if $(filter long,$*),$(PACKAGES_LONG))

# What is installed below the prefix: mode, file, place.
COMPLETIONS = share/bash-completion/completions
PAGES     = $(wildcard include/ptd/*.[1-8] daemon/*.[1-8] ctl/*.[1-8] decoder/*.[1-8])
INSTALLED = 755:$(O)/ptctl:bin/ptctl 755:$(O)/ptdecode:bin/ptdecode 755:$(O)/ptd:sbin/ptd \
            755:$(O)/ptd-subject:lib/ptd/ptd-subject 755:$(O)/prove:lib/ptd/prove \
            755:$(O)/ptd-emu.so:lib/ptd/ptd-emu.so 755:ctl/get-emulator:lib/ptd/get-emulator \
            $(foreach f,$(wildcard $(O)/qemu/qemu-* $(O)/qemu/*.so.*),755:$f:lib/ptd/qemu/$(notdir $f)) \
            $(foreach f,$(wildcard $(O)/qemu/*.copyright),644:$f:lib/ptd/qemu/$(notdir $f)) \
            644:$(O)/libptd-dlfilter.so:lib/perf-core/dlfilters/libptd-dlfilter.so \
            644:$(O)/libptdecode.a:$(libdir)/libptdecode.a \
            644:$(O)/libptdecode.so.$(SO_VERSION):$(libdir)/libptdecode.so.$(SO_VERSION) \
            644:decoder/ptdecode.pc:$(libdir)/pkgconfig/ptdecode.pc \
            $(foreach e,$(wildcard decoder/examples/*),644:$e:share/doc/ptd/examples/$(notdir $e)) \
            $(foreach h,$(wildcard include/ptd/*.h),644:$h:$h) \
            644:systemd/ptd.service:lib/systemd/system/ptd.service \
            755:$(O)/ptd-keeper:lib/ptd/ptd-keeper \
            644:systemd/ptd-keeper.service:lib/systemd/system/ptd-keeper.service \
            755:$(O)/ptd-collector:lib/ptd/ptd-collector \
            644:systemd/ptd-collector.service:lib/systemd/system/ptd-collector.service \
            644:systemd/ptd.socket:lib/systemd/system/ptd.socket \
            644:systemd/ptd-metrics.socket:lib/systemd/system/ptd-metrics.socket \
            644:systemd/ptd-metrics@.service:lib/systemd/system/ptd-metrics@.service \
            644:systemd/ptd-snapshot@.service:lib/systemd/system/ptd-snapshot@.service \
            644:systemd/ptd.catalog:lib/systemd/catalog/ptd.catalog \
            644:systemd/ptd.preset:lib/systemd/system-preset/60-ptd.preset \
            644:systemd/ptd.sysusers:lib/sysusers.d/ptd.conf \
            644:systemd/ptd.tmpfiles:lib/tmpfiles.d/ptd.conf \
            755:systemd/perf-level:lib/ptd/perf-level \
            $(foreach c,$(wildcard */*.bash),644:$c:$(COMPLETIONS)/$(basename $(notdir $c))) \
            $(foreach p,$(PAGES),644:$p:share/man/man$(subst .,,$(suffix $p))/$(notdir $p))

prefix ?= /usr/local
libdir ?= lib
install: all ## programs, plugin, library, headers, manual pages, completions, units; DESTDIR=, prefix= and libdir=
	@for i in $(INSTALLED); do \
		mode=$${i%%:*} to=$(DESTDIR)$(prefix)/$${i##*:} from=$${i#*:}; \
		echo "install $$to"; \
		install -D -m$$mode $${from%:*} $$to || exit 1; done
	ln -sf libptdecode.so.$(SO_VERSION) $(DESTDIR)$(prefix)/$(libdir)/libptdecode.so.0
	ln -sf libptdecode.so.0 $(DESTDIR)$(prefix)/$(libdir)/libptdecode.so
	sed -i 's|@prefix@|$(prefix)|; s|@libdir@|$(libdir)|; s|@version@|$(SO_VERSION)|; s|@libs@|$(LIBS_DECODE)|' \
		$(DESTDIR)$(prefix)/$(libdir)/pkgconfig/ptdecode.pc
	sed -i 's|^\(Exec[A-Za-z]*=[-+]*\)/usr/|\1$(prefix)/|' \
		$(DESTDIR)$(prefix)/lib/systemd/system/ptd.service \
		$(DESTDIR)$(prefix)/lib/systemd/system/ptd-keeper.service \
		$(DESTDIR)$(prefix)/lib/systemd/system/ptd-collector.service \
		$(DESTDIR)$(prefix)/lib/systemd/system/ptd-metrics@.service \
		$(DESTDIR)$(prefix)/lib/systemd/system/ptd-snapshot@.service
	[ -e $(DESTDIR)/etc/ptd/ptd.conf ] || \
		install -D -m644 -t $(DESTDIR)/etc/ptd systemd/ptd.conf

uninstall: ## remove what install made, but changed settings and /var/lib/ptd; DESTDIR= and prefix=
	@for i in $(INSTALLED); do \
		echo "remove $(DESTDIR)$(prefix)/$${i##*:}"; \
		rm -f $(DESTDIR)$(prefix)/$${i##*:} || exit 1; done
	rm -f $(DESTDIR)$(prefix)/$(libdir)/libptdecode.so.0 $(DESTDIR)$(prefix)/$(libdir)/libptdecode.so
	[ ! -e $(DESTDIR)/etc/ptd/ptd.conf ] || ! cmp -s systemd/ptd.conf $(DESTDIR)/etc/ptd/ptd.conf || \
		rm $(DESTDIR)/etc/ptd/ptd.conf
	for d in $(prefix)/lib/ptd/qemu $(prefix)/lib/ptd $(prefix)/lib/perf-core/dlfilters $(prefix)/lib/perf-core $(prefix)/$(libdir)/pkgconfig $(prefix)/include/ptd $(prefix)/share/doc/ptd/examples $(prefix)/share/doc/ptd /etc/ptd; do \
		[ ! -d $(DESTDIR)$$d ] || rmdir --ignore-fail-on-non-empty $(DESTDIR)$$d || exit 1; done
# Directories that others may have made are left, but for those of a DESTDIR.
	[ -z "$(DESTDIR)" ] || [ ! -d "$(DESTDIR)" ] || find "$(DESTDIR)" -mindepth 1 -depth -type d -empty -delete

# In a copy, since dpkg-buildpackage writes into the tree that it builds, and above it; and with O of its own.
deb: packages-deb ## Debian packages, into build/deb/
	rm -rf $(O)/deb
	mkdir -p $(O)/deb/ptd
	git ls-files -z | xargs -0 cp --parents -t $(O)/deb/ptd
	cd $(O)/deb/ptd && env -u O -u MAKEFLAGS dpkg-buildpackage --no-sign --build=binary -j$(shell nproc)
	rm -rf $(O)/deb/ptd

dist: ## the sources, into build/ptd-VERSION.tar.xz
	@mkdir -p $(O)
	git archive --prefix=ptd-$(file <VERSION)/ HEAD | xz -T0 >$(O)/ptd-$(file <VERSION).tar.xz

clean: ## remove what was built
	rm -rf $(O)

help: ## this text
	@sed -nE 's/^([a-z%-]+):.*## (.*)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 24

.PHONY: all tests emulator demo check check-long check-asan check-clang bench bench-all lint format install uninstall dist clean help check-guest \
        deb packages-demo packages-check packages-long packages-deb FORCE
.PRECIOUS: $(O)/%.o
# What compiler and linker have written of what there still is; no rule makes it.
NOTED := $(sort $(wildcard $(patsubst %.c,$(O)/%.d,$(wildcard $(FOLDERS:%=%/*.c) tests/*/*.c)) $(O)/*.d $(O)/tools/*.d $(O)/bench/*.d))
$(NOTED): ;
-include $(NOTED)
