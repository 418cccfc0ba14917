import { count, type Deed } from './deeds.js'
import { inspect, type Row, type World } from './world.js'

/** What is wrong with one call, in words; undefined when GU-06 holds for it. */
export function fault(deed: Deed, row: Row | undefined): string | undefined {
  const { effects, answer } = deed
  const says = (what: string) => `${deed.key} (${deed.tool}): ${what}; effects ${effects}, row ${JSON.stringify(row)}`
  if (effects > 1) return says('its effect happened more than once')
  if (answer !== undefined && row === undefined) return says(`it was answered ${answer.status} and is lost`)
  if (answer !== undefined && (row?.id !== answer.operationId || row.status !== answer.status))
    return says(`it was answered ${answer.status} (${answer.operationId}) and is now something else`)
  if (row === undefined) return effects === 0 ? undefined : says('it ran without being on disk')
  if (row.attempt > 1) return says('it was begun more than once')
  switch (row.status) {
    case 'completed':
      return effects === 1 ? undefined : says('it is completed')
    case 'running':
    case 'outcome_unknown':
      return row.attempt === 1 ? undefined : says('it never began')
    case 'accepted':
    case 'waiting_approval':
      return effects === 0 && row.attempt === 0 ? undefined : says('it only waits')
    default:
      return says('no call of this test can end like this')
  }
}

/** Looks at the world while the host is down. @returns every fault. */
export function judge(world: World, deeds: Iterable<Deed>, whole: boolean): string[] {
  const { rows, texts } = inspect(world, whole)
  const faults: string[] = []
  for (const deed of deeds) {
    count(world.workspace, deed, texts)
    const found = fault(deed, rows.get(deed.key))
    if (found !== undefined) faults.push(found)
  }
  return faults
}
