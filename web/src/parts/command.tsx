import { Fragment, useRef, useState } from 'react'

/** One command line with a button that copies it; where copying is not allowed it is selected instead. */
export function Command({ text, label }: { text: string; label: string }) {
  const code = useRef<HTMLElement>(null)
  const [said, setSaid] = useState('')

  async function copy(): Promise<void> {
    try {
      await navigator.clipboard.writeText(text)
      setSaid('Copied')
    } catch {
      if (code.current !== null) getSelection()?.selectAllChildren(code.current)
      setSaid('Selected: copy it with your keyboard')
    }
  }

  return (
    <div className="command">
      <code ref={code}>
        {text.split(' ').map((word, at) => (
          // Whole words, so that no line ends within an option's dashes.
          <Fragment key={`${at} ${word}`}>
            {at > 0 && ' '}
            <span className="word">{word}</span>
          </Fragment>
        ))}
      </code>
      <button type="button" aria-label={`Copy ${label}`} onClick={() => void copy()} onBlur={() => setSaid('')}>
        {said === 'Copied' ? 'Copied' : 'Copy'}
      </button>
      <span className={said.startsWith('Selected') ? 'said' : 'unseen'} role="status">
        {said}
      </span>
    </div>
  )
}
