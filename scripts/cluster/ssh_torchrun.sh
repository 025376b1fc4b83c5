#!/usr/bin/env bash
# Starts a data-parallel run on machines that are reached by ssh, with torchrun on each.
set -euo pipefail

usage() {
  cat <<'TEXT'
Usage: ssh_torchrun.sh --hosts A,B [options] -- [flags of warpzone train]

Starts torchrun on every host by ssh and waits for all of them. The first host is rank 0: it has the run's
folder, and the others reach it on --port, which must be open between them and to nobody else.

  --hosts A,B,...   the machines, as ssh knows them; user@host works
  --address ADDR    how the others reach the first host (its name in --hosts)
  --port N          port of the first host (29500)
  --ranks N         ranks on each machine: GPUs, or processes on CPUs (1)
  --restarts N      how often torchrun starts all ranks again after a failure (3)
  --folder DIR      folder on each host to start in (the home folder)
  --python PATH     Python on each host, with warpzone[scale] (python)
  --name NAME       name of the run; restarts find it by its name (warpzone)
  --dry-run         print the commands, and start nothing
  -h, --help        this text

Example: ssh_torchrun.sh --hosts gpu1,gpu2 --ranks 4 --name all -- --preset all --num-envs 8192
TEXT
}

fail() {
  echo "ssh_torchrun.sh: $1" >&2
  exit 2
}

number() {
  [[ $2 =~ ^[0-9]+$ ]] || fail "$1 takes a whole number, not '$2'."
}

hosts='' address='' port=29500 ranks=1 restarts=3 folder='' python=python name=warpzone dry_run=''
while (($#)); do
  case $1 in
    -h | --help) usage; exit 0 ;;
    --dry-run) dry_run=1; shift; continue ;;
    --) shift; break ;;
  esac
  (($# > 1)) || fail "$1 needs a value, or is no option; -h lists them."
  case $1 in
    --port | --ranks | --restarts) number "$1" "$2" ;;
  esac
  case $1 in
    --hosts) hosts=$2 ;;
    --address) address=$2 ;;
    --port) port=$2 ;;
    --ranks) ranks=$2 ;;
    --restarts) restarts=$2 ;;
    --folder) folder=$2 ;;
    --python) python=$2 ;;
    --name) name=$2 ;;
    *) fail "unknown option '$1'; -h lists them. Flags of warpzone train follow after --." ;;
  esac
  shift 2
done
[[ -n $hosts ]] || fail "--hosts is missing."
((ranks > 0)) || fail "--ranks must be above 0."
IFS=, read -r -a machines <<<"$hosts"
for host in "${machines[@]}"; do
  # ssh would take a name that starts with a hyphen for an option.
  [[ $host =~ ^[A-Za-z0-9_][A-Za-z0-9_.@:-]*$ ]] || fail "'$host' is not the name of a host."
done
address=${address:-${machines[0]##*@}}

# What one machine does, quoted for the shell at the other end.
remote() {
  local node=$1
  shift
  if [[ -n $folder ]]; then printf 'cd %q && ' "$folder"; fi
  printf 'exec'
  printf ' %q' "$python" -m torch.distributed.run --nnodes "${#machines[@]}" --node-rank "$node" \
    --nproc-per-node "$ranks" --max-restarts "$restarts" --master-addr "$address" \
    --master-port "$port" -m warpzone.cli.main train --run-name "$name" "$@"
}

started=()
for node in "${!machines[@]}"; do
  # A terminal at the other end (-tt) ends the ranks when this script is interrupted.
  call=(ssh -tt -o BatchMode=yes "${machines[$node]}" "$(remote "$node" "$@")")
  if [[ -n $dry_run ]]; then
    printf '%q ' "${call[@]}"
    echo
    continue
  fi
  "${call[@]}" </dev/null &
  started+=("$!")
done

# shellcheck disable=SC2329 # The trap calls it.
stop() {
  if ((${#started[@]})); then kill "${started[@]}" 2>/dev/null || true; fi
}
trap 'stop; exit 130' INT TERM

code=0
for process in "${started[@]+"${started[@]}"}"; do
  wait "$process" || code=1
done
exit "$code"
