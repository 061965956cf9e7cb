import { expect, test } from 'vitest'
import { bytesAvailable, whyNotVacuum } from '../../src/maintenance/vacuum.ts'
import { newPath } from '../support/stores.ts'

test.each([
  [{ used: 75, free: 25 }, 1_000, 'little-free'],
  [{ used: 74, free: 26 }, 148, null],
  [{ used: 74, free: 26 }, 147, 'disk-too-full'],
  [{ used: 74, free: 26 }, null, 'disk-unknown'],
  [{ used: 100, free: 0 }, null, 'little-free'],
])('of %o with %s bytes on the disk, writing anew is refused as %s', (use, available, reason) => {
  expect(whyNotVacuum(use, available)).toBe(reason)
})

test('a disk says what it has, and one that is not there does not', async () => {
  expect(await bytesAvailable(newPath())).toBeGreaterThan(0)
  expect(await bytesAvailable('/no/such/folder/state.db')).toBeNull()
})
