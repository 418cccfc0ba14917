import type { CommandClass } from '../classes.js'
import { classesOfWriting, secretsIn } from '../paths.js'
import { type Call, hasOption, type ProgramTable, same, tool } from '../rules.js'

const CURL =
  '-012346#aBfgGiIjklLnNpqRsSvZ -A: -b: -d: -e: -F: -H: -m: -r: -T: -u: -U: -w: -x: -X: -y: -Y: -z: --data: --data-raw: --data-binary: --data-urlencode: --json: --form: --header: --request: --user: --user-agent: --url: --location --silent --show-error --fail --fail-with-body --insecure --head --include --verbose --max-time: --connect-timeout: --retry: --retry-delay: --compressed --get --cookie: --referer: --proxy: --write-out: --http1.1 --http2 --globoff --resolve: --cacert: --cert: --key: --oauth2-bearer: --upload-file: --no-progress-meter --progress-bar --ipv4 --ipv6 --range: --unix-socket: --tlsv1.2'

function fetching(call: Call): CommandClass[] {
  const found = call.words.flatMap((word) => secretsIn(word))
  for (const word of call.words) {
    if (/^file:/i.test(word.value)) found.push('secret_access')
    if (/^-[a-zA-Z]*K|^--config/.test(word.value)) found.push('unknown')
  }
  // Without a name for them, downloads are named by the server.
  if (call.program === 'wget' && !writesToOutput(call)) found.push('file_write')
  return found
}

function writesToOutput(call: Call): boolean {
  const target = call.given.options.find(({ name }) => name === '-O' || name === '--output-document')?.value
  return target?.value === '-' || hasOption(call, '--spider')
}

const WGET =
  '-qvcnNSbrlkpEHLxt46 -T: -U: -i: -l: -t: -w: -A: -R: -D: -I: -X: -Q: -nc -nv -nd -np --quiet --verbose --no-verbose --continue --timestamping --server-response --spider --timeout: --tries: --user-agent: --header: --post-data: --post-file: --method: --body-data: --no-check-certificate --recursive --level: --no-parent --mirror --page-requisites --convert-links --no-clobber --user: --password: --max-redirect: --content-disposition --show-progress --progress: --input-file: --referer: --load-cookies: --https-only'

/** Where ssh and its like can be told to run a program on this machine. */
function remoting(call: Call): CommandClass[] {
  const runs = call.words.some(
    ({ value }) =>
      (/proxycommand|localcommand|knownhostscommand|permitlocal|pkcs11|include|match|^-[a-zA-Z46]*[FISDLRwWE]|^-o?$|^-o[A-Z]/i.test(
        value,
      ) &&
        value.startsWith('-')) ||
      /^(?:ProxyCommand|LocalCommand|KnownHostsCommand|PermitLocalCommand|PKCS11Provider)/i.test(value),
  )
  return [...call.words.flatMap(secretsIn), ...(runs ? (['code_execution', 'unknown'] as const) : [])]
}

function syncing(call: Call): CommandClass[] {
  const words = call.words.map(({ value }) => value)
  const found: CommandClass[] = call.words.flatMap(secretsIn)
  if (
    words.some((word) =>
      /^-[a-zA-Z]*[eMf]|^--(?:rsh|rsync-p|early-i|copy-as|filter|blocking|password-f|config|files-f)/.test(word),
    )
  )
    found.push('code_execution', 'unknown')
  if (words.some((word) => /^--(?:del|remove-s|ignore-errors|force)/.test(word))) found.push('file_delete')
  if (words.some((word) => /^(?:[\w.@-]+|\[[\da-f:]+\]):|^rsync:/.test(word))) found.push('network_egress')
  const target = call.words.filter((word) => !word.value.startsWith('-')).at(-1)
  if (call.words.some((word) => !word.known)) found.push('unknown')
  return [...found, ...(target === undefined ? [] : classesOfWriting(target))]
}

const NET: CommandClass[] = ['network_egress']

export const NETWORK: ProgramTable = {
  curl: tool(NET, {
    options: CURL,
    adds: {
      '-o: --output: -D: --dump-header: -c: --cookie-jar: --trace: --trace-ascii: --stderr: --etag-save: --hsts: --alt-svc: --libcurl:':
        ['file_write'],
      '-OJ --remote-name --remote-name-all --remote-header-name --output-dir: --create-dirs': [
        'file_write',
        'network_egress',
      ],
      '-Q: --quote: --engine: --netrc-file: -K: --config: -E: --proxy-cert:': ['unknown'],
    },
    operands: 'text',
    check: fetching,
  }),
  wget: tool(NET, {
    options: WGET,
    adds: {
      '-O: --output-document: -o: --output-file: -a: --append-output:': ['file_write'],
      '-P: --directory-prefix: --save-cookies: --warc-file:': ['file_write', 'network_egress'],
      '-e: --execute: --use-askpass: --config:': ['code_execution', 'unknown'],
    },
    operands: 'text',
    check: fetching,
  }),
  ...same('ssh mosh autossh', tool(NET, { operands: 'own', check: remoting })),
  ...same('scp sftp', tool([...NET, 'file_write'], { operands: 'own', check: remoting })),
  rsync: tool(['file_write'], { operands: 'own', check: syncing }),
  ...same('nc ncat netcat socat', tool([...NET, 'code_execution', 'unknown'])),
  ...same(
    'telnet ftp tftp lftp ncftp http https xh httpie aria2c axel yt-dlp lynx w3m links',
    tool([...NET, 'file_write', 'unknown']),
  ),
  ...same('ping ping6 traceroute tracepath mtr nslookup host whois', tool(NET)),
  dig: tool(NET, {
    check: (call) => (call.words.some(({ value }) => /^-f/.test(value)) ? ['secret_access', 'unknown'] : []),
  }),
  ...same('nmap tcpdump tshark masscan', tool([...NET, 'code_execution', 'system_change', 'unknown'])),
  ...same('sendmail mail mailx mutt msmtp', tool([...NET, 'code_execution', 'unknown'])),
  ...same(
    'aws gcloud az doctl heroku fly flyctl vercel netlify firebase wrangler railway supabase stripe',
    tool([...NET, 'unknown'], {
      check: (call) =>
        call.words.some(({ value }) => /^(?:rb|rm|delete.*|destroy|terminate.*|purge|apps:destroy)$/.test(value))
          ? ['destructive']
          : [],
    }),
  ),
  ...same('s3cmd rclone gsutil mc', tool([...NET, 'file_write', 'unknown'])),
  ...same(
    'psql mysql mariadb mongosh mongo redis-cli sqlite3 sqlcmd clickhouse-client cqlsh',
    tool([...NET, 'file_write', 'code_execution', 'unknown'], {
      check: (call) =>
        /\b(?:drop|truncate)\s+(?:table|database|schema)|\bflush(?:all|db)\b|\bdropDatabase\b/i.test(
          call.words.map(({ value }) => value).join(' '),
        )
          ? ['destructive']
          : [],
    }),
  ),
  ...same('dropdb dropuser', tool([...NET, 'destructive'])),
  ...same('ngrok cloudflared localtunnel tailscale wg wg-quick openvpn', tool([...NET, 'system_change', 'unknown'])),
  'ssh-keygen': tool(['file_write', 'secret_access', 'unknown']),
  ...same('ssh-add ssh-copy-id ssh-keyscan', tool([...NET, 'secret_access', 'unknown'])),
  ...same(
    'gpg gpg2 openssl age pass op vault bw keyring security secret-tool',
    tool(['secret_access', 'file_write', 'code_execution', 'unknown']),
  ),
}
