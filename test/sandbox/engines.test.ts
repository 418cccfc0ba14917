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
  env: { PATH: '/usr/bin', HOME: '/home/o', LANG: 'C.UTF-8' },
  door: '/home/o/.kiki/run/run-a',
}
const limits = { image: 'node:22', memory_mb: 4096, cpus: 2, processes: 512 }

const dockerOf = (over: Partial<Confinement>) =>
  docker({ ...confinement, ...over }, { ...launcher, programFolder: '/opt/kiki', user: '1000:1000' }, limits)

it('SB-03 docker: no capabilities, no new privileges, read-only root, limits, no programs in /tmp, no network', () => {
  const started = dockerOf({})
  expect(started.argv).toEqual(
    [
      'docker run --rm --interactive --init --pull never --name kiki-run-a',
      '--log-driver none --no-healthcheck --entrypoint node',
      '--cap-drop ALL --security-opt no-new-privileges --read-only --user 1000:1000',
      '--memory 4096m --memory-swap 4096m --cpus 2 --pids-limit 512',
      '--tmpfs /tmp:rw,nosuid,nodev,noexec --network none',
      '--mount type=bind,source=/home/o/ws,target=/home/o/ws',
      '--mount type=bind,source=/home/o/cache,target=/home/o/cache',
      '--mount type=bind,source=/home/o/ws/.git,target=/home/o/ws/.git',
      '--mount type=bind,source=/home/o/ws/.git/hooks,target=/home/o/ws/.git/hooks,readonly',
      '--mount type=bind,source=/home/o/ws/.kiki,target=/home/o/ws/.kiki,readonly',
      '--mount type=tmpfs,target=/home/o/ws/.aws,tmpfs-size=4096,readonly',
      '--mount type=bind,source=/opt/kiki,target=/opt/kiki,readonly',
      '--mount type=bind,source=/home/o/.kiki/run/run-a,target=/run/kiki',
      '--workdir /home/o/ws --env LANG node:22',
      '--max-old-space-size=64 /opt/kiki/dist/processes/launcher.js',
    ]
      .join(' ')
      .split(' '),
  )
  expect(started.env).toEqual(launcher.env)
  expect(started.address).toBe('/run/kiki/s')
  expect(dockerOf({ network: true }).argv.join(' ')).toContain('--network bridge')
})

it('SB-03 docker: the container is removed by its name, however its launcher ended', () => {
  expect(dockerOf({}).stop).toEqual(['docker', 'rm', '--force', 'kiki-run-a'])
})

it('SB-03 docker: a path with commas, quotes, colons or line ends is one field of CSV', () => {
  const odd = '/a,b "c":d\ne'
  const { argv } = dockerOf({
    writable: [odd],
    workspace: odd,
    frozen: [],
    fixed: [],
    hidden: [
      { path: `${odd}/.aws`, kind: 'folder' },
      { path: `${odd}/.netrc`, kind: 'file' },
    ],
  })
  expect(argv).toContain('type=bind,"source=/a,b ""c"":d\ne","target=/a,b ""c"":d\ne"')
  expect(argv).toContain('type=tmpfs,"target=/a,b ""c"":d\ne/.aws",tmpfs-size=4096,readonly')
  expect(argv).toContain('type=bind,source=/dev/null,"target=/a,b ""c"":d\ne/.netrc",readonly')
})

it('SB-03 docker: no place is mounted twice, and what was granted by its own name is seen and can be written', () => {
  const { argv } = dockerOf({
    writable: ['/home/o/ws', '/home/o/ws/.aws', '/elsewhere/.git'],
    frozen: ['/home/o/ws/.git', '/outside/.kiki'],
    fixed: ['/home/o/ws/.git', '/elsewhere/.git', '/outside'],
  })
  const mounts = argv.filter((_, index) => argv[index - 1] === '--mount')
  expect(mounts.slice(0, 4)).toEqual([
    'type=bind,source=/home/o/ws,target=/home/o/ws',
    'type=bind,source=/home/o/ws/.aws,target=/home/o/ws/.aws',
    'type=bind,source=/elsewhere/.git,target=/elsewhere/.git',
    'type=bind,source=/home/o/ws/.git,target=/home/o/ws/.git,readonly',
  ])
  const targets = mounts.map((one) => /target=([^,]+)/.exec(one)?.[1])
  expect(new Set(targets).size).toBe(targets.length)
})

