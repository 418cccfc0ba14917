/** What a child may inherit (GU-61, SH-06): enough to find programs, speak the owner's language and use a terminal. */
const ALLOWED = new Set([
  'PATH',
  'HOME',
  'USER',
  'LOGNAME',
  'SHELL',
  'LANG',
  'LANGUAGE',
  'TZ',
  'TMPDIR',
  'TERM',
  'COLORTERM',
  // Where a machine keeps the certificates that it trusts: without them nothing on its network can be reached.
  'SSL_CERT_FILE',
  'SSL_CERT_DIR',
  'NODE_EXTRA_CA_CERTS',
  'CURL_CA_BUNDLE',
  'REQUESTS_CA_BUNDLE',
  'GIT_SSL_CAINFO',
  'PIP_CERT',
  // Windows programs do not start without these.
  'SYSTEMROOT',
  'WINDIR',
  'COMSPEC',
  'PATHEXT',
  'USERPROFILE',
  'TEMP',
  'TMP',
])

/** The part of an environment that children get: the allow-list and `LC_*`. */
export function allowedEnvironment(source: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const allowed: Record<string, string> = {}
  for (const [name, value] of Object.entries(source)) {
    if (value !== undefined && (ALLOWED.has(name) || /^LC_[A-Z]+$/.test(name))) allowed[name] = value
  }
  return allowed
}
