#!/usr/bin/env bash
# Runs evaluations in CI, or joins the parts of a run that several machines made.
#
# usage: ci/shell/evals.sh run
#        ci/shell/evals.sh merge DIR    (each part in a folder of its own below DIR)
#
# It is told by variables, so that nothing of a pull request becomes text of a shell:
#
#   ECHOEVAL        the command (default: echoeval)
#   EVAL_DATASETS   dataset files, one a line (default: those of echoeval.yaml)
#   EVAL_BASELINE   what the run is compared with, such as git:origin/main (default: baselines/DATASET.json, where it is there)
#   EVAL_SHARD      I/N: only this part; its gates are judged by merge
#   EVAL_FLAGS      further flags of `echoeval run`, one word a line
#   EVAL_FORMATS    reports, separated by spaces (default: junit markdown html)
#   EVAL_OUT        folder of runs and reports (default: eval-runs; a hidden one is not uploaded by some hosts)
#
# The exit code is that of echoeval. A part of a run ends with 0, and says so, where the joined run decides: with 1, 4, 5 and 6. With GITHUB_ACTIONS set there are annotations and the step's summary too, and a text for a comment in EVAL_OUT/reports/github.md; with GITHUB_OUTPUT set the outputs code, out and body.
set -euo pipefail

usage() {
  sed -n '2,/^set -/{/^#/s/^# \{0,1\}//p;}' "${BASH_SOURCE[0]}" >&2
  exit 2
}

echoeval=${ECHOEVAL:-echoeval}
out=${EVAL_OUT:-eval-runs}
read -r -a formats <<<"${EVAL_FORMATS:-junit markdown html}"
if [ -n "${GITHUB_ACTIONS:-}" ]; then
  formats+=(github)
fi
most=64000 # bytes of a comment; GitHub takes 65,536 characters

# lines TEXT... appends each line of a text that is not empty to the array `words`.
lines() {
  local line
  words=()
  while IFS= read -r line; do
    line=${line%$'\r'}
    if [ -n "$line" ]; then
      words+=("$line")
    fi
  done <<<"$1"
}

file_of() {
  case $1 in
    junit) printf 'junit.xml' ;;
    markdown) printf 'report.md' ;;
    html) printf 'report.html' ;;
    github) printf 'github.md' ;;
    json) printf 'report.json' ;;
    csv) printf 'results.csv' ;;
    *)
      printf 'error: EVAL_FORMATS: there is no report %q\nhint: junit, markdown, html, github, json, csv\n' "$1" >&2
      exit 2
      ;;
  esac
}

# worse A B prints the code that counts of two, in the order of docs/exit-codes.md. Any other code is that of a program that could not be started or was ended, and counts before all.
worse() {
  local code
  for code in "$1" "$2"; do
    case " 130 2 3 4 1 5 6 0 " in
      *" $code "*) ;;
      *) printf '%s' "$code" && return ;;
    esac
  done
  for code in 130 2 3 4 1 5 6 0; do
    if [ "$code" = "$1" ] || [ "$code" = "$2" ]; then
      printf '%s' "$code" && return
    fi
  done
}

run() {
  local args=(run --out "$out") format file words=() code=0
  if [ -n "${EVAL_BASELINE:-}" ]; then
    args+=(--baseline "$EVAL_BASELINE")
  fi
  if [ -n "${EVAL_SHARD:-}" ]; then
    args+=(--shard "$EVAL_SHARD")
  else
    for format in "${formats[@]}"; do
      file=$(file_of "$format")
      args+=(--format "$format=$out/reports/$file")
    done
  fi
  lines "${EVAL_FLAGS:-}"
  args+=(${words[@]+"${words[@]}"})
  lines "${EVAL_DATASETS:-}"
  args+=(-- ${words[@]+"${words[@]}"})
  "$echoeval" "${args[@]}" || code=$?
  if [ -n "${EVAL_SHARD:-}" ]; then
    case $code in
      1 | 4 | 5 | 6)
        printf 'part %s ended with code %s: the joined run decides\n' "$EVAL_SHARD" "$code" >&2
        code=0
        ;;
    esac
  fi
  exit "$code"
}

merge() {
  local parts=$1 dir name names=() shards code=0 one joined=() format
  # A run's folder is named TIME-DATASET-XXXX, where the time takes 16 characters.
  while IFS= read -r dir; do
    name=${dir%/manifest.json}
    name=${name##*/}
    name=${name:17}
    name=${name%-????}
    if [[ " ${names[*]-} " != *" $name "* ]]; then
      names+=("$name")
    fi
  done < <(find "$parts" -name manifest.json -type f | LC_ALL=C sort)
  if [ ${#names[@]} -eq 0 ]; then
    printf 'error: %q holds no part of a run\nhint: download what the parts have uploaded, each into a folder of its own\n' "$parts" >&2
    exit 2
  fi
  for name in "${names[@]}"; do
    shards=()
    while IFS= read -r dir; do
      shards+=("${dir%/manifest.json}")
    done < <(find "$parts" -path "*/????????T??????Z-$name-????/manifest.json" -type f | LC_ALL=C sort)
    one=0
    "$echoeval" merge --out "$out" -- "${shards[@]}" || one=$?
    code=$(worse "$code" "$one")
    if [ "$one" -ne 2 ] && [ "$one" -ne 3 ] && [ -e "$out/latest" ]; then
      joined+=("$(cd "$out/latest" && pwd -P)")
    fi
  done
  if [ ${#joined[@]} -gt 0 ]; then
    for format in "${formats[@]}"; do
      file_of "$format" >/dev/null
    done
    one=0
    (IFS=,; "$echoeval" report "${joined[@]}" --format "${formats[*]}" -o "$out/reports") || one=$?
    code=$(worse "$code" "$one")
    if [ ${#joined[@]} -gt 1 ]; then
      comment "${joined[@]}"
    fi
  fi
  exit "$code"
}

# comment RUN... joins the texts for a comment, each run's as long as there is room.
comment() {
  local body=$out/reports/github.md run text size=0 left=0
  : >"$body"
  for run in "$@"; do
    text=$out/reports/${run##*/}/github.md
    [ -f "$text" ] || continue
    size=$((size + $(wc -c <"$text") + 1))
    if [ "$size" -gt $((most - 100)) ]; then
      left=$((left + 1))
      continue
    fi
    cat "$text" >>"$body"
    printf '\n' >>"$body"
  done
  if [ "$left" -gt 0 ]; then
    printf 'And %s more: see the summary of the job.\n' "$left" >>"$body"
  fi
}

# tell gives the outputs to GitHub, however the script ends.
tell() {
  local code=$? body=$out/reports/github.md
  if [ -n "${GITHUB_OUTPUT:-}" ]; then
    {
      printf 'code=%s\n' "$code"
      printf 'out=%s\n' "${out//$'\n'/ }"
      if [ -f "$body" ]; then
        printf 'body=%s\n' "${body//$'\n'/ }"
      fi
    } >>"$GITHUB_OUTPUT"
  fi
}
trap tell EXIT
rm -f "$out/reports/github.md" # of an earlier run, where the folder is kept

case ${1:-} in
  run) [ $# -eq 1 ] || usage && run ;;
  merge) [ $# -eq 2 ] || usage && merge "$2" ;;
  *) usage ;;
esac
