/**
 * The script that the thread runs: the sources as they are, with the tsx of the folder that the process runs in. The
 * build puts the whole program here instead, for a bundler would leave a file beside this one behind.
 *
 * @param here The module that starts the thread.
 */
export function workerSource(here: string): string {
  return `
    import('tsx/esm/api').then(({ register }) => {
      register()
      return import(${JSON.stringify(new URL('./worker.ts', here).href)})
    })`
}
