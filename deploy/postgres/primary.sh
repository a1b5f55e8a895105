#!/bin/sh
# Run once by the image when the primary is set up: a role, a slot and the rule for the standby, and commits that wait for it.
set -eu

psql --set=ON_ERROR_STOP=1 --set=password="$(cat "$POSTGRES_PASSWORD_FILE")" --username="$POSTGRES_USER" --dbname="$POSTGRES_DB" <<'SQL'
CREATE ROLE standby WITH REPLICATION LOGIN PASSWORD :'password';
SELECT pg_create_physical_replication_slot('standby');
-- Counts from the next start on. As an argument of the server it would count now, and setting up would wait for a standby.
ALTER SYSTEM SET synchronous_standby_names = 'standby';
SQL
echo 'host replication standby samenet scram-sha-256' >>"$PGDATA/pg_hba.conf"
