import { execFileSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startHost, type TestHost } from '../helpers/host.js'
import { attach, type Bench, commandBench, factsOf, outputOf, sleeping, textOf } from './command-bench.js'

let base: string
let host: TestHost
const benches: Bench[] = []

beforeAll(async () => {
  // Not below /tmp, which a sandbox replaces anyway.
  mkdirSync(join(homedir(), '.cache'), { recursive: true })
  base = realpathSync(mkdtempSync(join(homedir(), '.cache', 'kiki-sandbox-')))
  const owner = join(base, 'owner')
  mkdirSync(join(owner, '.ssh'), { recursive: true })
  writeFileSync(join(owner, '.ssh', 'id_ed25519'), 'the key')
  writeFileSync(join(owner, '.netrc'), 'the password')
  writeFileSync(join(owner, '.gitconfig'), '[user]\n\tname = Owner\n\temail = owner@example.com\n')
  host = await startHost({ base, env: { HOME: owner } })
})
afterAll(async () => {
  for (const { client } of benches) await client.close()
  await host.stop()
  rmSync(base, { recursive: true, force: true })
})

async function folder(name: string): Promise<string> {
  const path = join(base, name)
  mkdirSync(path)
  return path
}

async function at(workspace: string, grant: Record<string, unknown> = {}): Promise<Bench> {
  const made = await commandBench(host, { sandbox: 'required', ...grant }, { workspace })
  benches.push(made)
  return made
}

const git = (cwd: string, ...args: string[]) =>
  execFileSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@example.com', ...args], { cwd, encoding: 'utf8' })

