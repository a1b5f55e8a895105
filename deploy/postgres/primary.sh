#!/bin/sh
# The image runs this once, when it sets up the primary: role, slot and access rule of the standby, and synchronous commits.
set -eu

psql --set=ON_ERROR_STOP=1 --set=password="$(cat "$POSTGRES_PASSWORD_FILE")" --username="$POSTGRES_USER" --dbname="$POSTGRES_DB" <<'SQL'
CREATE ROLE standby WITH REPLICATION LOGIN PASSWORD :'password';
SELECT pg_create_physical_replication_slot('standby');
-- Takes effect at the next start. As a server argument it would apply now, and the setup would wait for a standby.
ALTER SYSTEM SET synchronous_standby_names = 'standby';
SQL
echo 'host replication standby samenet scram-sha-256' >>"$PGDATA/pg_hba.conf"
