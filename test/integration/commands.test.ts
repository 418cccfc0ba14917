import { execFileSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startHost, type TestHost } from '../helpers/host.js'
import { type Bench, commandBench, factsOf, operationOf, outputOf, sleeping, textOf } from './command-bench.js'

let host: TestHost
beforeAll(async () => {
  host = await startHost()
})
afterAll(() => host.stop())

for (const sandbox of ['required', 'off'] as const) {
  describe(`with sandbox ${sandbox}`, () => {
    let at: Bench
    beforeAll(async () => {
      at = await commandBench(host, { sandbox })
    })
    afterAll(() => at.client.close())

    it('SH-01 a command is answered with its output in order, exit code and duration', async () => {
      const done = await at.bash('echo out; echo err >&2; echo again >/dev/stderr; pwd')
      expect(outputOf(done)).toBe(`out\nerr\nagain\n${host.workspace}\n`)
      expect(factsOf(done)).toMatchObject({ exit_code: 0, signal: null, timed_out: false, truncated: false })
      expect(done.isError).toBeUndefined()
      const failed = await at.bash('echo why; exit 3')
      expect(failed.isError).toBe(true)
      expect(textOf(failed)).toMatch(/^why\n\ncommand_failed: Exit code 3/)
      expect(factsOf(failed)).toMatchObject({ exit_code: 3 })
    })

    it('FC-H07 death by a signal is a failure that names it', async () => {
      for (const signal of ['KILL', 'SEGV']) {
        const killed = await at.bash(`kill -${signal} $$`)
        expect(killed.isError).toBe(true)
        expect(factsOf(killed)).toMatchObject({ exit_code: null, signal: `SIG${signal}` })
      }
    })

    it('FC-H04 each call begins in the workspace, whatever became of the folder before', async () => {
      await at.bash('mkdir d && cd d')
      await at.bash('rmdir d')
      expect(outputOf(await at.bash('pwd'))).toBe(`${host.workspace}\n`)
      const gone = await at.bash('pwd', { cwd: 'd' })
      expect(textOf(gone)).toMatch(/^not_found: "d" is no folder to run in/)
    })

    it('SH-04 FC-H10 what reads standard input ends at once, and the stream goes on', async () => {
      const began = performance.now()
      await at.bash('cat; python3 -c "input()"; ssh-keygen </dev/null; head -1')
      expect(performance.now() - began).toBeLessThan(10_000)
      expect(outputOf(await at.bash('echo still here'))).toBe('still here\n')
    })

    it('SH-02 FC-H03 FC-H05 GU-22 a command that timed out is failed with its output, and nothing of it is left', async () => {
      const done = await at.bash(
        'echo before; setsid sleep 701 & (trap "" TERM; exec sleep 702) & bash -c "sleep 703 & wait"',
        { timeout_ms: 700 },
      )
      expect(operationOf(done).status).toBe('failed')
      expect(done._meta?.['kiki/error']).toMatchObject({ code: 'timeout' })
      expect(factsOf(done)).toMatchObject({ timed_out: true })
      expect(textOf(done)).toMatch(/^before\n/)
      expect(sleeping(['701', '702', '703'])).toEqual([])
    })

    it('GU-21 OP-11 a daemon of a cancelled command is gone within 2 s', async () => {
      const daemon = 'env -i setsid sh -c \'sh -c "trap \\"\\" TERM HUP; sleep 711" >/dev/null 2>&1 &\''
      const receipt = await at.bash(`${daemon}; setsid sleep 712 & trap '' TERM; sleep 713`, {}, { wait_ms: 1000 })
      const { operation_id, status } = operationOf(receipt)
      expect(status).toBe('running')
      expect(sleeping(['711', '712', '713'])).toEqual(['711', '712', '713'])
      const began = performance.now()
      await at.client.call('kiki_operation', { action: 'cancel', operation_id })
      expect(performance.now() - began).toBeLessThan(2000)
      expect(sleeping(['711', '712', '713'])).toEqual([])
      const after = await at.client.call('kiki_operation', { action: 'get', operation_id })
      expect(after.structuredContent).toMatchObject({ status: 'cancelled', effects_possible: true })
    })

    it('SH-06 GU-61 a command sees no variable that is not on the list, and what the call sets', async () => {
      const seen = await at.bash('env', { env: { GIVEN: 'x y' } })
      const names = outputOf(seen)
        .split('\n')
        .map((line) => line.split('=')[0])
      expect(outputOf(seen)).toContain('GIVEN=x y\n')
      expect(outputOf(seen)).toMatch(/^CI=1$/m)
      const allowed = new Set(
        'PATH HOME USER LOGNAME SHELL LANG LANGUAGE TZ TMPDIR TERM COLORTERM CI PAGER GIT_PAGER MANPAGER GIT_TERMINAL_PROMPT GIT_EDITOR KIKI_OPERATION_ID GIVEN PWD SHLVL _ XDG_CACHE_HOME npm_config_cache YARN_CACHE_FOLDER GOMODCACHE GRADLE_USER_HOME SSL_CERT_FILE SSL_CERT_DIR NODE_EXTRA_CA_CERTS CURL_CA_BUNDLE REQUESTS_CA_BUNDLE GIT_SSL_CAINFO PIP_CERT'.split(
          ' ',
        ),
      )
      expect(
        names.filter((name) => name !== '' && name !== undefined && !allowed.has(name) && !/^LC_/.test(name)),
      ).toEqual([])
    })

    it('FC-H01 no pager waits for anybody', async () => {
      const repo = join(host.workspace, `repo-${sandbox}`)
      mkdirSync(repo)
      execFileSync('git', ['init', '-q'], { cwd: repo })
      for (let n = 0; n < 60; n++) {
        execFileSync(
          'git',
          ['-c', 'user.name=a', '-c', 'user.email=b', 'commit', '-q', '--allow-empty', '-m', `c${n}`],
          { cwd: repo },
        )
      }
      const log = await at.bash('git log', { cwd: `repo-${sandbox}`, timeout_ms: 20_000 })
      expect(outputOf(log).match(/^commit /gm)).toHaveLength(60)
    })

    it('SH-03 a background process is read by cursor, answers the next command, takes input and is stopped', async () => {
      const server = `require('node:http').createServer((q,s)=>{console.log('asked '+q.url);s.end('hello')}).listen(0,'127.0.0.1',function(){console.log('port '+this.address().port)})`
      const started = await at.bash(`node -e "${server}"`, { background: true })
      const { process_id } = factsOf(started) as { process_id: string }
      let output = ''
      let cursor = 0
      while (!/port \d+\n/.test(output)) {
        const page = factsOf(await at.call('ProcessOutput', { process_id, cursor, wait_ms: 10_000 })) as {
          text: string
          cursor: number
        }
        output += page.text
        cursor = page.cursor
      }
      const port = /port (\d+)/.exec(output)?.[1]
      const asked = await at.bash(`node -e "fetch('http://127.0.0.1:${port}/x').then(r=>r.text()).then(console.log)"`)
      expect(outputOf(asked)).toBe('hello\n')
      const more = factsOf(await at.call('ProcessOutput', { process_id, cursor, wait_ms: 10_000 }))
      expect(more).toMatchObject({ text: 'asked /x\n', status: 'running' })
      expect(textOf(await at.call('ProcessOutput'))).toContain(process_id)
      await at.call('ProcessInput', { process_id, signal: 'SIGTERM' })
      const end = factsOf(await at.call('ProcessOutput', { process_id, cursor: more.cursor, wait_ms: 10_000 }))
      expect(end).toMatchObject({ status: 'exited', signal: 'SIGTERM' })
      const dead = await at.call('ProcessInput', { process_id, text: 'x' })
      expect(textOf(dead)).toMatch(/^conflict: Process proc_\w+ is over: ended by SIGTERM/)
    })

    it('SH-03 SH-04 what is typed reaches a process, by a pipe and in a terminal', async () => {
      for (const tty of [false, true]) {
        const started = await at.bash('read -r name; test -t 0 && echo tty; echo "hi $name"', { background: true, tty })
        const { process_id } = factsOf(started) as { process_id: string }
        await at.call('ProcessInput', { process_id, text: 'Kiki\n' })
        let page = factsOf(await at.call('ProcessOutput', { process_id, wait_ms: 10_000 }))
        while (page.status === 'running')
          page = factsOf(await at.call('ProcessOutput', { process_id, cursor: page.cursor, wait_ms: 1000 }))
        expect(factsOf(await at.call('ProcessOutput', { process_id })).text).toBe(
          tty ? 'Kiki\ntty\nhi Kiki\n' : 'hi Kiki\n',
        )
      }
    })
  })
}