it("SB-03 docker: only Kiki's own program is named by its place in the container", () => {
  const { argv } = docker(
    confinement,
    {
      ...launcher,
      argv: ['/usr/bin/node', '--require=/srv/kiki/x', '/srv/kiki/dist/launcher.js', '/srv/kiki-other/y'],
      ...{ programFolder: '/srv/kiki', user: '1:1' },
    },
    limits,
  )
  expect(argv.slice(-3)).toEqual(['--require=/srv/kiki/x', '/opt/kiki/dist/launcher.js', '/srv/kiki-other/y'])
})

it('SB-01 Seatbelt: nothing by default, the deeper place over the one around it, and nothing guarded can be moved', () => {
  expect(seatbeltProfile(confinement, launcher.door)).toBe(
    [
      '(version 1)',
      '(deny default)',
      '(allow process-exec process-fork)',
      '(allow signal process-info* (target same-sandbox))',
      '(allow mach-host* ipc-posix-shm ipc-posix-sem)',
      '(allow mach-lookup',
      '  (global-name "com.apple.system.opendirectoryd.libinfo")',
      '  (global-name "com.apple.system.opendirectoryd.membership")',
      '  (global-name "com.apple.bsd.dirhelper")',
      '  (global-name "com.apple.logd")',
      '  (global-name "com.apple.system.logger")',
      '  (global-name "com.apple.system.notification_center"))',
      '(allow sysctl-read',
      ...[
        ...['argmax', 'boottime', 'hostname', 'maxfiles', 'maxfilesperproc', 'maxproc', 'ngroups', 'secure_kernel'],
        ...['tcsm_available', 'tcsm_enable', 'usrstack64', 'version'],
      ].map((name) => `  (sysctl-name "kern.${name}")`),
      ...['hw.', 'machdep.', 'vm.', 'kern.os', 'net.routetable.'].map((name) => `  (sysctl-name-prefix "${name}")`),
      '  (sysctl-name-prefix "sysctl.proc_"))',
      '(allow file-read*)',
      '(deny file-read*\n  (regex #"^/dev/ttys[0-9]+"))',
      '(allow file-read* file-write* file-ioctl',
      '  (literal "/dev/null")\n  (literal "/dev/zero")\n  (literal "/dev/tty")\n  (literal "/dev/ptmx"))',
      '(allow pseudo-tty)',
      '(allow file-read* file-write* file-ioctl (require-all (regex #"^/dev/ttys[0-9]+") (extension "com.apple.sandbox.pty")))',
      '(allow file-read*\n  (subpath "/opt/kiki"))',
      '(deny file-read* file-write*\n  (subpath "/home/o/.kiki"))',
      '(deny file-read* file-write*\n  (subpath "/home/o/.ssh"))',
      '(deny file-read* file-write*\n  (subpath "/home/o/.netrc"))',
      '(allow file-read*\n  (subpath "/usr/bin/node"))',
      '(allow file-read* file-write*\n  (subpath "/home/o/ws"))',
      '(allow file-read* file-write*\n  (subpath "/home/o/cache"))',
      '(deny file-read* file-write*\n  (subpath "/home/o/ws/.aws"))',
      '(allow file-read* file-write*\n  (subpath "/home/o/.kiki/run/run-a"))',
      '(allow file-read* file-write*\n  (subpath "/home/o/.kiki/run/tmp/ext_1"))',
      '(allow file-read-metadata',
      '  (literal "/home/o/.kiki")\n  (literal "/home/o/.kiki/run")\n  (literal "/home/o/.kiki/run/tmp"))',
      '(deny file-write*\n  (subpath "/home/o/ws/.git/hooks")\n  (subpath "/home/o/ws/.kiki"))',
      '(deny file-write-unlink',
      '  (literal "/home/o/ws")\n  (literal "/home/o/cache")\n  (literal "/home/o/ws/.git/hooks")',
      '  (literal "/home/o/ws/.git")\n  (literal "/home/o/ws/.kiki")\n  (literal "/home/o/ws/.aws"))',
      '(allow network-bind network-inbound (local ip "localhost:*"))',
      '(allow network-outbound (remote ip "localhost:*"))',
      '(allow system-socket (socket-domain AF_UNIX))',
      '(allow network-bind network-inbound',
      '  (local unix-socket (subpath "/home/o/ws"))\n  (local unix-socket (subpath "/home/o/cache")))',
      '(allow network-outbound',
      '  (remote unix-socket (subpath "/home/o/ws"))\n  (remote unix-socket (subpath "/home/o/cache")))',
      '(deny network-bind network-inbound\n  (local unix-socket (subpath "/home/o/ws/.aws")))',
      '(deny network-outbound\n  (remote unix-socket (subpath "/home/o/ws/.aws")))',
      '(allow network-bind network-inbound\n  (local unix-socket (subpath "/home/o/.kiki/run/tmp/ext_1")))',
      '(allow network-outbound',
      '  (remote unix-socket (subpath "/home/o/.kiki/run/tmp/ext_1"))',
      '  (remote unix-socket (subpath "/home/o/.kiki/run/run-a")))',
    ].join('\n'),
  )
  const odd = seatbeltProfile({ ...confinement, workspace: '/a"b\\c', writable: ['/a"b\\c'] }, '/d')
  expect(odd).toContain('(subpath "/a\\"b\\\\c")')
})

