#!/bin/sh
# Starts a command of warpzone in a container: `warpzone-start train --preset quick`.
# At the first start the ROM is installed into the volume /data; secrets become what programs read.
set -eu

if [ "${1:-}" = --healthy ]; then
  # A dashboard answers; any other container has an installation that works.
  address="http://127.0.0.1:${WARPZONE_PORT:-8765}/health"
  python -c "import sys, urllib.request as u; u.urlopen(sys.argv[1], timeout=5)" "$address" 2>/dev/null ||
    { [ -z "${WARPZONE_SERVES:-}" ] && warpzone doctor >/dev/null; }
  exit
fi

secrets=${WARPZONE_SECRETS:-/run/secrets}
if [ -r "$secrets/dashboard_token" ]; then
  WARPZONE_DASHBOARD_TOKEN=$(cat "$secrets/dashboard_token")
  export WARPZONE_DASHBOARD_TOKEN
fi
if [ -r "$secrets/database_password" ]; then
  PGPASSWORD=$(cat "$secrets/database_password")
  export PGPASSWORD
fi

# A page about runs needs no ROM; `rom` and `doctor` are for those who have none yet.
case "${1:-}" in
  dashboard | doctor | rom | checkpoints | -*) ;;
  *) [ -n "${WARPZONE_ROM:-}" ] || warpzone rom install ;;
esac
exec warpzone "$@"
