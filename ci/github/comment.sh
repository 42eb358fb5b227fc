#!/usr/bin/env bash
# Writes a text under a pull request: into the comment of an earlier run, or as a new one. What goes wrong is a warning of the host and never fails the job: a pull request from a fork has no right to comment.
#
#   BODY         file of the text
#   PULL         number of the pull request
#   COMMENT_KEY  tells comments of one pull request apart
#   GH_TOKEN, GITHUB_REPOSITORY, RUNNER_TEMP   as the host sets them
set -euo pipefail

warn() {
  printf '::warning title=echoeval::%s\n' "$1"
  exit 0
}

[ -f "${BODY:-}" ] || warn 'there is no text for a comment'
[[ ${PULL:-} =~ ^[0-9]+$ ]] || warn 'this is no pull request: nothing to comment on'
[[ ${COMMENT_KEY:-} =~ ^[A-Za-z0-9._-]+$ ]] || warn 'comment-key takes letters, digits, dots, dashes and underscores'

marker="<!-- echoeval:$COMMENT_KEY -->"
text=$RUNNER_TEMP/echoeval-comment.md
{
  printf '%s\n' "$marker"
  cat "$BODY"
} >"$text"

# Only a bot's comment is written over: anybody can copy the marker.
found=$(gh api --paginate "repos/$GITHUB_REPOSITORY/issues/$PULL/comments" \
  --jq ".[] | select(.user.type == \"Bot\" and (.body | startswith(\"$marker\"))) | .id") || warn 'the comments of the pull request cannot be read'
id=${found%%$'\n'*}
if [[ $id =~ ^[0-9]+$ ]]; then
  gh api --method PATCH "repos/$GITHUB_REPOSITORY/issues/comments/$id" -F "body=@$text" --silent || warn 'the comment cannot be written'
else
  gh api --method POST "repos/$GITHUB_REPOSITORY/issues/$PULL/comments" -F "body=@$text" --silent || warn 'the comment cannot be written'
fi
