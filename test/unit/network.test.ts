import { expect, test } from 'vitest'
import { networkFileSystem } from '../../src/database/network.ts'

test.each([
  [0x6969, 'NFS'],
  [0x517b, 'SMB'],
  [0xff534d42, 'CIFS'],
  [0xff534d42 | 0, 'CIFS'],
  [0xfe534d42, 'SMB2'],
  [0x01021997, '9p'],
  [0x0bd00bd0, 'Lustre'],
  [0x5346414f, 'AFS'],
  [0x73757245, 'Coda'],
  [0x47504653, 'GPFS'],
])('type %i is %s', (type, name) => {
  expect(networkFileSystem(type)).toBe(name)
})

test.each([
  ['ext4', 0xef53],
  ['btrfs', 0x9123683e],
  ['xfs', 0x58465342],
  ['tmpfs', 0x01021994],
  ['overlayfs', 0x794c7630],
  ['FUSE', 0x65735546],
  ['macOS or Windows', 0],
])('%s is no network file system', (_, type) => {
  expect(networkFileSystem(type)).toBeUndefined()
})