it('SB-01 Seatbelt: the network reaches other machines and names, never the sockets of other programs', () => {
  const profile = seatbeltProfile({ ...confinement, network: true }, launcher.door)
  expect(profile).toContain('(allow network-outbound (remote ip "*:*"))')
  expect(profile).toContain('(allow network-bind network-inbound (local ip "*:*"))')
  expect(profile).toContain('(global-name "com.apple.SystemConfiguration.DNSConfiguration")')
  expect(profile.match(/\(remote unix-socket \(literal .*/g)).toEqual([
    '(remote unix-socket (literal "/private/var/run/mDNSResponder")))',
  ])
  expect(profile).not.toMatch(/network\*/)
})

it('SB-01 Seatbelt: folders around a nested repository cannot be moved, a granted folder in a hidden one is seen, and a rule about nothing is left out', () => {
  const nested = seatbeltProfile(
    {
      ...confinement,
      writable: ['/home/o/ws', '/home/o/ws/secret/open'],
      frozen: ['/home/o/ws/a/b/.git/hooks'],
      fixed: ['/home/o/ws/a/b/.git'],
      hidden: [{ path: '/home/o/ws/secret', kind: 'folder' }],
    },
    launcher.door,
  )
  const unlink = /\(deny file-write-unlink\n([^)]*\)\n?)+\)/.exec(nested)?.[0] ?? ''
  for (const path of ['/home/o/ws', '/home/o/ws/a', '/home/o/ws/a/b', '/home/o/ws/a/b/.git', '/home/o/ws/secret']) {
    expect(unlink, path).toContain(`(literal "${path}")`)
  }
  expect(unlink).not.toContain('(literal "/home/o")')
  const at = (text: string) => {
    const index = nested.indexOf(text)
    expect(index, text).toBeGreaterThan(-1)
    return index
  }
  const hidden = at('(deny file-read* file-write*\n  (subpath "/home/o/ws/secret"))')
  expect(at('(allow file-read* file-write*\n  (subpath "/home/o/ws"))')).toBeLessThan(hidden)
  expect(at('(allow file-read* file-write*\n  (subpath "/home/o/ws/secret/open"))')).toBeGreaterThan(hidden)
  const bare = seatbeltProfile({ ...confinement, frozen: [], fixed: [], hidden: [] }, launcher.door)
  expect(bare).not.toMatch(/\n\)|^\([a-z-]+ file-write\*\)$/m)
  expect(bare).not.toContain('(deny file-write*')
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
  const deep = bubblewrapOptions(
    { ...confinement, writable: ['/home/o/ws/.aws/open', '/home/o/ws', '/home/o/.ssh'] },
    launcher.door,
  ).join('\n')
  const order = ['--bind\n/home/o/ws\n', '--tmpfs\n/home/o/ws/.aws\n', '--bind\n/home/o/ws/.aws/open\n']
  expect(order.map((words) => deep.indexOf(words))).toEqual(
    order.map((words) => deep.indexOf(words)).toSorted((a, b) => a - b),
  )
  expect(order.every((words) => deep.includes(words))).toBe(true)
  expect(deep).toContain('--bind\n/home/o/.ssh\n')
  expect(deep).not.toContain('--tmpfs\n/home/o/.ssh\n')
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
