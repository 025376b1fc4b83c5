#!/usr/bin/env bash
# Builds the engine on a machine that cannot install anything, and runs one job there:
#   benchmarks/device.sh JOB [ARGUMENTS]
# JOB is a function below. The folder .device holds what the machine lacks: the ROMs (eu.nes,
# world.nes) and pure-Python packages unpacked into .device/site. Results go to $OUT.
set -euo pipefail
cd "$(dirname "$0")/.."
: "${OUT:=build/device-out}"
mkdir -p "$OUT" build
site=$PWD/build/device-site
export PYTHONPATH=$site:$PWD/.device/site PYTHONUNBUFFERED=1
export WARPZONE_DATA=$PWD/build/device-data WARPZONE_CACHE=$PWD/build/device-cache

prepare() {
  local began=$SECONDS
  if [ ! -e "$site/stamp" ] || [ -n "$(find engine src -newer "$site/stamp" -type f | head -n 1)" ]; then
    rm -rf "$site"
    python3 -m pip install --quiet --no-build-isolation --no-deps --target "$site" .
    touch "$site/stamp"
  fi
  warpzone rom install --from .device/eu.nes
  warpzone rom install --from .device/world.nes
  echo "[device] ready after $((SECONDS - began)) s: $(nproc) cores, $(python3 -c 'import torch; print(torch.__version__, torch.cuda.get_device_name() if torch.cuda.is_available() else "no CUDA")')"
}

warpzone() { python3 -m warpzone.cli.main "$@"; }

engine() { warpzone bench engine --threads 1,2,4,8,16 --lanes 16,256,1024 --json "$OUT/engine.json" "$@"; }

train() { # train NAME FLAGS...: one run; its curve and weights come back
  local name=$1
  shift
  warpzone train --runs-dir build/device-runs --run-name "$name" "$@" || echo "[device] $name failed"
  mkdir -p "$OUT"
  for file in metrics.jsonl evals.jsonl best.safetensors config.json; do
    [ -e "build/device-runs/$name/$file" ] && cp "build/device-runs/$name/$file" "$OUT/$name-$file"
  done
  return 0
}

verify() { # what only a GPU can show: the tests that are skipped elsewhere
  # Plugins of that machine may want packages that .device/site hides.
  PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 python3 -m pytest -p no:cacheprovider tests/cuda tests/e2e/test_auto_mem.py 2>&1 | tee "$OUT/verify.log"
}

on_two_cores() { # on_two_cores N NAME FLAGS...: a CPU-only run on the N-th pair of cores
  local first=$((2 * $1))
  shift
  CUDA_VISIBLE_DEVICES="" taskset -c "$first,$((first + 1))" bash benchmarks/device.sh train "$@" >"$OUT/$1.log" 2>&1
}

job=$1
shift
prepare
"$job" "$@"
