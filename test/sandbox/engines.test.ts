import { expect, it } from 'vitest'
import { bubblewrapOptions } from '../../src/sandbox/bubblewrap.js'
import type { Confinement } from '../../src/sandbox/confinement.js'
import { docker } from '../../src/sandbox/docker.js'
import { matchesHost } from '../../src/sandbox/network.js'
import { seatbeltProfile } from '../../src/sandbox/seatbelt.js'

const confinement: Confinement = {
  workspace: '/home/o/ws',
  writable: ['/home/o/ws', '/home/o/cache'],
  temporary: '/home/o/.kiki/run/tmp/ext_1',
  frozen: ['/home/o/ws/.git/hooks', '/home/o/ws/.kiki'],
  fixed: ['/home/o/ws/.git'],
  hidden: [
    { path: '/home/o/.kiki', kind: 'folder' },
    { path: '/home/o/.ssh', kind: 'folder' },
    { path: '/home/o/ws/.aws', kind: 'folder' },
    { path: '/home/o/.netrc', kind: 'file' },
  ],
  programs: ['/opt/kiki', '/usr/bin/node'],
  network: false,
}
const launcher = {
  argv: ['/usr/bin/node', '--max-old-space-size=64', '/opt/kiki/dist/processes/launcher.js'] as const,
  env: { PATH: '/usr/bin' },
  door: '/home/o/.kiki/run/run-a',
}
const limits = { image: 'node:22', memory_mb: 4096, cpus: 2, processes: 512 }

it('SB-03 docker: no capabilities, no new privileges, read-only root, limits, no programs in /tmp, no network', () => {
  const started = docker(confinement, { ...launcher, programFolder: '/opt/kiki', user: '1000:1000' }, limits)
  expect(started.argv).toEqual(
    [
      'docker run --rm --interactive --init --pull never',
      '--cap-drop ALL --security-opt no-new-privileges --read-only --user 1000:1000',
      '--memory 4096m --memory-swap 4096m --cpus 2 --pids-limit 512',
      '--tmpfs /tmp:rw,nosuid,nodev,noexec --network none',
      '--mount type=bind,source=/home/o/ws,target=/home/o/ws',
      '--mount type=bind,source=/home/o/cache,target=/home/o/cache',
      '--mount type=bind,source=/home/o/ws/.git/hooks,target=/home/o/ws/.git/hooks,readonly',
      '--mount type=bind,source=/home/o/ws/.kiki,target=/home/o/ws/.kiki,readonly',
      '--tmpfs /home/o/ws/.aws:ro,size=4k',
      '--mount type=bind,source=/opt/kiki,target=/opt/kiki,readonly',
      '--mount type=bind,source=/home/o/.kiki/run/run-a,target=/run/kiki',
      '--workdir /home/o/ws --env PATH node:22 node',
      '--max-old-space-size=64 /opt/kiki/dist/processes/launcher.js',
    ]
      .join(' ')
      .split(' '),
  )
  expect(started.address).toBe('/run/kiki/s')
  const odd = docker(
    { ...confinement, writable: ['/a,b "c"'], workspace: '/a,b "c"', frozen: [], hidden: [] },
    { ...launcher, programFolder: '/opt/kiki', user: '1:1' },
    limits,
  )
  expect(odd.argv).toContain('type=bind,source="/a,b ""c""",target="/a,b ""c"""')
  const open = docker(
    { ...confinement, network: true },
    { ...launcher, programFolder: '/opt/kiki', user: '1:1' },
    limits,
  )
  expect(open.argv.join(' ')).toContain('--network bridge')
})

it('SB-01 Seatbelt: nothing by default, writes where granted, the frozen and the hidden last', () => {
  expect(seatbeltProfile(confinement, launcher.door)).toBe(
    [
      '(version 1)',
      '(deny default)',
      '(allow process-exec process-fork)',
      '(allow signal (target same-sandbox))',
      '(allow sysctl-read mach-lookup ipc-posix-shm pseudo-tty)',
      '(allow file-read* file-ioctl)',
      '(deny file-read* file-write*\n  (subpath "/home/o/.kiki")\n  (subpath "/home/o/.ssh")\n  (subpath "/home/o/ws/.aws")\n  (subpath "/home/o/.netrc"))',
      '(allow file-read*\n  (subpath "/opt/kiki")\n  (subpath "/usr/bin/node"))',
      '(allow file-read* file-write*\n  (subpath "/home/o/ws")\n  (subpath "/home/o/cache")\n  (subpath "/home/o/.kiki/run/tmp/ext_1")\n  (subpath "/home/o/.kiki/run/run-a")\n  (literal "/dev/null")\n  (literal "/dev/tty")\n  (literal "/dev/zero"))',
      '(deny file-read* file-write*\n  (subpath "/home/o/ws/.aws"))',
      '(deny file-write*\n  (subpath "/home/o/ws/.git/hooks")\n  (subpath "/home/o/ws/.kiki"))',
      '(deny file-write-unlink\n  (literal "/home/o/ws/.git/hooks")\n  (literal "/home/o/ws/.kiki")\n  (literal "/home/o/ws/.git"))',
      '(allow network* (local ip "localhost:*") (remote ip "localhost:*"))',
      '(allow network-outbound (subpath "/home/o/.kiki/run/run-a"))',
    ].join('\n'),
  )
  expect(seatbeltProfile({ ...confinement, workspace: '/a"b\\c', writable: ['/a"b\\c'] }, '/d')).toContain(
    '(subpath "/a\\"b\\\\c")',
  )
})

it('SB-01 bubblewrap: what is granted lies over what is hidden around it, and what is hidden within it over that', () => {
  const options = bubblewrapOptions(
    {
      ...confinement,
      hidden: [...confinement.hidden, { path: '/home/o/ws-parent', kind: 'folder' }],
      writable: ['/home/o/ws', '/home/o/ws-parent/ws'],
    },
    launcher.door,
  )
  const at = (...words: string[]) => options.join('\n').indexOf(words.join('\n'))
  expect(at('--tmpfs', '/home/o/ws-parent')).toBeLessThan(at('--bind', '/home/o/ws-parent/ws', '/home/o/ws-parent/ws'))
  expect(at('--tmpfs', '/home/o/ws/.aws')).toBeGreaterThan(at('--bind', '/home/o/ws', '/home/o/ws'))
  expect(at('--ro-bind', '/home/o/ws/.git/hooks')).toBeGreaterThan(at('--bind', '/home/o/ws/.git', '/home/o/ws/.git'))
  expect(options.slice(0, 9)).toContain('--unshare-net')
  expect(bubblewrapOptions({ ...confinement, network: true }, launcher.door)).not.toContain('--unshare-net')
})

it('GR-02 hosts are compared by whole names, without regard to case, and with their port', () => {
  const yes: [string, string, number][] = [
    ['example.com', 'EXAMPLE.com', 443],
    ['example.com', 'example.com.', 80],
    ['*.example.com', 'a.b.example.com', 443],
    ['example.com:443', 'example.com', 443],
    ['127.0.0.1:4873', '127.0.0.1', 4873],
  ]
  const no: [string, string, number][] = [
    ['example.com', 'evil-example.com', 443],
    ['example.com', 'example.com.evil', 443],
    ['*.example.com', 'example.com', 443],
    ['*.example.com', 'evilexample.com', 443],
    ['example.com:443', 'example.com', 80],
    ['example.com', 'a.example.com', 443],
  ]
  expect(yes.filter(([pattern, host, port]) => !matchesHost(pattern, host, port))).toEqual([])
  expect(no.filter(([pattern, host, port]) => matchesHost(pattern, host, port))).toEqual([])
})
