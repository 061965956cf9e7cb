import { statfs } from 'node:fs/promises'
import type { EventHandler } from '../events.ts'

/** By the numbers that Linux gives them (statfs(2)). FUSE is none: most of its file systems are local. */
const NETWORK_FILE_SYSTEMS = new Map([
  [0x6969, 'NFS'],
  [0x517b, 'SMB'],
  [0xff534d42, 'CIFS'],
  [0xfe534d42, 'SMB2'],
  [0x01021997, '9p'],
  [0x0bd00bd0, 'Lustre'],
  [0x5346414f, 'AFS'],
  [0x73757245, 'Coda'],
  [0x47504653, 'GPFS'],
])

/** The name of a network file system by the `type` that statfs gives, or undefined for all others. */
export function networkFileSystem(type: number): string | undefined {
  // 32-bit systems give it with a sign.
  return NETWORK_FILE_SYSTEMS.get(type >>> 0)
}

/** Says so when a file is where the locks and the shared memory of SQLite cannot be relied on. */
export async function reportNetwork(path: string, events: EventHandler): Promise<void> {
  // Elsewhere the numbers mean other things.
  if (process.platform !== 'linux') return
  // A sandbox may refuse to tell, which is no reason not to open the file.
  const type = await statfs(path).then(
    (found) => found.type,
    () => undefined,
  )
  const file_system = type === undefined ? undefined : networkFileSystem(type)
  if (file_system)
    events({
      level: 'warning',
      type: 'network-file-system',
      message: `'${path}' is on a network file system (${file_system}), where several machines that write it can damage it: keep it on a local disk, or use it from one machine only, with journalMode: 'delete'.`,
      path,
      file_system,
    })
}
