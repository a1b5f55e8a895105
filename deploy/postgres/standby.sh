#!/bin/sh
# Starts the standby, the first time from a copy of the primary. Commits wait for its application_name.
set -eu

if [ ! -s "$PGDATA/PG_VERSION" ]; then
  PGPASSWORD="$(cat "$POSTGRES_PASSWORD_FILE")"
  export PGPASSWORD
  rm -rf "$PGDATA"
  mkdir -p -m 700 "$PGDATA"
  pg_basebackup --pgdata="$PGDATA" --dbname='host=primary user=standby application_name=standby' \
    --slot=standby --checkpoint=fast --write-recovery-conf
  unset PGPASSWORD
fi
exec postgres
