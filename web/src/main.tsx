import { createRoot } from 'react-dom/client'
import { App } from './app.js'
import { watchHost } from './host.js'
import { takeLoginCode } from './page-secret.js'
import './style.css'

const code = takeLoginCode()
const host = watchHost()
host.signIn(code)
window.addEventListener('hashchange', () => {
  const another = takeLoginCode()
  if (another !== undefined) host.signIn(another)
})

const root = document.getElementById('root')
if (root !== null) createRoot(root).render(<App host={host} />)
