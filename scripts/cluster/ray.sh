#!/usr/bin/env bash
# Starts a Ray cluster on machines that are reached by ssh, and a run with actors on it.
set -euo pipefail

usage() {
  cat <<'TEXT'
Usage: ray.sh --hosts A,B [options] -- [flags of warpzone train]

Fills in ray.yaml, starts the cluster with `ray up`, and trains on the first host, which has the learner
and the run's folder; the actors are on all hosts. Started again it goes on from the last checkpoint.

  --hosts A,B,...   the machines, as ssh knows them, without user; the first has the learner
  --user NAME       user on all of them (yours)
  --actors N        actors, a CPU each (1)
  --folder DIR      folder on the first host to start in (the home folder)
  --command PATH    the command warpzone there, with warpzone[fleet] (warpzone)
  --name NAME       name of the cluster and of the run; the run is found by it (warpzone)
  --stop            end the cluster instead
  --dry-run         print the file and the commands, and start nothing
  -h, --help        this text

Example: ray.sh --hosts gpu1,cpu1,cpu2 --actors 64 --name fast -- --preset fast-1-1 --algo vtrace --epochs 1
TEXT
}

fail() {
  echo "ray.sh: $1" >&2
  exit 2
}

plain() {
  [[ $2 =~ ^[A-Za-z0-9._-]+$ ]] || fail "$1 takes letters, digits and . _ -, not '$2'."
}

hosts='' user=${USER:-root} actors=1 folder='' command=warpzone name=warpzone stop='' dry_run=''
while (($#)); do
  case $1 in
    -h | --help) usage; exit 0 ;;
    --dry-run) dry_run=1; shift; continue ;;
    --stop) stop=1; shift; continue ;;
    --) shift; break ;;
  esac
  (($# > 1)) || fail "$1 needs a value, or is no option; -h lists them."
  case $1 in
    --hosts) hosts=$2 ;;
    --user) plain "$1" "$2"; user=$2 ;;
    --actors) [[ $2 =~ ^[0-9]+$ ]] || fail "--actors takes a whole number, not '$2'."; actors=$2 ;;
    --folder) folder=$2 ;;
    --command) command=$2 ;;
    --name) plain "$1" "$2"; name=$2 ;;
    *) fail "unknown option '$1'; -h lists them. Flags of warpzone train follow after --." ;;
  esac
  shift 2
done
[[ -n $hosts ]] || fail "--hosts is missing."
((actors > 0)) || fail "--actors must be above 0."
IFS=, read -r -a machines <<<"$hosts"
for host in "${machines[@]}"; do
  [[ $host =~ ^[A-Za-z0-9_][A-Za-z0-9_.-]*$ ]] || fail "'$host' is not the name of a host."
done
workers=''
for host in "${machines[@]:1}"; do workers+="${workers:+, }\"$host\""; done

cluster() {
  sed -e "s/@NAME@/$name/; s/@HEAD@/${machines[0]}/; s/@WORKERS@/$workers/; s/@USER@/$user/" \
    -e "s/@COUNT@/$((${#machines[@]} - 1))/" -e '/^#/d' "$(dirname "$0")/ray.yaml"
}

# What the first host does, quoted for the shell there.
remote() {
  if [[ -n $folder ]]; then printf 'cd %q && ' "$folder"; fi
  printf 'exec'
  printf ' %q' "$command" train --run-name "$name" --resume auto --actors "$actors" --ray auto "$@"
}

if [[ -n $dry_run ]]; then
  echo "cat > cluster.yaml <<'FILE'"
  cluster
  echo FILE
  if [[ -n $stop ]]; then
    echo 'ray down --yes cluster.yaml'
  else
    echo 'ray up --yes --no-config-cache cluster.yaml'
    printf 'ray exec cluster.yaml %q\n' "$(remote "$@")"
  fi
  exit 0
fi
hash ray 2>/dev/null || { echo "ray.sh: there is no ray here; pip install 'warpzone[fleet]'." >&2; exit 1; }
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cluster >"$place/cluster.yaml"
if [[ -n $stop ]]; then
  ray down --yes "$place/cluster.yaml"
else
  ray up --yes --no-config-cache "$place/cluster.yaml"
  ray exec "$place/cluster.yaml" "$(remote "$@")"
fi
