/** Rows in pages: the last one is what it returns. */
export type Pages<Row> = AsyncGenerator<Row[], Row[]>

/** All rows of all pages. */
export async function collect<Row>(pages: Pages<Row>): Promise<Row[]> {
  const rows: Row[] = []
  for (;;) {
    const { value, done } = await pages.next()
    // Not spread: a call takes only so many arguments.
    for (const row of value) rows.push(row)
    if (done) return rows
  }
}

/** Makes rows of others, `size` at a time. */
export async function* inPages<From, Row>(
  from: readonly From[],
  size: number,
  make: (page: From[]) => Row[] | Promise<Row[]>,
): Pages<Row> {
  let start = 0
  for (; start + size < from.length; start += size) yield make(from.slice(start, start + size))
  return make(from.slice(start))
}
