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
  'POST /api/connections/:id/pause': 'stops new calls and cancels what waits; what runs goes on to its end',
  'POST /api/connections/:id/resume': 'lets a paused connection work again',
  'POST /api/connections/:id/revoke': 'ends it for good, with its work and its streams',
  'DELETE /api/connections/:id': 'deletes it with its sessions',
  'GET /api/sessions': 'sessions, newest first: `connection`, `status`, `limit`, `offset`',
  'POST /api/sessions':
    'makes one: `{connection, workspace, mode?, profile?, title?, worktree?}`; `worktree` is a branch',
  'GET /api/sessions/:ref': 'one session with its saved texts',
  'PATCH /api/sessions/:ref': 'changes it: `{title?, mode?}`',
  'POST /api/sessions/:ref/close':
    'ends it and its unfinished work; records stay, and so does a worktree that holds something',
  'DELETE /api/sessions/:ref': 'deletes it with its results',
  'POST /api/sessions/:ref/undo': 'takes back what file tools changed in it: `{since?, dry_run?}`',
  'GET /api/operations': 'recorded calls, newest first: `session`, `connection`, `status`, `limit`, `before`',
  'GET /api/operations/:id': 'one call with its arguments, result and changed files',
  'POST /api/operations/:id/cancel': 'stops it and every process that it began',
  'POST /api/operations/:id/resolve':
    'notes what was found about one whose outcome is unknown: `{found, note?}`, found being `happened` or `did_not_happen`',
  'POST /api/operations/:id/undo': 'takes back what it changed in files: `{dry_run?}`',
  'GET /api/processes': 'commands in the background, newest first: `session`, `connection`, `limit`',
  'POST /api/processes/:id/stop': 'ends one with everything that it started',
  'GET /api/doctor': 'what Kiki needs here, each with its state and how to mend it',
  'GET /api/approvals': 'what waits for the owner, oldest first, and how many readers take questions now',
  'GET /api/approvals/:id': 'one question in full, with what the call would change',
  'POST /api/approvals/:id/approve': 'approves it: `{scope?}`, scope being `once`, `session` or `always`',
  'POST /api/approvals/:id/deny': 'denies it: `{message?}`, which the client receives',
  'GET /api/events':
    'what happens, as server-sent events; with `approvals=1` the reader takes questions while it is connected',
  'POST /api/policy/explain': 'why a call would run, ask or be refused: `{session, tool, argument?}`',
  'GET /api/policy/rules': 'the standing rules of config.toml and of the owner’s answers',
  'DELETE /api/policy/rules/:id': 'removes a rule that an answer made; unfinished work is cancelled',
  'POST /api/policy/reload': 'reads config.toml again; a bad file changes nothing',
  'GET /api/changes': 'what file tools changed, newest first: `session` or `operation`, `limit`, `before`, `diff=true`',
  'GET /api/audit':
    'the audit log, newest first: `connection`, `session`, `action`, `tool`, `status`, `since`, `limit`, `before`',
  'GET /api/audit/export': 'the whole log as JSON Lines, its head last',
  'GET /api/audit/verify': 'whether the log is whole, and the first entry that does not fit: `head=SEQ:MAC`',
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
