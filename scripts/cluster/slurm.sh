#!/usr/bin/env bash
# Submits a data-parallel run to SLURM: one task for each GPU, on one machine or several.
set -euo pipefail

usage() {
  cat <<'TEXT'
Usage: slurm.sh [options] -- [flags of warpzone train]

Submits a run to SLURM with one task (rank) for each GPU. Two minutes before its time ends the run is
saved; submitted again, or queued again after the failure of a machine, it goes on from its last
checkpoint.

  --nodes N        machines (1)
  --gpus N         GPUs, and ranks, on each machine (1); 0 trains on CPUs
  --tasks N        ranks on each machine without GPUs (1); with GPUs there is one for each
  --cpus N         cores of each rank (8)
  --memory SIZE    memory of each machine (64G)
  --time H:MM:SS   limit of the job (24:00:00)
  --partition P    partition of the cluster
  --account A      account that is charged
  --name NAME      name of the job and of the run; the run is found by it (warpzone)
  --command PATH   the command warpzone on the cluster's machines (warpzone)
  --dry-run        print the job, and submit nothing
  -h, --help       this text

Example: slurm.sh --nodes 2 --gpus 4 --name all -- --preset all --num-envs 8192
TEXT
}

fail() {
  echo "slurm.sh: $1" >&2
  exit 2
}

number() {
  [[ $2 =~ ^[0-9]+$ ]] || fail "$1 takes a whole number, not '$2'."
}

plain() {
  [[ $2 =~ ^[A-Za-z0-9._/:-]+$ ]] || fail "$1 takes letters, digits and . _ / : -, not '$2'."
}

nodes=1 gpus=1 tasks=1 cpus=8 memory=64G time=24:00:00 partition='' account='' name=warpzone
command=warpzone dry_run=''
while (($#)); do
  case $1 in
    -h | --help) usage; exit 0 ;;
    --dry-run) dry_run=1; shift; continue ;;
    --) shift; break ;;
  esac
  (($# > 1)) || fail "$1 needs a value, or is no option; -h lists them."
  case $1 in
    --nodes | --gpus | --tasks | --cpus) number "$1" "$2" ;;
    --memory | --time | --partition | --account | --name | --command) plain "$1" "$2" ;;
  esac
  case $1 in
    --nodes) nodes=$2 ;;
    --gpus) gpus=$2 ;;
    --tasks) tasks=$2 ;;
    --cpus) cpus=$2 ;;
    --memory) memory=$2 ;;
    --time) time=$2 ;;
    --partition) partition=$2 ;;
    --account) account=$2 ;;
    --name) name=$2 ;;
    --command) command=$2 ;;
    *) fail "unknown option '$1'; -h lists them. Flags of warpzone train follow after --." ;;
  esac
  shift 2
done
((nodes > 0 && cpus > 0 && gpus + tasks > 0)) || fail "--nodes, --cpus and the ranks must be above 0."
ranks=$tasks device=cpu
if ((gpus > 0)); then ranks=$gpus device=cuda; fi

job() {
  echo '#!/usr/bin/env bash'
  echo "#SBATCH --job-name=$name"
  echo "#SBATCH --nodes=$nodes"
  echo "#SBATCH --ntasks-per-node=$ranks"
  echo "#SBATCH --cpus-per-task=$cpus"
  if ((gpus > 0)); then echo "#SBATCH --gpus-per-node=$gpus"; fi
  echo "#SBATCH --mem=$memory"
  echo "#SBATCH --time=$time"
  if [[ -n $partition ]]; then echo "#SBATCH --partition=$partition"; fi
  if [[ -n $account ]]; then echo "#SBATCH --account=$account"; fi
  echo '#SBATCH --requeue'
  # Two minutes before the end every rank gets a signal: the run saves and ends.
  echo '#SBATCH --signal=TERM@120'
  echo 'set -euo pipefail'
  printf 'exec srun --kill-on-bad-exit=1'
  printf ' %q' "$command" train --run-name "$name" --resume auto --device "$device" \
    --devices "$ranks" --nodes "$nodes" "$@"
  echo
}

if [[ -n $dry_run ]]; then
  echo "sbatch <<'JOB'"
  job "$@"
  echo JOB
  exit 0
fi
hash sbatch 2>/dev/null || { echo "slurm.sh: there is no sbatch here." >&2; exit 1; }
job "$@" | sbatch
