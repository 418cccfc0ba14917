import { ownerRoutes } from '../../dist/owner/app.js'
import { loginRoutes } from '../../dist/owner/login.js'
import { code, pair, table } from './markdown.mjs'

/** What each route does. */
const DOES = {
  'POST /api/login/codes': 'makes a sign-in code for the settings page (local socket only)',
  'POST /api/login': 'signs the settings page in: `{code}`',
  'POST /api/logout': 'ends the calling page’s sign-in',
  'POST /api/logout/all': 'ends every sign-in and every unused code',
  'GET /api/status': 'what the host does now',
  'POST /api/stop': 'ends the host after the answer has left',
  'GET /api/connections': 'all connections',
  'POST /api/connections': 'makes one: `{name, kind?, grant?, expires_at?}`',
  'GET /api/connections/:id': 'one connection with its grant',
  'PATCH /api/connections/:id': 'changes it: `{name?, grant?, expires_at?}`; narrowing ends its unfinished work',
  'POST /api/connections/:id/pause': 'stops new calls; what runs goes on to its end',
  'POST /api/connections/:id/resume': 'lets a paused connection work again',
  'POST /api/connections/:id/revoke': 'ends it for good, with its work and its streams',
  'DELETE /api/connections/:id': 'deletes it with its sessions',
  'GET /api/sessions': 'sessions, newest first: `connection`, `status`, `limit`, `offset`',
  'POST /api/sessions': 'makes one: `{connection, workspace, mode?, profile?, title?}`',
  'GET /api/sessions/:ref': 'one session with its saved texts',
  'PATCH /api/sessions/:ref': 'changes it: `{title?, mode?}`',
  'POST /api/sessions/:ref/close': 'ends it and its unfinished work; records stay',
  'DELETE /api/sessions/:ref': 'deletes it with its results',
  'POST /api/sessions/:ref/undo': 'takes back what file tools changed in it: `{since?, dry_run?}`',
  'GET /api/approvals': 'what waits for the owner, oldest first, and how many take questions now',
  'GET /api/approvals/:id': 'one question with what the call would change now',
  'POST /api/approvals/:id/approve':
    'lets the call run: `{scope?}`, `once`, `session` or `always`; `changed: false` after an earlier answer',
  'POST /api/approvals/:id/deny':
    'refuses the call: `{message?}` goes to the client; `changed: false` after an earlier answer',
  'GET /api/events': 'server-sent events; with `approvals=1` its reader takes questions while it is connected',
  'POST /api/policy/explain': 'what would be decided about a call now: `{session, tool, argument?}`',
  'GET /api/policy/rules': 'the standing rules, and which of them the owner’s answers made',
  'DELETE /api/policy/rules/:id': 'removes a rule that an answer made; unfinished work is cancelled',
  'POST /api/policy/reload': 'reads `config.toml` again; a bad file changes nothing',
  'GET /api/operations': 'recorded calls, newest first: `session`, `connection`, `status`, `limit`, `before`',
  'GET /api/operations/:id': 'one call with its arguments, result and changed files',
  'POST /api/operations/:id/cancel': 'stops it and every process that it began',
  'POST /api/operations/:id/resolve': 'notes what became of a call of unknown outcome: `{found, note?}`',
  'POST /api/operations/:id/undo': 'takes back what it changed in files: `{dry_run?}`',
  'GET /api/changes': 'what file tools changed, newest first: `session` or `operation`, `limit`, `before`, `diff=true`',
  'POST /api/backup': 'saves the home into one file: `{file}`, an absolute path',
  'POST /api/bridge/credential': 'a short-lived credential for one connection’s bridge (local socket only)',
}

export function routeTables() {
  // The routes only tell their places here; nothing is called, so nothing needs to stand behind them.
  const login = loginRoutes({ auth: {}, log: {} }).routes
  const found = [...login, ...ownerRoutes({}).routes].filter(({ method }) => method !== 'ALL')
  const names = [...new Set(found.map(({ method, path }) => `${method} /api${path}`))]
  return table(
    ['route', 'does'],
    pair('routes', names, DOES).map(([name, does]) => [code(name), does]),
  )
}