describe('what a confined command sees and changes', () => {
  it('SB-01 writes reach the workspace, the granted folders, the caches and /tmp, and nothing else', async () => {
    const extra = await folder('extra')
    const bench = await at(await folder('write'), { dirs: [extra] })
    const targets = [
      'inside',
      join(extra, 'granted'),
      '/tmp/own',
      join(base, 'beside'),
      '$HOME/home',
      '/etc/kiki',
      '/usr/kiki',
      '/dev/shm/x',
    ]
    const tried = await bench.bash(
      targets.map((path) => `(echo x > ${path}) 2>/dev/null && echo "${path} written"`).join('; '),
    )
    expect(outputOf(tried).trim().split('\n')).toEqual([
      'inside written',
      `${join(extra, 'granted')} written`,
      '/tmp/own written',
      '/dev/shm/x written',
    ])
    expect(readdirSync(base)).not.toContain('beside')
    expect(existsSync('/tmp/own')).toBe(false)
    expect(existsSync('/dev/shm/x')).toBe(false)
  })

  it("SB-01 PA-06 Kiki's home and the owner's secrets are not to be seen, nor the processes outside", async () => {
    const bench = await at(await folder('see'))
    const seen = await bench.bash(
      `ls -A ${host.home}; cat ${host.home}/owner.token; ls -A ~/.ssh; cat ~/.netrc /etc/shadow; cat /proc/[0-9]*/cmdline | tr '\\0' ' '; ls /run`,
    )
    const text = textOf(seen)
    expect(text).not.toMatch(/kiki\.db|the key|the password|root:/)
    expect(text).not.toContain(`start --home`)
    expect(outputOf(seen)).toContain('launcher.js')
  })

  it("PA-03 SB-01 Kiki's home is not to be seen where it lies in the workspace itself", async () => {
    const own = mkdtempSync(join(homedir(), '.cache', 'kiki-inside-'))
    const inner = await startHost({ base: own, homeName: 'ws/.kiki' })
    try {
      const bench = await commandBench(inner, { sandbox: 'required' })
      const seen = await bench.bash(
        'ls -A .kiki; cat .kiki/owner.token .kiki/kiki.db; echo x > .kiki/new; cat .kiki/new',
      )
      expect(textOf(seen)).not.toMatch(/kiki_owner|SQLite|kiki\.db\n/)
      expect(readdirSync(join(own, 'ws/.kiki'))).not.toContain('new')
      await bench.client.close()
    } finally {
      await inner.stop()
      rmSync(own, { recursive: true, force: true })
    }
  })

  it('SB-01 the network is off unless granted, and one session shares one', async () => {
    const server = createServer((_, response) => response.end('reached')).listen(0, '127.0.0.1')
    await new Promise((resolve) => server.once('listening', resolve))
    const { port } = server.address() as AddressInfo
    const script = `node -e "fetch('http://127.0.0.1:${port}/').then(r=>r.text()).then(console.log,e=>console.log('failed '+e.cause.code))"`
    const workspace = await folder('net')
    expect(outputOf(await (await at(workspace)).bash(script))).toBe('failed ECONNREFUSED\n')
    expect(outputOf(await (await at(workspace, { network: 'on' })).bash(script))).toBe('reached\n')
    server.close()
  })

  it('SB-01 FC-P01 hooks, configuration and project files of Kiki cannot be made or changed, also where they are absent', async () => {
    const workspace = await folder('plain')
    const bench = await at(workspace)
    const absent = await bench.bash(
      'mkdir .kiki; echo x > .kiki/mcp.json; git init; mkdir -p .git/hooks; ls -A; rmdir .kiki .git; mv .git g; mv .kiki k',
    )
    expect(textOf(absent)).toMatch(/Read-only file system/)
    expect(readdirSync(join(workspace, '.kiki'))).toEqual([])
    expect(readdirSync(join(workspace, '.git'))).toEqual([])
    // What stands for nothing goes with the sandbox.
    await host.api('POST', `/api/sessions/${bench.session}/close`)
    expect(readdirSync(workspace)).toEqual([])
  })

  it('SB-01 in a repository git works, and nothing that the owner’s git would run can be planted', async () => {
    const workspace = await folder('repo')
    git(workspace, 'init', '-q')
    rmSync(join(workspace, '.git/hooks'), { recursive: true, force: true })
    const config = readFileSync(join(workspace, '.git/config'), 'utf8')
    const bench = await at(workspace)
    const done = await bench.bash(
      'echo a > a && git add a && git commit -qm one && git log --oneline | wc -l && git status --short',
    )
    expect(outputOf(done)).toBe('1\n')
    const planted = await bench.bash(
      'echo evil > .git/hooks/post-commit; echo evil >> .git/config; git config core.hooksPath /tmp; mv .git .g; rm -rf .git/hooks; mv .git/hooks .git/h; mkdir .git/hooks; echo ../evil > .git/commondir; echo done',
    )
    expect(outputOf(planted).endsWith('done\n')).toBe(true)
    expect(factsOf(planted).removed).toEqual([join(workspace, '.git/commondir')])
    expect(readFileSync(join(workspace, '.git/config'), 'utf8')).toBe(config)
    expect(existsSync(join(workspace, '.git/hooks/post-commit'))).toBe(false)
    expect(existsSync(join(workspace, '.git/commondir'))).toBe(false)
    expect(existsSync(join(workspace, '.git/h'))).toBe(false)
  })

  it('SB-01 in a linked worktree git commits, and the common hooks and configuration stay as they are', async () => {
    const main = await folder('main')
    git(main, 'init', '-q', '-b', 'main')
    git(main, 'commit', '-q', '--allow-empty', '-m', 'first')
    git(main, 'worktree', 'add', '-q', '-b', 'other', join(base, 'linked'))
    const config = readFileSync(join(main, '.git/config'), 'utf8')
    const bench = await at(join(base, 'linked'))
    const done = await bench.bash('echo a > a && git add a && git commit -qm two && git log --oneline | wc -l')
    expect(outputOf(done)).toBe('2\n')
    await bench.bash(
      `echo evil > ${main}/.git/hooks/post-commit; echo evil >> ${main}/.git/config; echo "gitdir: /tmp" > .git; echo x > ${main}/outside; mv ${main}/.git ${main}/g`,
    )
    expect(readFileSync(join(main, '.git/config'), 'utf8')).toBe(config)
    expect(existsSync(join(main, '.git/hooks/post-commit'))).toBe(false)
    expect(readdirSync(main)).toEqual(['.git'])
    expect(readFileSync(join(base, 'linked/.git'), 'utf8')).toContain('worktrees/linked')
    expect(git(main, 'log', '--oneline', 'other').trim().split('\n')).toHaveLength(2)
  })

  it('SB-01 a made-up .git file gives nothing', async () => {
    const secret = await folder('elsewhere')
    mkdirSync(join(secret, 'objects'))
    writeFileSync(join(secret, 'HEAD'), 'ref: refs/heads/main\n')
    mkdirSync(join(secret, 'worktrees/w'), { recursive: true })
    writeFileSync(join(secret, 'worktrees/w/commondir'), '../..\n')
    writeFileSync(join(secret, 'worktrees/w/gitdir'), '/some/other/.git\n')
    const workspace = await folder('fake')
    writeFileSync(join(workspace, '.git'), `gitdir: ${secret}/worktrees/w\n`)
    const bench = await at(workspace)
    await bench.bash(`echo x > ${secret}/objects/written`)
    expect(readdirSync(join(secret, 'objects'))).toEqual([])
  })
})

