import { useState } from 'react'
import { Command } from './command.js'

/** The clients that `kiki connect` knows (CL-13). */
const CLIENTS = [
  ['claude-code', 'Claude Code'],
  ['claude-desktop', 'Claude Desktop'],
  ['cursor', 'Cursor'],
  ['vscode', 'VS Code'],
  ['codex', 'Codex'],
  ['gemini', 'Gemini'],
  ['opencode', 'OpenCode'],
  ['zed', 'Zed'],
  ['windsurf', 'Windsurf'],
] as const

/** The way from nothing to a working client, as commands. */
export function FirstSteps() {
  const [client, setClient] = useState<string>(CLIENTS[0][0])
  return (
    <ol className="steps">
      <li>
        <h3>Say what a client may do</h3>
        <p>
          A connection is one client's grant. <code>observer</code> may read and search; <code>editor</code> may also
          change files.
        </p>
        <Command text='kiki connections add --name "My client" --preset observer' label="the command of step 1" />
      </li>
      <li>
        <h3>Choose the folder</h3>
        <p>
          A session is one conversation in one folder; file tools reach nothing outside it that you did not grant. Put
          the id that step 1 printed in place of <code>CLIENT_ID</code>.
        </p>
        <Command
          text="kiki sessions create --connection CLIENT_ID --workspace ~/my-project"
          label="the command of step 2"
        />
      </li>
      <li>
        <h3>Connect the client</h3>
        <p>
          <label htmlFor="client">Your client</label>{' '}
          <select id="client" value={client} onChange={(event) => setClient(event.target.value)}>
            {CLIENTS.map(([id, name]) => (
              <option key={id} value={id}>
                {name}
              </option>
            ))}
          </select>
        </p>
        <Command text={`kiki connect ${client} --client CLIENT_ID --write`} label="the command of step 3" />
        <p className="muted">
          It shows what it would change and keeps a backup. Without <code>--write</code> it only prints the
          configuration.
        </p>
      </li>
    </ol>
  )
}
