# SPDX-License-Identifier: GPL-2.0
# The front page. What is compiled, and how, is in Kbuild.

.DEFAULT_GOAL := all
.PHONY: all help modules objects modules_install clean lab lab-shell demo check \
	check-debug bench-insn bench-genctr power-cut soak lint

all: modules

help:
	@echo 'Persistent memory block drivers with DMA offload, version $(file < VERSION)'
	@echo
	@echo 'Build and install:'
	@echo '  all, modules     build pmem_core.ko, pmem_dma.ko and pmem_cpu.ko'
	@echo '  modules_install  install them for the chosen kernel, and the modprobe.d file,'
	@echo '                   in which everything is commented out (INSTALL_MOD_PATH=)'
	@echo '  clean            remove what was built'
	@echo
	@echo 'Try and test, in virtual machines with an emulated DMA engine (as root):'
	@echo '  demo             compare pmem_dma with the stock driver, print a table'
	@echo '  check            run all tests (CASE=glob for some of them)'
	@echo '  check-debug      run them on a kernel that looks for bugs (made once, takes long)'
	@echo '  bench-insn       count the instructions of an I/O, compare with the baseline'
	@echo '                   (ACCEPT=1: make them the baseline)'
	@echo '  bench-genctr     what DEBUG_GENCTR=1 costs, by fio'
	@echo '  power-cut        kill the test machine while it writes, and look for what is missing'
	@echo '                   (CUTS=50)'
	@echo '  soak             everything at once and at random for a long time (SOAK_MINUTES=30)'
	@echo '  lint             run the static checkers'
	@echo '  lab              make or update the Debian root that these need'
	@echo '  lab-shell        boot the test machine and give a shell in it'
	@echo
	@echo 'Which kernel (default: the running one, else the newest with headers here):'
	@echo '  KVER=6.12        the newest release of a series, from the lab if not here'
	@echo '  KVER=debug       the kernel of check-debug'
	@echo '  KVER=RELEASE     a release, as in /lib/modules'
	@echo '  KDIR=DIR         a kernel build directory'
	@echo
	@echo 'Other variables:'
	@echo '  W=1              more compiler warnings (kbuild)'
	@echo '  DEBUG_GENCTR=1   check the generation of DMA callbacks (see Kconfig)'
	@echo '  PMEM_LAB_CACHE=DIR    where the lab is (~/.cache/pmem-lab)'
	@echo '  PMEM_LAB_MACHINES=N   virtual machines at a time (what cores and memory allow)'

# Asked for once, by the first recipe that needs it: build directory, release,
# and host or lab.
kernel = $(eval kernel := $$(shell compat/find-kernel.sh \
	KDIR='$(KDIR)' KVER='$(KVER)'))$(or $(kernel),$(error No kernel to build for))
kdir = $(word 1,$(kernel))
release = $(word 2,$(kernel))
in_root = $(if $(filter lab,$(word 3,$(kernel))),tests/lab/in-root)

# One tree serves several kernels: the sources are linked into a directory of
# each kernel, next to the objects.
out = $(or $(OUT),build/$(release))
sources = Kbuild compat $(wildcard *.c *.h)
kbuild = $(in_root) $(MAKE) -C $(kdir) M=$(abspath $(out))

objects:
	@mkdir -p $(out)
	@find $(out) -maxdepth 1 -xtype l -delete
	@ln -sfnr $(sources) $(out)/
	+$(kbuild) modules

modules: objects
	@for ko in $(out)/*.ko; do ln -sfn "$$ko" .; done

# Not kbuild's modules_install: with a distribution's header package it has no
# key to sign with and no System.map for depmod, and complains of both.
mod_root = $(patsubst %/,%,$(INSTALL_MOD_PATH))
mod_dir = $(mod_root)/lib/modules/$(release)
conf = $(mod_root)/etc/modprobe.d/pmem-dma.conf

modules_install: export PATH := $(PATH):/usr/sbin:/sbin
modules_install: modules
	@test -n '$(mod_root)' || test -d $(mod_dir) || { \
		echo 'make: kernel $(release) is not installed on this machine;' \
			'INSTALL_MOD_PATH= names another root' >&2; exit 1; }
	@command -v depmod >/dev/null || { \
		echo 'make: there is no depmod here (package kmod)' >&2; exit 1; }
	install -D -m 644 -t $(mod_dir)/updates $(out)/*.ko
	depmod $(if $(mod_root),-b $(mod_root) )$(release)
	@if test -e $(conf); then echo 'Kept $(conf) as it is.'; \
	else install -D -m 644 modprobe.d/pmem-dma.conf $(conf); fi
	@echo
	@echo 'Installed pmem_core, pmem_dma and pmem_cpu in $(mod_dir)/updates.'
	@echo 'The stock driver stays in charge. To select pmem_dma from the next boot on:'
	@printf '  %s\n' "sed -i -E 's/^#(alias|softdep) /\1 /' $(conf)"
	@echo 'Details, and the way back, are in that file.'

clean:
	rm -rf build *.ko

lab:
	tests/lab/prepare

lab-shell:
	tests/lab/boot --shell

demo:
	tests/demo/run

check:
	tests/run

check-debug:
	tests/run --kver debug

bench-insn:
	tests/perf/run

bench-genctr:
	tests/perf/genctr

power-cut:
	tests/power-cut/run

# Rounds are begun in that time; the last one is given more to come to its end.
soak_minutes = $(or $(SOAK_MINUTES),30)
soak:
	tests/lab/prepare
	tests/lab/boot --run tests/cases/105-soak.sh --no-engine --live --out build/soak \
		--kver $(or $(KVER),6.12) --timeout $$(($(soak_minutes) * 60 + 900)) \
		--env SOAK_MINUTES=$(soak_minutes) $(if $(SOAK_SEED),--env SOAK_SEED=$(SOAK_SEED))

lint:
	tests/lint
