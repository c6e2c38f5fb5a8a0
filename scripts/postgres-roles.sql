-- Roles with as few rights as their work needs. Run it as who owns the schema, behind `sekali migrate`:
--
--   psql DATABASE -v schema=sekali -f scripts/postgres-roles.sql
--
-- and grant them to the users: GRANT sekali_worker TO app; The owner is whoever ran `migrate`; only he
-- can upgrade the schema. Run it again behind an upgrade.
--   NAME_reader    lists, explains: reads
--   NAME_producer  enqueues by the library, the command or the SQL function, cancels, retries; can
--                  begin no run
--   NAME_worker    also runs jobs; what handlers write is granted by you
\set ON_ERROR_STOP on
\if :{?schema}
\else
  \set schema sekali
\endif

SELECT set_config('sekali.schema', :'schema', false) \g /dev/null

DO $$
DECLARE
  schema constant text := current_setting('sekali.schema');
  role text;
BEGIN
  FOREACH role IN ARRAY ARRAY['_reader', '_producer', '_worker'] LOOP
    IF to_regrole(quote_ident(schema || role)) IS NULL THEN
      EXECUTE format('CREATE ROLE %I NOLOGIN', schema || role);
    END IF;
  END LOOP;
  EXECUTE format('REVOKE ALL ON ALL TABLES IN SCHEMA %I FROM PUBLIC', schema);
  EXECUTE format('REVOKE ALL ON ALL FUNCTIONS IN SCHEMA %I FROM PUBLIC', schema);
  EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I, %I, %I', schema, schema || '_reader',
                 schema || '_producer', schema || '_worker');
  EXECUTE format('GRANT SELECT ON ALL TABLES IN SCHEMA %I TO %I, %I, %I', schema,
                 schema || '_reader', schema || '_producer', schema || '_worker');
  EXECUTE format('GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA %I TO %I, %I, %I', schema,
                 schema || '_reader', schema || '_producer', schema || '_worker');
  EXECUTE format('GRANT USAGE ON ALL SEQUENCES IN SCHEMA %I TO %I, %I', schema,
                 schema || '_producer', schema || '_worker');
  EXECUTE format('GRANT INSERT, UPDATE, DELETE ON %1$I.jobs, %1$I.finished, %1$I.commits TO %2$I',
                 schema, schema || '_producer');
  EXECUTE format('GRANT INSERT ON %1$I.events, %1$I.attempts TO %2$I', schema,
                 schema || '_producer');
  EXECUTE format('GRANT UPDATE ON %1$I.locks TO %2$I', schema, schema || '_producer');
  -- Without these columns no run can begin.
  EXECUTE format('GRANT UPDATE (%3$s) ON %1$I.records TO %2$I', schema, schema || '_producer',
    (SELECT string_agg(quote_ident(attname), ', ') FROM pg_attribute
     WHERE attrelid = format('%I.records', schema)::regclass AND attnum > 0 AND NOT attisdropped
       AND attname NOT IN ('epoch', 'delivery', 'started_at')));
  EXECUTE format('GRANT INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA %I TO %I', schema,
                 schema || '_worker');
  EXECUTE format('REVOKE INSERT, DELETE ON %1$I.meta FROM %2$I', schema, schema || '_worker');
END $$;
