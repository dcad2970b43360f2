# SPDX-License-Identifier: GPL-3.0-or-later
#
# Sourced by run.sh, test.sh and .ci/run: installs what is missing and builds.

packages="gcc make cmake pkg-config libyaml-dev libgsl-dev libsqlite3-dev libprotobuf-c-dev
protobuf-c-compiler libjansson-dev zlib1g-dev libcmocka-dev"

# Prints those of its arguments that dpkg does not have installed.
missing_packages() {
    for package in "$@"; do
        case "$(dpkg-query -W -f='${Status}' "$package" 2>/dev/null)" in
        "install ok installed") ;;
        *) printf '%s ' "$package" ;;
        esac
    done
}

# Installs what is missing of its arguments, without questions; exits with 2 when it may not.
install_packages() {
    command -v dpkg-query >/dev/null 2>&1 || return 0 # another system: its user knows how
    wanted=$(missing_packages "$@")
    [ -n "$wanted" ] || return 0
    if [ "$(id -u)" = 0 ]; then
        as_root=""
    elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
        as_root="sudo -n"
    else
        echo "Some packages are missing. As root, run:" >&2
        echo "apt-get install -y --no-install-recommends $wanted" >&2
        exit 2
    fi
    echo "Installing: $wanted" >&2
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq >&2 || true
    # shellcheck disable=SC2086
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
        $wanted >&2
}

# Node and npm bundle the charts of the report when the program is built.  The build goes on without
# them, and the report then has tables.
install_chart_tools() {
    command -v node >/dev/null 2>&1 && command -v npm >/dev/null 2>&1 && return 0
    (install_packages nodejs npm) ||
        echo "Going on without node and npm: reports will have tables in place of charts." >&2
}

# build DIR TARGET [cmake options]: configures DIR when needed and builds TARGET.
build() {
    dir=$1
    target=$2
    shift 2
    # A cache of another place (a copied tree) cannot be used.
    if [ -f "$dir/CMakeCache.txt" ] &&
        ! grep -q "^CMAKE_HOME_DIRECTORY:INTERNAL=$PWD\$" "$dir/CMakeCache.txt"; then
        rm -rf "$dir"
    fi
    mkdir -p "$dir"
    # Quiet while all is well, everything that was said when not.
    { cmake -S . -B "$dir" "$@" &&
        cmake --build "$dir" --target "$target" -j "$(nproc)"; } >"$dir/build.log" 2>&1 || {
        cat "$dir/build.log" >&2
        exit 1
    }
}

# say_missing_charts DIR: one line where the program in DIR was built without charts, and how to get
# them.
say_missing_charts() {
    [ -s "$1/web/missing.txt" ] || return 0
    echo "Reports will have tables in place of charts: $(cat "$1/web/missing.txt")." \
        "To get them: make node and npm with its registry reachable, rm -r $1/web, and run again." >&2
}
