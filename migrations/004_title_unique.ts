import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  // Files of schema 3 can hold a title twice, which the unique index refuses. The newest session keeps it.
  await sql`
    update sessions set title = null
    where title is not null and exists (
      select 1 from sessions as newer
      where newer.title = sessions.title
        and (newer.started_at, newer.id) > (sessions.started_at, sessions.id)
    )`.execute(db)

  // A title resolves to one session; sessions without a title are many.
  await db.schema
    .createIndex('idx_sessions_title_unique')
    .unique()
    .on('sessions')
    .column('title')
    .where(sql.ref('title'), 'is not', null)
    .execute()
  await sql`update schema_version set version = 4`.execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await db.schema.dropIndex('idx_sessions_title_unique').execute()
  await sql`update schema_version set version = 3`.execute(db)
}
