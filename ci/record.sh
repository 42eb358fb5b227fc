#!/usr/bin/env bash
# Records the cassettes of the example datasets again. The vendor is the emulator, so no key and no network are needed, and the result is the same bytes every time.
#
# usage: ci/record.sh [DIR]
#   DIR  where the cassettes go; without it they replace the committed ones
#
# It needs bin/echoeval (make build). Each dataset is answered by the script of its name in datasets/emulator.
set -euo pipefail

where=()
if [ $# -gt 1 ]; then
  sed -n '2,/^set -/{/^#/s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}" >&2
  exit 2
elif [ $# -eq 1 ]; then
  where=(--cassettes "$(realpath -m "$1")")
fi
cd "$(dirname "${BASH_SOURCE[0]}")/.."

echoeval=bin/echoeval
recorded_at=2026-01-05T09:00:00Z
datasets=(quickstart regression)
wait_seconds=10

if [ ! -x "$echoeval" ]; then
  printf 'error: %s is absent\nhint: make build\n' "$echoeval" >&2
  exit 2
fi

scratch=$(mktemp -d)
emulator=
stop_emulator() {
  if [ -n "$emulator" ]; then
    kill "$emulator" 2>/dev/null || true
    wait "$emulator" 2>/dev/null || true
    emulator=
  fi
}
clean_up() {
  stop_emulator
  rm -rf "$scratch"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# The emulator takes every key. This one is no real one, and its text stands in no answer, where it would be hidden as a secret.
export OPENAI_API_KEY=not-a-real-key ANTHROPIC_API_KEY=not-a-real-key GEMINI_API_KEY=not-a-real-key AWS_BEARER_TOKEN_BEDROCK=not-a-real-key

# The columns of a dataset that are not its own: --provider takes the place of its list, so that the list is written out too.
declare -A columns=(
  [quickstart]="openai:gpt-4o-mini openai:gpt-4.1-mini anthropic:claude-haiku-4-5 gemini:gemini-2.5-flash bedrock:amazon.nova-lite-v1:0"
)

for name in "${datasets[@]}"; do
  address_file=$scratch/$name.address
  log=$scratch/$name.log
  "$echoeval" emulate --script "datasets/emulator/$name.yaml" --listen 127.0.0.1:0 --address-file "$address_file" 2>"$log" &
  emulator=$!

  # The file appears whole, once the emulator listens. A busy machine may take a while; an emulator that ended will never write it.
  for ((tick = 0; tick < wait_seconds * 20; tick++)); do
    [ -s "$address_file" ] && break
    kill -0 "$emulator" 2>/dev/null || break
    sleep 0.05
  done
  if [ ! -s "$address_file" ]; then
    printf 'error: the emulator for %s did not start (the time limit is %s s)\n' "$name" "$wait_seconds" >&2
    cat "$log" >&2
    exit 3
  fi
  address=$(<"$address_file")

  arguments=()
  for column in ${columns[$name]:-}; do
    arguments+=(--provider "$column")
  done
  for upstream in "openai=http://$address/v1" "anthropic=http://$address" "gemini=http://$address" "bedrock=http://$address"; do
    arguments+=(--upstream "$upstream")
  done

  # A cassette is kept whatever the verdict, and the items of regression.yaml are meant to fail: 1 is a good end here.
  code=0
  "$echoeval" record "datasets/$name.yaml" "${arguments[@]}" --recorded-at "$recorded_at" --out "$scratch/runs" "${where[@]}" || code=$?
  if [ "$code" -gt 1 ]; then
    printf 'error: recording %s ended with code %s\n' "$name" "$code" >&2
    cat "$log" >&2
    exit "$code"
  fi
  stop_emulator
done
