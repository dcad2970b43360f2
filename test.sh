#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Installs what is missing, builds, and runs every test.  Arguments go to ctest (-R NAME, ...).
set -eu
cd "$(dirname "$0")"
. ./.ci/setup.sh
# shellcheck disable=SC2086
install_packages $packages
install_chart_tools
build build all
cmp -s build/cosmic-search cosmic-search || cp build/cosmic-search cosmic-search
exec ctest --test-dir build --output-on-failure -j "$(nproc)" "$@"
