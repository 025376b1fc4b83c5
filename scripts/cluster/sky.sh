#!/usr/bin/env bash
# Launches a run with actors on machines of a cloud with SkyPilot.
set -euo pipefail

usage() {
  cat <<'TEXT'
Usage: sky.sh [options] -- [flags of warpzone train]

Launches sky.yaml with SkyPilot: the first machine has the learner and the run's folder, and the actors
are on all of them. Launched again under the same name it goes on from the last checkpoint. Flags of
warpzone train have no spaces or quotes in them here.

  --nodes N         machines (1)
  --gpu KIND        accelerator of each machine, as SkyPilot names it (L4:1)
  --cpus N          cores of each machine, at least (16)
  --actors N        actors, a CPU each (8)
  --name NAME       name of the cluster and of the run (warpzone)
  --spot            machines that may be taken away
  --dry-run         print the command, and launch nothing
  -h, --help        this text

Example: sky.sh --nodes 4 --actors 64 --name fast -- --preset fast-1-1 --algo vtrace --epochs 1
TEXT
}

fail() {
  echo "sky.sh: $1" >&2
  exit 2
}

number() {
  [[ $2 =~ ^[1-9][0-9]*$ ]] || fail "$1 takes a whole number above 0, not '$2'."
}

plain() {
  [[ $2 =~ ^[A-Za-z0-9._:-]+$ ]] || fail "$1 takes letters, digits and . _ : -, not '$2'."
}

nodes=1 gpu=L4:1 cpus=16 actors=8 name=warpzone spot='' dry_run=''
while (($#)); do
  case $1 in
    -h | --help) usage; exit 0 ;;
    --dry-run) dry_run=1; shift; continue ;;
    --spot) spot=1; shift; continue ;;
    --) shift; break ;;
  esac
  (($# > 1)) || fail "$1 needs a value, or is no option; -h lists them."
  case $1 in
    --nodes) number "$1" "$2"; nodes=$2 ;;
    --cpus) number "$1" "$2"; cpus=$2 ;;
    --actors) number "$1" "$2"; actors=$2 ;;
    --gpu) plain "$1" "$2"; gpu=$2 ;;
    --name) plain "$1" "$2"; name=$2 ;;
    *) fail "unknown option '$1'; -h lists them. Flags of warpzone train follow after --." ;;
  esac
  shift 2
done
for word in "$@"; do
  [[ $word =~ ^[A-Za-z0-9._:,=/+-]+$ ]] || fail "'$word' has a character that cannot be passed on here."
done

here=$(dirname "$0")
call=(sky launch --yes --cluster "$name" --num-nodes "$nodes" --gpus "$gpu" --cpus "$cpus+")
if [[ -n $spot ]]; then call+=(--use-spot); fi
call+=(--env "NAME=$name" --env "ACTORS=$actors")
if (($#)); then call+=(--env "FLAGS=$*"); fi
call+=("$here/sky.yaml")
if [[ -n $dry_run ]]; then
  printf '%q ' "${call[@]}"
  echo
  exit 0
fi
hash sky 2>/dev/null || { echo "sky.sh: there is no sky here; install SkyPilot." >&2; exit 1; }
"${call[@]}"
