# Sourced by ./run, ./test and ./bench: finds the root of the checkout, runs a named stage, prints
# how long it took. If `stage_times` names a file, each stage also becomes a line of it: title, tab,
# seconds.
# shellcheck shell=bash

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
jobs="${SLUICE_JOBS:-$(nproc)}"
if ! [[ "$jobs" =~ ^[1-9][0-9]*$ ]]; then
  echo "SLUICE_JOBS is '$jobs'; set it to a number of parallel jobs, from 1" >&2
  exit 2
fi

# quietly TITLE COMMAND...: the command's output is shown only when it fails.
quietly() {
  local title="$1" start=$SECONDS code=0 log
  shift
  log="$(mktemp)"
  "$@" >"$log" 2>&1 || code=$?
  if ((code != 0)); then
    cat "$log"
  fi
  rm -f "$log"
  finish_stage "$title" "$code" "$start"
}

# aloud TITLE COMMAND...: the same for a command whose output is worth watching.
aloud() {
  local title="$1" start=$SECONDS code=0
  shift
  "$@" || code=$?
  finish_stage "$title" "$code" "$start"
}

finish_stage() {
  local title="$1" code="$2" took=$((SECONDS - $3))
  if [[ -n "${stage_times:-}" ]]; then
    printf '%s\t%s\n' "$title" "$took" >>"$stage_times"
  fi
  if ((code == 0)); then
    echo "== $title: ${took} s"
  else
    echo "== $title: FAILED after ${took} s (exit code $code)" >&2
    exit 1
  fi
}

# configure PRESET
configure() {
  (cd "$root" && quietly "configure $1" cmake --preset "$1")
}

# build PRESET [TARGET...]: on a terminal ninja keeps one line of status up to date.
build() {
  local preset="$1" how=quietly
  shift
  if [[ -t 1 ]]; then
    how=aloud
  fi
  (cd "$root" && "$how" "build $preset" cmake --build --preset "$preset" -j "$jobs" \
    ${1:+--target "$@"})
}
