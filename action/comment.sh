#!/usr/bin/env bash
# Comments a pull request with a file, in place of the comment that it wrote the last time.
# comment.sh NUMBER FILE; GITHUB_REPOSITORY, GITHUB_WORKFLOW and GITHUB_JOB are set by the runner, GH_TOKEN by the action.
set -euo pipefail

number=$1
file=$2
# Two jobs have a comment each.
key=$(printf '%s/%s' "${GITHUB_WORKFLOW:-}" "${GITHUB_JOB:-}" | sha256sum | cut -c 1-16)
mark="<!-- caulk $key -->"
# GitHub takes 65,536 characters.
most=60000

body=$(mktemp)
trap 'rm -f "$body"' EXIT
{
  echo "$mark"
  head -c "$most" "$file" | iconv -c -f UTF-8 -t UTF-8
  if (($(wc -c < "$file") > most)); then
    printf '\n\nThe rest is in the summary of the job.\n'
  fi
} > "$body"

comments="repos/$GITHUB_REPOSITORY/issues/$number/comments"
# Anybody can write a comment that begins so: only that of a bot is replaced.
own=".[] | select(.user.type == \"Bot\" and (.body | startswith(\"$mark\"))) | .id"
known=$(gh api --paginate "$comments?per_page=100" --jq "$own")
known=${known%%$'\n'*}
if [[ -n $known ]]; then
  gh api --silent --method PATCH "repos/$GITHUB_REPOSITORY/issues/comments/$known" --field "body=@$body"
else
  gh api --silent --method POST "$comments" --field "body=@$body"
fi