describe('how a sandbox ends', () => {
  const start = async (name: string) => {
    const bench = await at(await folder(name))
    const [own, back] = [String(6000 + benches.length), String(7000 + benches.length)]
    await bench.bash(`setsid sleep ${back}`, { background: true })
    const running = bench.bash(`env -i setsid sleep ${own} & sleep ${own}`, {}, { wait_ms: 500 })
    await running
    expect(sleeping([own, back])).toEqual([own, back])
    return { bench, both: [own, back] }
  }

  it('GU-30 SH-02 revoking ends commands and background processes before it returns', async () => {
    const { bench, both } = await start('revoked')
    const began = performance.now()
    await host.api('POST', `/api/connections/${bench.connection}/revoke`)
    expect(sleeping(both)).toEqual([])
    expect(performance.now() - began).toBeLessThan(2000)
  })

  it('SH-02 SB-01 a storm of processes that heed nothing is ended, with its sandbox if it must be, and told as the timeout that it was', async () => {
    const bench = await at(await folder('storm'))
    const script = 'for ((i = 0; i < 1500; i++)); do (trap "" TERM HUP; setsid sleep 977) & done; wait'
    const done = await bench.bash(script, { timeout_ms: 3000 })
    expect(done._meta?.['kiki/error']).toMatchObject({ code: 'timeout' })
    expect(sleeping(['977'])).toEqual([])
    expect(outputOf(await bench.bash('echo goes on'))).toBe('goes on\n')
  })

  it('SE-08 closing the session ends them too', async () => {
    const { bench, both } = await start('closed')
    await host.api('POST', `/api/sessions/${bench.session}/close`)
    expect(sleeping(both)).toEqual([])
  })

  it('AP-08 GU-30 a changed grant ends what ran under the old one', async () => {
    const { bench, both } = await start('changed')
    await host.api('PATCH', `/api/connections/${bench.connection}`, { grant: { network: 'on' } })
    expect(sleeping(both)).toEqual([])
    expect(outputOf(await bench.bash('echo goes on'))).toBe('goes on\n')
  })

  it('GU-05 FC-H08 SH-03 kill -9 of the host ends them, and the next one tells what they had written', async () => {
    const { bench, both } = await start('killed')
    const started = await bench.bash('echo from before; sleep 900', { background: true })
    const { process_id } = factsOf(started) as { process_id: string }
    // A bridge would start the next host by itself.
    for (const { client } of benches.splice(0)) await client.close()
    await host.kill()
    await expect.poll(() => sleeping(both), { timeout: 5000 }).toEqual([])
    await host.restart()
    const again = await attach(host, bench.connection, bench.session)
    benches.push(again)
    const page = factsOf(await again.call('ProcessOutput', { process_id }))
    expect(page).toMatchObject({ text: 'from before\n', status: 'lost' })
    expect(existsSync(join(base, 'killed/.git'))).toBe(false)
    const operations = await host.api<{ operations: { tool: string; status: string }[] }>(
      'GET',
      `/api/operations?session=${bench.session}`,
    )
    expect(
      operations.operations.filter(({ tool, status }) => tool === 'Bash' && status === 'outcome_unknown'),
    ).toHaveLength(1)
  })
})
