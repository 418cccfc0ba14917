import { existsSync, realpathSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Command } from 'commander'
import { type HomePaths, homePaths } from '../config/home.js'
import { systemClock } from '../lib/clock.js'
import { KikiError } from '../lib/errors.js'
import type { BackupDone } from '../lifecycle/backup.js'
import { type CommandContext, homeOf, ownerOf, withExample } from './context.js'
import { resultOf } from './owner-client.js'
import { hostStatus } from './status.js'

/** `kiki backup FILE` (CL-17): by the host if one runs, else by this process under the home's lock (GU-40). */
export function backupCommand(program: Command, { output }: CommandContext): void {
  const backup = program
    .command('backup')
    .description('save the home (sessions, results, kept file contents, settings, keys) into one file')
    .argument('<file>', 'where to; an earlier backup there is replaced')
  backup.action(async (given: string, _: unknown, command: Command) => {
    const file = resolve(given)
    const running = await hostStatus(command)
    const done = running
      ? await resultOf(ownerOf(command).api.backup.$post({ json: { file } }))
      : await withoutHost(homeOf(command), file)
    await output.result(
      done,
      () =>
        `Saved the home into ${done.file} (${done.size} bytes, ${done.files} files and the database).\n` +
        'It holds the keys of this Kiki: keep it as safe as the home itself.',
    )
  })
  withExample(backup, 'kiki backup ~/backups/kiki.backup')
}

async function withoutHost({ dir }: HomePaths, file: string): Promise<BackupDone> {
  if (!existsSync(homePaths(dir).database)) throw noHome(dir)
  const paths = homePaths(realpathSync(dir))
  const [{ backupHome }, { openToRead }, { DatabaseError }, { claimHome }, { readMigrations }, { createHomeFence }] =
    await Promise.all([
      import('../lifecycle/backup.js'),
      import('../store/database.js'),
      import('../store/failures.js'),
      import('../store/lock.js'),
      import('../store/migrate.js'),
      import('../workspace/fence.js'),
    ])
  const unlock = claimHome(paths)
  try {
    const db = openToRead({ database: paths.database, marker: join(paths.keys, 'database') }, readMigrations())
    try {
      return await backupHome({ db, paths, clock: systemClock, fence: createHomeFence(paths.dir) }, file)
    } finally {
      db.close()
    }
  } catch (error) {
    // Its message says how to recover (GU-43).
    if (error instanceof DatabaseError) throw new KikiError('internal_error', error.message, { cause: error })
    throw error
  } finally {
    unlock()
  }
}

function noHome(dir: string): KikiError {
  return new KikiError('not_found', `There is no Kiki database in ${dir}.`, {
    hint: 'Name the home with --home, or start Kiki first: there is nothing to back up.',
  })
}
